"""Hyper-parameters of TDM, JTM and OTM. The three differ in their defaults."""

from __future__ import annotations

from dataclasses import dataclass

from pathdex.parameters import check_fields, parameter

FIRST_TREES = ("random", "popularity", "time")


@dataclass(frozen=True, kw_only=True)
class TreeConfig:
    """Hyper-parameters of a tree-based model."""

    # Node model.
    embedding_dim: int = parameter(32, "dimension of item, node and user vectors", low=1)
    history_length: int = parameter(69, "number of latest items a query uses", low=1)
    windows: int = parameter(7, "history windows; each reaches twice as far back as the one before", low=1, high=16)
    node_model: str = parameter(
        "attention",
        "how a node reads the history: attention over the windows, or a dense layer",
        choices=("attention", "dnn"),
    )
    hidden: int = parameter(64, "hidden units of the node model", low=1)
    dropout: float = parameter(0.2, "dropout on item vectors", low=0.0, high=0.95)
    hierarchical: bool = parameter(False, "represent history items by their ancestors on the scored level (JTM)")

    # Tree.
    first_tree: str = parameter("random", "item order of the first tree", choices=FIRST_TREES)
    clusterings: int = parameter(1, "times the tree is rebuilt by clustering item vectors (TDM)", low=0)
    assignments: int = parameter(0, "times items are then reassigned by the node model (JTM)", low=0)
    gap: int = parameter(3, "levels assigned at once (JTM's d)", low=1, high=10)
    assignment_samples: int = parameter(32, "interactions sampled per item for an assignment", low=1)
    first_level: int = parameter(6, "level where a search starts; levels above are not scored", low=1)

    # Training.
    next_items: int = parameter(1, "targets: one of this many next items; in beam epochs, all of them", low=1)
    epochs: int = parameter(4, "epochs on each tree", low=1)
    beam_epochs: int = parameter(0, "further epochs on the last tree, on nodes that a beam reaches (OTM)", low=0)
    training_beam: int = parameter(10, "beam size in beam epochs", low=1)
    negatives: int = parameter(20, "negative nodes per sample and level", low=1)
    levels_per_step: int = parameter(2, "levels above the leaves trained per step, drawn at random", low=1)
    batch_size: int = parameter(1024, "interactions per step", low=1)
    learning_rate: float = parameter(3e-3, "learning rate of the node model (Adam)", above=0.0)
    node_learning_rate: float = parameter(0.01, "learning rate of item and node vectors (lazy Adam)", above=0.0)

    # Retrieval.
    beam_size: int = parameter(50, "default number of nodes a query keeps per level", low=1)

    def __post_init__(self) -> None:
        check_fields(self)
