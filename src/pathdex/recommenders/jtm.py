"""JTM, joint optimisation of tree index and deep model (Zhu et al. 2019)."""

from __future__ import annotations

from typing import ClassVar

from pathdex.recommenders.tree.recommender import TreeRecommender


class JTM(TreeRecommender):
    """TDM, then in turn: assign the items to the nodes that the node model likes for them, and train on.

    On each level a history is read by its items' ancestors on that level. Every field of `TreeConfig` is a keyword.
    """

    name = "jtm"
    defaults: ClassVar = {"hierarchical": True, "assignments": 2, "epochs": 2}
