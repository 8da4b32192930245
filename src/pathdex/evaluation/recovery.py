"""Whether the index recovers planted interests: do the items of a path share one?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pathdex.errors import DataError, Problem


@dataclass(frozen=True)
class Recovery:
    """Shares from 0 to 1, each with the share after shuffling the items over the same paths."""

    purity: float
    """Share of path places whose item has the most frequent interest of the path."""
    purity_by_chance: float
    both_interests: float
    """Share of the items with two interests that are on paths of both."""
    both_by_chance: float


def planted_recovery(paths: NDArray[np.int64], interests: Sequence[Sequence[str]], *, seed: int = 0) -> Recovery:
    """Compare paths (item, J) with the planted interests of each item."""
    if len(paths) != len(interests):
        rule = f"paths has {len(paths):,} items and interests {len(interests):,}"
        raise DataError(Problem(rule, remedy="pass the interests in the order of the catalogue"))
    names = sorted({name for own in interests for name in own})
    member = np.array([[name in own for name in names] for own in interests])
    shuffled = member[np.random.default_rng(seed).permutation(len(member))]
    purity, both = _shares(paths, member)
    purity_by_chance, both_by_chance = _shares(paths, shuffled)
    return Recovery(purity, purity_by_chance, both, both_by_chance)


def _shares(paths: NDArray[np.int64], member: NDArray[np.bool_]) -> tuple[float, float]:
    _, place = np.unique(paths.ravel(), return_inverse=True)
    place = place.reshape(paths.shape)
    votes = np.zeros((place.max() + 1, member.shape[1]), np.int64)
    np.add.at(votes, place, member[:, None, :])
    main = votes.argmax(axis=1)[place]
    purity = np.take_along_axis(member, main, axis=1).mean()
    visited = np.zeros_like(member)
    np.put_along_axis(visited, main, True, axis=1)
    double = member.sum(axis=1) == 2
    both = (visited & member).sum(axis=1)[double] == 2
    return float(purity), float(both.mean()) if double.any() else 0.0
