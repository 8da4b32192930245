"""OTM, optimal tree models under beam search (Zhuo et al. 2020)."""

from __future__ import annotations

from typing import ClassVar

from pathdex.recommenders.tree.recommender import TreeRecommender


class OTM(TreeRecommender):
    """TDM, then epochs in which each level learns from the nodes that a beam of the model reaches.

    The target of a node is whether its best children lead to one of the next items. Every field of `TreeConfig` is a
    keyword.
    """

    name = "otm"
    defaults: ClassVar = {"beam_epochs": 2, "next_items": 10}
