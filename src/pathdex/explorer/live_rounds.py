"""The paths of sampled items over the publishes that a live folder keeps: a base, then states along its deltas."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pathdex.errors import BundleError, PathdexError
from pathdex.kernels.types import Ints
from pathdex.recommenders.deep_retrieval import DeepRetrieval
from pathdex.recommenders.live_reader import from_stored
from pathdex.recommenders.model_delta import ModelDelta
from pathdex.storage.bundle import read_bundle
from pathdex.storage.live_folder import BaseVersion, LiveVersion, delta_folder, read_current, read_delta

MAX_ROUNDS = 40
"""States that are kept; of more publishes, evenly many lie between two states."""
MAX_DELTAS = 1_000
"""Publishes that are read; with more, the replay ends early and says so."""
MAX_ITEMS = 20_000
"""Items that are followed."""


@dataclass(frozen=True, eq=False)
class LiveRounds:
    """States of a live model."""

    items: Ints
    """Codes of the followed items, ascending; all have the same id throughout."""
    rounds: NDArray[np.int64]
    """(state, item, path)"""
    publishes: Ints
    """The number of the last publish in each state."""
    times: list[float]
    """When each was written, in seconds since 1970."""
    left_out: int
    """Later publishes that were not read."""


def keeps_publishes(folder: Path) -> bool:
    """Whether the folder keeps a base with publishes after it."""
    try:
        version = read_current(folder)
    except PathdexError:
        return False
    return bool(len(version.deltas)) or any(delta_folder(folder, one.delta + 1).is_dir() for one in version.bases)


def read_live_rounds(folder: Path, items: Ints) -> LiveRounds | None:
    """The states that the folder keeps, for some items; None if it keeps only one.

    It begins at the oldest base whose publishes are all there, and follows the items that keep their id throughout.
    """
    version = read_current(folder)
    for base in version.bases:
        try:
            found = _follow(folder, version, base, items)
        except (PathdexError, OSError):  # Pruned, or of a chain that was given up.
            continue
        if found is not None:
            return found
    return None


def _follow(folder: Path, version: LiveVersion, base: BaseVersion, items: Ints) -> LiveRounds | None:
    """The states from a base to the last publish."""
    is_current = base.number == version.base.number
    numbers = range(version.first_delta if is_current else base.delta + 1, version.last_delta + 1)
    if base.number > version.base.number or not len(numbers):
        return None
    paths = read_bundle(folder / base.name, estimator=DeepRetrieval.name).arrays["paths"]
    items = items[items < len(paths)]
    now, stays = paths[items].astype(np.int64), np.ones(len(items), np.bool_)
    read = numbers[:MAX_DELTAS]
    kept = set(np.unique(np.linspace(0, len(read), min(MAX_ROUNDS, len(read) + 1)).round().astype(int)).tolist())
    states, publishes = [now.copy()], [base.delta]
    times, digest = [(folder / base.name).stat().st_mtime], base.digest
    for place, number in enumerate(read, start=1):
        stored = read_delta(folder, number, before=digest)
        digest = stored.digest
        _apply(items, now, stays, from_stored(stored))
        if place in kept:
            states.append(now.copy())
            publishes.append(number)
            times.append(delta_folder(folder, number).stat().st_mtime)
    if len(read) == len(numbers) and digest != version.digest:
        raise BundleError(f"the publishes after {base.name} do not lead to the current state")
    left_out = len(numbers) - len(read)
    return LiveRounds(items[stays], np.stack(states)[:, stays], np.array(publishes), times, left_out)


def _apply(items: Ints, now: NDArray[np.int64], stays: NDArray[np.bool_], delta: ModelDelta) -> None:
    """Change the paths of the followed items as a delta does; mark those that get another id or are removed."""
    rows, places = _found(items, delta.items)
    now[rows] = delta.paths[places]
    stays[_found(items, np.concatenate([delta.id_codes, delta.removed]))[0]] = False


def _found(items: Ints, codes: Ints) -> tuple[Ints, Ints]:
    """The rows of `items` that are among `codes`, and their places there."""
    _, rows, places = np.intersect1d(items, codes, assume_unique=True, return_indices=True)
    return rows, places
