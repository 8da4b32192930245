"""Hyper-parameters of the tree-based baselines; TDM, JTM and OTM differ in their defaults."""

from __future__ import annotations

from dataclasses import dataclass

from pathdex.parameters import check_fields, parameter

FIRST_TREES = ("random", "popularity", "time")


@dataclass(frozen=True, kw_only=True)
class TreeConfig:
    """What is learned and how."""

    # The node model.
    embedding_dim: int = parameter(32, "size of item, node and user vectors", low=1)
    history_length: int = parameter(69, "latest items of a history that are read", low=1)
    windows: int = parameter(7, "windows of the history, each twice as far back as the one before", low=1, high=16)
    node_model: str = parameter("attention", "how a node meets the history", choices=("attention", "dnn"))
    hidden: int = parameter(64, "hidden units of the node model", low=1)
    dropout: float = parameter(0.2, "dropout on the history's item vectors", low=0.0, high=0.95)
    hierarchical: bool = parameter(False, "read a history by its items' ancestors on the level that is scored (JTM)")

    # The tree.
    first_tree: str = parameter("random", "order of the items in the first tree", choices=FIRST_TREES)
    clusterings: int = parameter(1, "times that the tree is learned by clustering the item vectors (TDM)", low=0)
    assignments: int = parameter(0, "times that the items are then assigned anew by the node model (JTM)", low=0)
    gap: int = parameter(3, "levels that an assignment decides at once (JTM's d)", low=1, high=10)
    assignment_samples: int = parameter(32, "interactions per item that an assignment looks at", low=1)
    first_level: int = parameter(6, "level that a search starts with; those above are not scored", low=1)

    # Training.
    next_items: int = parameter(
        1, "next items that a history predicts: one drawn; with beam epochs all, in these", low=1
    )
    epochs: int = parameter(4, "epochs on each tree", low=1)
    beam_epochs: int = parameter(0, "further epochs on the last tree with the nodes that a beam reaches (OTM)", low=0)
    training_beam: int = parameter(10, "width of the beam of these epochs", low=1)
    negatives: int = parameter(20, "negative nodes per sample on each level", low=1)
    levels_per_step: int = parameter(2, "levels above the leaves that a step trains, drawn anew for each", low=1)
    batch_size: int = parameter(1024, "interactions per step", low=1)
    learning_rate: float = parameter(3e-3, "of Adam, node model", above=0.0)
    node_learning_rate: float = parameter(0.01, "of Adam, item and node vectors", above=0.0)

    # Retrieval.
    beam_size: int = parameter(50, "nodes that a query keeps on each level by default", low=1)

    def __post_init__(self) -> None:
        check_fields(self)
