"""TDM, the Tree-based Deep Model (Zhu et al. 2018)."""

from __future__ import annotations

from pathdex.recommenders.tree.recommender import TreeRecommender


class TDM(TreeRecommender):
    """Train the node model on a first tree, learn the tree by clustering the item vectors, train on.

    A node's positives are the users whose item is under it, its negatives are drawn from its level. Every field of
    `TreeConfig` is a keyword.
    """

    name = "tdm"
