"""Hyper-parameters for a model that trains in a second."""

from typing import Any

TINY: dict[str, Any] = {
    "num_nodes": 4,
    "depth": 2,
    "paths_per_item": 2,
    "candidate_paths": 8,
    "score_beam": 8,
    "embedding_dim": 8,
    "structure_hidden": 16,
    "node_dim": 4,
    "batch_size": 128,
    "structure_batch_size": 128,
    "epochs": 2,
    "rounds": 2,
    "final_epochs": 1,
    "path_size": 4.0,
}
