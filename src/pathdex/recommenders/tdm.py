"""TDM, the Tree-based Deep Model (Zhu et al. 2018)."""

from __future__ import annotations

from pathdex.recommenders.tree.recommender import TreeRecommender


class TDM(TreeRecommender):
    """Trains the node model on a first tree, rebuilds the tree by clustering the item vectors, and trains on.

    Per level, the ancestor of the target is the positive, and negatives are drawn from the same level. Every field of
    `TreeConfig` is a keyword.
    """

    name = "tdm"
