"""The planted structure of synthetic interactions: items on paths."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.random import Generator
from numpy.typing import NDArray

SHARED = 0.2
"""Share of the items that are on two paths."""

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class World:
    """The planted structure: pairs (path, item) sorted by path; only paths in use are stored."""

    starts: Integers
    """Path p of those in use holds `members[starts[p]:starts[p + 1]]`, the most popular first."""
    members: Integers
    prefixes: Integers
    """Prefix q holds the paths `prefixes[q]:prefixes[q + 1]`."""
    prefix_of: Integers
    """The prefix of each path."""
    cover: Integers
    """All items, sorted by their first path."""
    cover_path: Integers
    """The first path of each item in `cover`, as its position among the paths in use."""


def plant_world(generator: Generator, items: int, depth: int, nodes: int) -> tuple[World, pa.Table]:
    """Draw the paths of all items; also as a table of `item_id` and nodes `c1` ... `cD`, one row per path."""
    first = generator.integers(0, nodes**depth, items)
    shared = np.flatnonzero(generator.random(items) < SHARED)
    second = generator.integers(0, nodes**depth, len(shared))
    different = second != first[shared]
    item = np.concatenate([np.arange(items), shared[different]])
    code = np.concatenate([first, second[different]])
    # The position of an item in its path is random; it is the popularity rank there.
    order = np.lexsort((generator.random(len(item)), code))
    item, code = item[order], code[order]
    paths, starts = np.unique(code, return_index=True)
    _, prefixes, prefix_of = np.unique(paths // nodes, return_index=True, return_inverse=True)
    cover = np.argsort(first, kind="stable")
    world = World(
        starts=np.append(starts, len(item)),
        members=item,
        prefixes=np.append(prefixes, len(paths)),
        prefix_of=prefix_of,
        cover=cover,
        cover_path=np.searchsorted(paths, first[cover]),
    )
    layers = {f"c{layer + 1}": code // nodes ** (depth - 1 - layer) % nodes for layer in range(depth)}
    return world, pa.table({"item_id": item, **layers}).sort_by("item_id")


def zipf(generator: Generator, size: Integers | int, shape: int | tuple[int, int]) -> Integers:
    """Ranks from 0 to size - 1, rank r with probability about proportional to 1 / (r + 1)."""
    ranks: Integers = (np.power(np.asarray(size) + 1.0, generator.random(shape)) - 1).astype(np.int64)
    np.minimum(ranks, np.asarray(size) - 1, out=ranks)
    return ranks


def preferred_prefixes(generator: Generator, world: World, bounds: Integers) -> tuple[Integers, Integers]:
    """Up to three prefixes per user, (user, 3), and how many of them count.

    The first is that of the user's own items `cover[bounds[u]:bounds[u + 1]]`; two are drawn by popularity.
    """
    users = len(bounds) - 1
    home = world.cover_path[np.minimum(bounds[:-1], len(world.cover) - 1)]
    prefixes = np.column_stack([world.prefix_of[home], zipf(generator, len(world.prefixes) - 1, (users, 2))])
    return prefixes, generator.integers(1, 4, users)
