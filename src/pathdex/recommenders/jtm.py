"""JTM, joint optimization of tree index and deep model (Zhu et al. 2019)."""

from __future__ import annotations

from typing import ClassVar

from pathdex.recommenders.tree.recommender import TreeRecommender


class JTM(TreeRecommender):
    """TDM, then alternately reassigns items to the nodes that the node model prefers, and trains on.

    Each level represents history items by their ancestors on that level. Every field of `TreeConfig` is a keyword.
    """

    name = "jtm"
    defaults: ClassVar = {"hierarchical": True, "assignments": 2, "epochs": 2}
