"""Synthetic interactions of any size with a known structure: items are on one or two paths, and users follow paths.

`Habits` plant other behaviour: strong or weak order, repeat purchases, best-sellers. Rows are streamed to Parquet, so
memory is bounded by the catalogue and one chunk of rows.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
from numpy.random import Generator
from numpy.typing import NDArray

from pathdex.data.synthetic_habits import Habits, plant_habits
from pathdex.data.synthetic_world import Integers, World, plant_world, preferred_prefixes, zipf
from pathdex.errors import ConfigError, Problem, StorageError
from pathdex.parameters import count_problems
from pathdex.progress import Progress
from pathdex.storage.atomic import atomic_path

SWITCH = 0.1
"""Probability that a user switches to another preferred prefix at a row."""
STEP = 0.5
"""Probability that a user moves to the next path of the prefix at a row, which makes order informative."""
_SCHEMA = pa.schema([("user_id", pa.int64()), ("item_id", pa.int64()), ("timestamp", pa.int64())])
_Choose: TypeAlias = Callable[[Generator, Integers, Integers, Integers], Integers]
"""One item per row for a group of users, from the owner of each row, the bounds of their own items, their lengths."""


def generate(
    path: str | os.PathLike[str],
    *,
    users: int,
    items: int,
    interactions: int,
    depth: int = 3,
    nodes: int | None = None,
    habits: Habits | None = None,
    seed: int = 0,
    chunk: int = 1_000_000,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> Path:
    """Write exactly `interactions` rows of `user_id`, `item_id`, `timestamp` to a Parquet file.

    Every user and every item occurs. A path has `depth` layers of `nodes` nodes (default: about 8 items share a path);
    a fifth of the items is on two paths. A user prefers one to three prefixes (all layers except the last), walks
    through their paths in order, and draws items of a path by Zipf's law. `habits` replace
    the walk by other behaviour. The planted paths are written beside the file, see `truth_file`.
    `progress(done, total)` is called after each chunk of rows.
    """
    target = Path(path)
    if nodes is None:
        nodes = max(2, math.ceil(math.pow(max(items, 1) / 8, 1 / max(depth, 1))))
    _check(users, items, interactions, depth, nodes, chunk, seed)
    if target.suffix != ".parquet":
        raise StorageError(f"{target}: rows are written as Parquet; choose a name that ends in .parquet")
    truth = truth_file(target)
    for existing in (target, truth):
        if existing.exists() and not overwrite:
            raise StorageError(f"{existing} exists; choose another path, remove it, or pass overwrite=True")
    generator = np.random.default_rng(seed)
    world, table = plant_world(generator, items, depth, nodes)
    choose: _Choose = partial(_choices, world)
    if habits is not None:
        planted = plant_habits(generator, world, habits)
        choose = planted.choose
        table = table.append_column("next_item", pa.array(planted.successor[table["item_id"].to_numpy()]))
    with atomic_path(target) as rows_file, atomic_path(truth) as truth_staging:
        pa.feather.write_feather(table, str(truth_staging))
        with pq.ParquetWriter(rows_file, _SCHEMA) as writer:
            done = 0
            for rows in _walks(generator, world, choose, users, interactions, chunk):
                writer.write_table(rows)
                done += rows.num_rows
                if progress is not None:
                    progress(done, interactions)
    return target


def truth_file(path: str | os.PathLike[str]) -> Path:
    """The file of the planted paths: an Arrow table of `item_id` and nodes `c1` ... `cD`, one row per path.

    With habits, `next_item` is the planted successor of the item.
    """
    return Path(path).with_suffix(".truth.arrow")


def _check(users: int, items: int, interactions: int, depth: int, nodes: int, chunk: int, seed: int) -> None:
    counts = {"users": users, "items": items, "interactions": interactions, "depth": depth, "chunk": chunk}
    problems = [problem for name, value in counts.items() for problem in count_problems(name, value)]
    problems += count_problems("nodes", nodes, 2) + count_problems("seed", seed, 0)
    if not problems and interactions < max(users, items):
        rule = f"must be at least users={users} and items={items}, so that each occurs"
        problems.append(Problem(rule, "interactions", interactions))
    if not problems and nodes**depth > 2**62:
        problems.append(Problem(f"{nodes}^{depth} paths are more than 2^62", "depth", depth, "lower depth or nodes"))
    if problems:
        raise ConfigError(problems)


def _walks(
    generator: Generator, world: World, choose: _Choose, users: int, interactions: int, chunk: int
) -> Iterator[pa.Table]:
    """The rows of all users in tables of about `chunk` rows."""
    # User r takes each item of the r-th share of `cover` once.
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
        items = choose(generator, owner, bounds[begin : end + 1], lengths[group])
        start = generator.integers(1_000_000_000, 1_400_000_000, end - begin)
        gaps = generator.exponential(86_400, len(owner)).astype(np.int64) + 1
        elapsed = np.cumsum(gaps)
        first = np.cumsum(lengths[group]) - lengths[group]
        times = start[owner] + elapsed - elapsed[first][owner]
        yield pa.table([ids[group][owner], items, times], schema=_SCHEMA)
        begin = end


def _choices(world: World, generator: Generator, owner: Integers, bounds: Integers, lengths: Integers) -> Integers:
    """One item per row for a group of users; `bounds` delimits the items of `world.cover` that each takes once."""
    rows = len(owner)
    first = np.cumsum(lengths) - lengths
    prefixes, width = preferred_prefixes(generator, world, bounds)
    switches = _running(generator.random(rows) < SWITCH, first, owner)
    prefix = prefixes[owner, switches % width[owner]]
    # Inside a prefix the user walks from path to path, cyclically.
    low, size = world.prefixes[prefix], np.diff(world.prefixes)[prefix]
    origin = zipf(generator, size, rows)[first][owner]
    path = low + (origin + _running(generator.random(rows) < STEP, first, owner)) % size
    chosen: Integers = world.members[world.starts[path] + zipf(generator, np.diff(world.starts)[path], rows)]
    # The user's own items are at random rows.
    shuffled = np.lexsort((generator.random(rows), owner))
    place = np.arange(rows) - first[owner]
    mine = place < np.diff(bounds)[owner]
    chosen[shuffled[mine]] = world.cover[bounds[:-1][owner][mine] + place[mine]]
    return chosen


def _running(events: NDArray[np.bool_], first: Integers, owner: Integers) -> Integers:
    """How many events each user has had so far, not counting the first row."""
    total = np.cumsum(events)
    counts: Integers = total - total[first][owner]
    return counts
