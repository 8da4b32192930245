"""Whether stored paths and postings are the inverse of each other, block by block over mapped arrays."""

from __future__ import annotations

import numpy as np

from pathdex.index.postings import NO_PATH
from pathdex.kernels.types import Int32s, Ints
from pathdex.storage.array_spec import blocks


def postings_problems(item_paths: Ints, paths: Ints, offsets: Ints, items: Int32s) -> list[str]:
    """Problems between the paths of items (item, path) and the items on paths.

    Each array must be valid by itself: codes in range, `paths` ascending, `offsets` ascending from 0 to the number of
    entries. Entries are pairs (path, item). They are the inverse of the paths if they are as many, distinct, and each
    is a path of its item.
    """
    placed, width = 0, item_paths.shape[1]
    for rows in blocks(len(item_paths), width):
        own = np.sort(item_paths[rows], axis=1)
        on_paths = own != NO_PATH
        half = on_paths.any(axis=1) != on_paths.all(axis=1)
        if half.any():
            return [f"paths: item {rows.start + int(half.argmax())} must have all its {width} paths or none"]
        twice = (own[:, 1:] == own[:, :-1]) & on_paths[:, 1:]
        if twice.any():
            return [f"paths: item {rows.start + int(twice.any(axis=1).argmax())} has a path twice"]
        placed += int(on_paths[:, 0].sum())
    if len(items) != placed * width:
        return [f"postings.items: has {len(items)} entries, must have {placed * width}, one for each path of an item"]
    for entries in blocks(len(items), width):
        # From the entry before on, so that each is compared with its predecessor.
        begin = max(0, entries.start - 1)
        first = int(np.searchsorted(offsets, begin, "right")) - 1
        last = int(np.searchsorted(offsets, entries.stop - 1, "right"))
        ends = np.clip(offsets[first : last + 1], begin, entries.stop)
        codes, members = np.repeat(paths[first:last], np.diff(ends)), np.asarray(items[begin : entries.stop])
        if ((members[1:] <= members[:-1]) & (codes[1:] == codes[:-1])).any():
            return ["postings.items: must be ascending and distinct on each path"]
        foreign = ~(item_paths[members] == codes[:, None]).any(axis=1)
        if foreign.any():
            entry = int(foreign.argmax())
            return [f"postings.items: item {members[entry]} is on path {codes[entry]}, which is not one of its paths"]
    return []
