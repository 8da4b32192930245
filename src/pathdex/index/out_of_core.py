"""The M-step over a score table that is larger than memory: the same paths, read from disk in sequence.

Items are visited in random order, which would read a file at random. So the table is first sorted on disk into shares:
a share holds the rows of consecutive visits and fits memory. Each iteration then reads the shares one after the other.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pathdex.errors import ConfigError, Problem
from pathdex.index.checks import check_int, check_number, path_array, score_array
from pathdex.index.coordinate_descent import check_rows, default_block_size, visit_items
from pathdex.index.path_choice import Penalty
from pathdex.index.path_ids import PathNumbers
from pathdex.kernels.types import Floats, Int32s, Ints, Mask


def assign_paths_out_of_core(
    codes: Ints,
    scores: Floats,
    counts: ArrayLike,
    current_paths: ArrayLike,
    *,
    folder: str | os.PathLike[str],
    penalty: float,
    penalty_degree: float = 4,
    iterations: int = 4,
    seed: int = 0,
    block_size: int | None = None,
    rows_in_memory: int = 1_000_000,
    progress: Callable[[str, int, int], None] = lambda step, done, total: None,
) -> Ints:
    """The paths of `assign_paths`, bit by bit, with at most `rows_in_memory` rows of the score table in memory.

    `codes` and `scores` are memory-mapped arrays such as `np.load(file, mmap_mode="r")`. A copy of the rows with
    scores, 8 bytes per candidate path, is kept in `folder` until the end. About 100 bytes per item stay in memory: its
    paths, its place in the order of visits, and |c|. `progress` receives a step, and how much of it is done.
    """
    degree = check_number("penalty_degree", penalty_degree, low=2.0)
    price = Penalty.of(check_number("penalty", penalty, low=0.0), degree)
    check_int("iterations", iterations)
    current = path_array("current_paths", current_paths)
    counts = score_array("counts", counts, len(current))
    block_size = check_int("block_size", block_size or default_block_size(len(current)))
    if check_int("rows_in_memory", rows_in_memory) < block_size:
        rule = f"must be at least the block size, {block_size}"
        raise ConfigError([Problem(rule, "rows_in_memory", rows_in_memory, "raise it")])
    random = np.random.default_rng(check_int("seed", seed, low=0))

    largest, scored = -1, np.zeros(len(current), np.bool_)
    for first, end in _parts(len(current), rows_in_memory // 4):
        part = np.asarray(codes[first:end])
        check_rows(part, np.asarray(scores[first:end]), current[first:end], first)
        largest = max(largest, int(part.max(initial=-1)))
        scored[first:end] = scores[first:end, :1].sum(axis=1) > 0
        progress("check", end, len(current))
    numbers = PathNumbers(1 + max(largest, int(current.max())), len(current))
    order = random.permutation(np.flatnonzero(scored))

    with tempfile.TemporaryDirectory(prefix="m-step-", dir=folder) as place:
        rows = rows_in_memory // block_size * block_size
        shares = _Shares(order, rows, codes.shape[1], Path(place))
        for first, end in _parts(len(current), rows_in_memory // 4):
            shares.add(first, end, scored, codes, scores, numbers)
            progress("sort", end, len(current))
        kept = numbers.number(current)
        paths = kept.copy()
        sizes = np.bincount(paths[~scored].ravel(), minlength=len(numbers)).astype(np.int32)
        for t in range(iterations):
            for share in shares:
                own = paths[share.items]
                table = share.candidate_paths, share.scores, counts[share.items], kept[share.items]
                visit_items(share.order, *table, own, sizes, price, placed=t > 0, block_size=block_size)
                paths[share.items] = own
                progress(f"iteration {t + 1} of {iterations}", share.end, len(order))
    return numbers.codes(paths)


@dataclass(frozen=True, eq=False)
class _Share:
    """The rows of consecutive visits, by item."""

    items: Ints
    order: Ints
    """The row of each visit."""
    candidate_paths: Int32s
    scores: Floats
    end: int


class _Shares:
    """A score table on disk, in shares of so many consecutive visits."""

    def __init__(self, order: Ints, rows: int, width: int, folder: Path) -> None:
        self._order, self._rows, self._width = order, rows, width
        self._visit = np.empty(int(order.max(initial=-1)) + 1, np.int32)
        self._visit[order] = np.arange(len(order), dtype=np.int32)
        self._starts = np.arange(0, len(order), rows)
        self._filled = self._starts.copy()
        self._paths, self._scores = folder / "paths", folder / "scores"
        for file in (self._paths, self._scores):
            with file.open("wb") as new:
                new.truncate(4 * len(order) * width)

    def add(self, first: int, end: int, scored: Mask, codes: Ints, scores: Floats, numbers: PathNumbers) -> None:
        """Append items `first` to `end` to their shares; call it for ascending items."""
        items = first + np.flatnonzero(scored[first:end])
        if not len(items):
            return
        rows_scores = scores[first:end][items - first]
        candidates = numbers.number(codes[first:end][items - first], rows_scores).astype(np.int32, copy=False)
        share_of = self._visit[items] // self._rows
        with self._paths.open("r+b") as paths_file, self._scores.open("r+b") as scores_file:
            for share in np.unique(share_of):
                inside = share_of == share
                for file, rows in ((paths_file, candidates), (scores_file, rows_scores)):
                    file.seek(4 * self._width * int(self._filled[share]))
                    file.write(np.ascontiguousarray(rows[inside]).data)
                self._filled[share] += int(inside.sum())

    def __iter__(self) -> Iterator[_Share]:
        for start in self._starts.tolist():
            end = min(start + self._rows, len(self._order))
            visits = self._order[start:end]
            items = np.sort(visits)
            yield _Share(
                items,
                np.searchsorted(items, visits),
                self._read(self._paths, np.int32, start, end),
                self._read(self._scores, np.float32, start, end),
                end,
            )

    def _read(self, file: Path, kind: type, start: int, end: int) -> Any:
        count = (end - start) * self._width
        return np.fromfile(file, kind, count, offset=4 * start * self._width).reshape(end - start, self._width)


def _parts(count: int, size: int) -> Iterator[tuple[int, int]]:
    for first in range(0, count, max(1, size)):
        yield first, min(first + max(1, size), count)
