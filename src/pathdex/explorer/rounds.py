"""How items came to their paths: the M-steps that training recorded, or the publishes that a live folder keeps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pathdex.explorer.explorer import Explorer
from pathdex.explorer.item_schemas import ItemRound
from pathdex.explorer.live_rounds import MAX_ITEMS, LiveRounds, read_live_rounds
from pathdex.explorer.overview_schemas import PathRound
from pathdex.index.paths import decode_paths
from pathdex.index.postings import NO_PATH
from pathdex.kernels.types import Ints
from pathdex.storage.live_folder import is_live_folder


@dataclass(frozen=True, eq=False)
class Rounds:
    """The paths of sampled items, state by state."""

    items: Ints
    """Their codes, ascending."""
    states: NDArray[np.int64]
    """(state, item, path)"""
    numbers: list[int]
    """The M-step or publish before each state."""
    times: list[float | None]
    """When each was published."""


def rounds_of(explorer: Explorer) -> Rounds | None:
    """The recorded states; None if there are none."""
    if explorer.is_live:
        found = live_rounds_of(explorer)
        return None if found is None else Rounds(found.items, found.rounds, found.publishes.tolist(), [*found.times])
    recording = explorer.recording
    if not recording.num_rounds:
        return None
    count = len(recording.rounds)
    return Rounds(recording.items, recording.rounds, list(range(count)), [None] * count)


def live_rounds_of(explorer: Explorer) -> LiveRounds | None:
    """The publishes that the live folder keeps; None if it keeps none, or the model is not from one."""
    return explorer.once("live_rounds", lambda: _read(explorer))


def _read(explorer: Explorer) -> LiveRounds | None:
    if explorer.folder is None or not is_live_folder(explorer.folder):
        return None
    codes = np.random.default_rng(0).permutation(len(explorer.model.items))[:MAX_ITEMS]
    return read_live_rounds(explorer.folder, np.setdiff1d(codes, explorer.model.items.removed))


def path_rounds(explorer: Explorer, code: int) -> tuple[list[PathRound] | None, int]:
    """The sampled items on a path in each state, and the size of the sample; None and 0 if nothing was recorded."""
    recorded = rounds_of(explorer)
    if recorded is None:
        return None, 0
    order, codes = explorer.once("round_index", lambda: _round_index(recorded.states))
    rounds, before = list[PathRound](), np.empty(0, np.int64)
    for place, (number, time) in enumerate(zip(recorded.numbers, recorded.times, strict=True)):
        first, last = (int(np.searchsorted(codes[place], code, side)) for side in ("left", "right"))
        now = np.sort(order[place][first:last])
        entered = len(now) - len(np.intersect1d(now, before)) if place else 0
        left = len(before) - (len(now) - entered) if place else 0
        rounds.append(PathRound(number, len(now), entered, left, time))
        before = now
    return rounds, len(recorded.items)


def _round_index(states: NDArray[np.int64]) -> tuple[list[Ints], list[Ints]]:
    """For each state, the rows of the sampled items sorted by path, and the sorted paths."""
    orders, codes = [], []
    for paths in states:
        flat = paths.ravel()
        order = np.argsort(flat, kind="stable")
        codes.append(flat[order])
        orders.append(order // paths.shape[1])
    return orders, codes


def item_rounds(explorer: Explorer, code: int) -> tuple[list[ItemRound] | None, int]:
    """The paths of an item in each state, and the size of the sample; None if the item is not in it."""
    recorded = rounds_of(explorer)
    if recorded is None:
        return None, 0
    row = int(np.searchsorted(recorded.items, code))
    if row == len(recorded.items) or recorded.items[row] != code:
        return None, len(recorded.items)
    return [
        ItemRound(number, decode_paths(paths[paths != NO_PATH], explorer.num_nodes, explorer.depth).tolist(), time)
        for number, paths, time in zip(recorded.numbers, recorded.states[:, row], recorded.times, strict=True)
    ], len(recorded.items)
