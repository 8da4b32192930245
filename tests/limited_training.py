"""Prepare a log and train on it with `ARGUMENTS: log, folder, bytes`: prints how far it came.

Run in a process of its own, whose data segment is limited to what it has after a first small training, and the given
bytes.
"""

from __future__ import annotations

import resource
import sys
import warnings
from pathlib import Path

import numpy as np

import pathdex
from pathdex.data import generate
from pathdex.errors import AccuracyWarning, DataWarning, IndexHealthWarning
from pathdex.training import sample_order
from tests.limited_memory import data_segment

DIM = 64
PARAMETERS = {
    "embedding_dim": DIM, "epochs": 1, "rounds": 1, "structure_epochs": 1, "final_epochs": 1, "next_items": 4,
    "neighbours": 0, "batch_size": 1024, "history_length": 16, "seed": 0, "threads": 1,
}  # fmt: skip


def main(log: str, folder: str, room: int) -> None:
    sample_order.LARGE = 2**16
    for kind in (AccuracyWarning, DataWarning, IndexHealthWarning):  # After one epoch, nothing is accurate.
        warnings.simplefilter("ignore", kind)
    small = Path(folder) / "small.parquet"
    generate(small, users=100, items=50, interactions=2000, seed=0)
    pathdex.prepare(small, Path(folder) / "small", shard_rows=500)
    pathdex.DeepRetrieval(**PARAMETERS).fit(pathdex.read(Path(folder) / "small"))
    limit = data_segment() + room
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    pathdex.prepare(log, Path(folder) / "prepared", shard_rows=50_000)
    data = pathdex.read(Path(folder) / "prepared")
    print("prepared", data.num_interactions)
    try:
        np.ones((data.num_interactions, DIM), np.float32)
    except MemoryError:
        print("too little for the user vectors")
    model = pathdex.DeepRetrieval(**PARAMETERS).fit(data)
    print("trained", len(model.recommend(list(data.items.first_ids(5)), n=5)))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
