"""Work on mapped interactions with `ARGUMENTS: folder, bytes`: prints the peak of what was allocated beyond the start.

Run in a process of its own, whose data segment is limited to what it has at the start and the given bytes.
"""

from __future__ import annotations

import resource
import sys
from pathlib import Path

import numpy as np

from pathdex.data import load_interactions, split_users
from pathdex.storage.scratch import permutation
from pathdex.training.scoring import ItemSamples
from pathdex.training.windows import draw_readers


def data_segment() -> int:
    """Bytes of memory that only this process can write to, used or not."""
    line = next(one for one in Path("/proc/self/status").read_text().splitlines() if one.startswith("VmData"))
    return int(line.split()[1]) * 1024


def main(folder: str, room: int) -> None:
    data, random = load_interactions(folder), np.random.default_rng(0)
    # What is allocated once: threads and buffers of numpy.
    draw_readers(data.user_range(0, 10).sequences, 4, random)
    limit = data_segment() + room
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    try:
        np.ones(len(data.sequences.values), np.int64)
    except MemoryError:
        print("too little for one array")
    split = split_users(data, test_users=50, valid_users=50)
    print("counted", split.train.item_counts().sum() == split.train.num_interactions)
    print("read", bool((draw_readers(split.train.sequences, 4, random) >= 0).all()))
    print(
        "grouped", len(ItemSamples(split.train.sequences.values, data.num_items).order) == split.train.num_interactions
    )
    print("ordered", int(permutation(split.train.num_interactions, random)[0]) >= 0)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
