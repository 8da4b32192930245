"""Interactions of any size whose structure is known: every item is planted on one or two paths, and users follow paths.

The data is streamed to Parquet, so memory is bounded by the catalogue and one chunk of rows.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
from numpy.typing import NDArray

from pathdex.errors import ConfigError, StorageError
from pathdex.progress import Progress

SHARED = 0.2
"""Share of the items that live on two paths."""
SWITCH = 0.1
"""Chance that a user turns to another of the preferred prefixes at a row."""
STEP = 0.5
"""Chance that a user moves on to the next path of the prefix at a row, so that order matters."""
_SCHEMA = pa.schema([("user_id", pa.int64()), ("item_id", pa.int64()), ("timestamp", pa.int64())])

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class _World:
    """Entries (path, item) in the order of their paths; only paths in use are stored."""

    starts: Integers
    """Path p of those in use holds `members[starts[p]:starts[p + 1]]`, the most popular first."""
    members: Integers
    prefixes: Integers
    """Prefix q holds the paths `prefixes[q]:prefixes[q + 1]`."""
    prefix_of: Integers
    """The prefix of each path."""
    cover: Integers
    """All items in the order of their first path."""
    cover_path: Integers
    """The first path of each of them, as its place among the paths in use."""


def generate(
    path: str | os.PathLike[str],
    *,
    users: int,
    items: int,
    interactions: int,
    depth: int = 3,
    nodes: int | None = None,
    seed: int = 0,
    chunk: int = 1_000_000,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> Path:
    """Write planted interactions to a Parquet file: `user_id`, `item_id`, `timestamp`, exactly as many as asked.

    Every user and every item occurs. A path has `depth` layers of `nodes` nodes (by default so many that about 8 items
    share a path); a fifth of the items lives on two. A user prefers one to three prefixes (all layers but the last),
    walks through their paths in order, and takes items of a path by Zipf's law. The truth is written beside the file,
    see `truth_file`. `progress(done, total)` is called after each chunk of rows.
    """
    target = Path(path)
    nodes = _default_nodes(items, depth) if nodes is None else nodes
    _check(users, items, interactions, depth, nodes, chunk, seed)
    if target.suffix != ".parquet":
        raise StorageError(f"{target}: rows are written as Parquet; choose a name that ends in .parquet")
    truth = truth_file(target)
    for existing in (target, truth):
        if existing.exists() and not overwrite:
            raise StorageError(f"{existing} exists; choose another path, remove it, or pass overwrite=True")
    parts = [file.with_name(f".{file.name}.part") for file in (target, truth)]
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        generator = np.random.default_rng(seed)
        world, table = _plant(generator, items, depth, nodes)
        pa.feather.write_feather(table, str(parts[1]))
        with pq.ParquetWriter(parts[0], _SCHEMA) as writer:
            done = 0
            for rows in _walks(generator, world, users, interactions, chunk):
                writer.write_table(rows)
                done += rows.num_rows
                if progress is not None:
                    progress(done, interactions)
        parts[1].replace(truth)
        parts[0].replace(target)
    except OSError as error:
        raise StorageError(
            f"cannot write {target}: {error.strerror or error}; free space or choose another path; nothing was changed"
        ) from error
    finally:
        for part in parts:
            with suppress(OSError):
                part.unlink()
    return target


def truth_file(path: str | os.PathLike[str]) -> Path:
    """Where the paths planted in `path` are: an Arrow file of `item_id` and nodes `c1` ... `cD`, one row per path."""
    return Path(path).with_suffix(".truth.arrow")


def _default_nodes(items: int, depth: int) -> int:
    return max(2, math.ceil(math.pow(max(items, 1) / 8, 1 / max(depth, 1))))


def _check(users: int, items: int, interactions: int, depth: int, nodes: int, chunk: int, seed: int) -> None:
    counts = {
        "users": (users, 1),
        "items": (items, 1),
        "interactions": (interactions, 1),
        "depth": (depth, 1),
        "nodes": (nodes, 2),
        "chunk": (chunk, 1),
        "seed": (seed, 0),
    }
    problems = [
        f"{name}={value!r}: must be a whole number of at least {low}"
        for name, (value, low) in counts.items()
        if isinstance(value, bool) or not isinstance(value, int) or value < low
    ]
    if not problems and interactions < max(users, items):
        problems.append(
            f"interactions={interactions}: must be at least users={users} and items={items}, so that each occurs"
        )
    if not problems and nodes**depth > 2**62:
        problems.append(f"nodes={nodes}, depth={depth}: nodes^depth must stay below 2^62; lower one of them")
    if problems:
        raise ConfigError(problems)


def _plant(generator: np.random.Generator, items: int, depth: int, nodes: int) -> tuple[_World, pa.Table]:
    """Draw the paths of all items."""
    first = generator.integers(0, nodes**depth, items)
    shared = np.flatnonzero(generator.random(items) < SHARED)
    second = generator.integers(0, nodes**depth, len(shared))
    different = second != first[shared]
    item = np.concatenate([np.arange(items), shared[different]])
    code = np.concatenate([first, second[different]])
    # The place of an item inside its path is random, and is its rank of popularity there.
    order = np.lexsort((generator.random(len(item)), code))
    item, code = item[order], code[order]
    paths, starts = np.unique(code, return_index=True)
    _, prefixes, prefix_of = np.unique(paths // nodes, return_index=True, return_inverse=True)
    cover = np.argsort(first, kind="stable")
    world = _World(
        starts=np.append(starts, len(item)),
        members=item,
        prefixes=np.append(prefixes, len(paths)),
        prefix_of=prefix_of,
        cover=cover,
        cover_path=np.searchsorted(paths, first[cover]),
    )
    layers = {f"c{layer + 1}": code // nodes ** (depth - 1 - layer) % nodes for layer in range(depth)}
    return world, pa.table({"item_id": item, **layers}).sort_by("item_id")


def _walks(
    generator: np.random.Generator, world: _World, users: int, interactions: int, chunk: int
) -> Iterator[pa.Table]:
    """The rows of all users in tables of about `chunk` rows."""
    # User of rank r is at home at the r-th part of the items in the order of their paths, and buys each of these once.
    bounds = np.arange(users + 1) * len(world.cover) // users
    own = np.diff(bounds)
    lengths = np.maximum(own, min(10, interactions // users))
    activity = generator.lognormal(sigma=1.0, size=users)
    lengths += generator.multinomial(interactions - int(lengths.sum()), activity / activity.sum())
    ids = generator.permutation(users)
    ends = np.cumsum(lengths)
    cuts = np.unique(np.searchsorted(ends, np.arange(chunk, interactions + chunk, chunk)).clip(max=users - 1) + 1)
    begin = 0
    for end in cuts.tolist():
        group = slice(begin, end)
        owner = np.repeat(np.arange(end - begin), lengths[group])
        items = _choices(generator, world, owner, bounds[begin : end + 1], lengths[group])
        start = generator.integers(1_000_000_000, 1_400_000_000, end - begin)
        gaps = generator.exponential(86_400, len(owner)).astype(np.int64) + 1
        elapsed = np.cumsum(gaps)
        first = np.cumsum(lengths[group]) - lengths[group]
        times = start[owner] + elapsed - elapsed[first][owner]
        yield pa.table([ids[group][owner], items, times], schema=_SCHEMA)
        begin = end


def _choices(
    generator: np.random.Generator, world: _World, owner: Integers, bounds: Integers, lengths: Integers
) -> Integers:
    """One item per row for a group of users; `bounds` says which items of `world.cover` each must take once."""
    users, rows = len(lengths), len(owner)
    first = np.cumsum(lengths) - lengths
    # Up to three preferred prefixes: home, and others of which a few are popular with everybody.
    home = world.cover_path[np.minimum(bounds[:-1], len(world.cover) - 1)]
    prefixes = np.column_stack([world.prefix_of[home], _zipf(generator, len(world.prefixes) - 1, (users, 2))])
    width = generator.integers(1, 4, users)
    switches = _running(generator.random(rows) < SWITCH, first, owner)
    prefix = prefixes[owner, switches % width[owner]]
    # Inside a prefix the user walks from path to path, in a circle.
    low, size = world.prefixes[prefix], np.diff(world.prefixes)[prefix]
    origin = _zipf(generator, size, rows)[first][owner]
    path = low + (origin + _running(generator.random(rows) < STEP, first, owner)) % size
    chosen: Integers = world.members[world.starts[path] + _zipf(generator, np.diff(world.starts)[path], rows)]
    # The items that are the user's own stand at random rows.
    shuffled = np.lexsort((generator.random(rows), owner))
    place = np.arange(rows) - first[owner]
    mine = place < np.diff(bounds)[owner]
    chosen[shuffled[mine]] = world.cover[bounds[:-1][owner][mine] + place[mine]]
    return chosen


def _zipf(generator: np.random.Generator, size: Integers | int, shape: int | tuple[int, int]) -> Integers:
    """Ranks from 0 to size - 1, rank r about as often as 1 / (r + 1)."""
    ranks: Integers = (np.power(np.asarray(size) + 1.0, generator.random(shape)) - 1).astype(np.int64)
    np.minimum(ranks, np.asarray(size) - 1, out=ranks)
    return ranks


def _running(events: NDArray[np.bool_], first: Integers, owner: Integers) -> Integers:
    """How many events each user has seen so far, not counting the first row."""
    total = np.cumsum(events)
    counts: Integers = total - total[first][owner]
    return counts
