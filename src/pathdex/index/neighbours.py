"""The nearest neighbours of every item, by the cosine similarity of their users."""

# mypy: disallow-untyped-decorators=False

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy import sparse

from pathdex.data.ragged import Ragged
from pathdex.data.vocabulary import UNKNOWN
from pathdex.kernels.neighbours import Neighbours
from pathdex.kernels.topk import heap_push
from pathdex.kernels.types import Floats, Int32s, Ints
from pathdex.storage.scratch import scratch_array

T = TypeVar("T", bound=np.generic)
ITEMS_PER_BLOCK = 4096
PAIRS_PER_BLOCK = 10_000_000
"""A thread computes one block at a time, which ends at whichever bound is reached first."""
NO_LISTS = Neighbours(np.zeros(1, np.int64), np.empty(0, np.int32), np.empty(0, np.float32))
"""The lists of no items."""


def nearest_items(
    matrix: sparse.csr_array,
    k: int,
    *,
    shrinkage: float = 0.0,
    threads: int | None = None,
    items: NDArray[np.integer] | None = None,
) -> Neighbours:
    """The k most similar items of each item, or only of some `items`, from a matrix (user, item) of weights.

    sim(i, j) = x_i . x_j / (|x_i| |x_j| + shrinkage), where x_i is item i's column; ties go by item. Items without a
    common user are no neighbours. The result does not depend on `threads` (default: all cores).
    """
    items_of = _Rows.of(matrix)
    users_of = _transposed(items_of, matrix.shape[1])
    norms = _norms(users_of)
    wanted = np.arange(matrix.shape[1]) if items is None else np.asarray(items, np.int64)
    if not len(wanted):
        return NO_LISTS

    def nearest(block: range) -> tuple[Ints, Int32s, Floats]:
        near = np.full((len(block), k), UNKNOWN, np.int32)
        scores = np.zeros((len(block), k), np.float32)
        own = wanted[block.start : block.stop]
        _nearest_neighbours(own, users_of, items_of, norms, float(shrinkage), near, scores)
        found = near != UNKNOWN
        return found.sum(axis=1), near[found], scores[found]

    blocks = _blocks(_pairs(users_of, items_of)[wanted])
    with ThreadPoolExecutor(threads or os.cpu_count()) as pool:
        lengths, near, scores = map(list, zip(*pool.map(nearest, blocks), strict=True))
    offsets = np.concatenate([[0], np.cumsum(_joined(lengths))])
    return Neighbours(offsets, _joined(near), _joined(scores))


def without_hidden(neighbours: Neighbours, num_items: int) -> Neighbours:
    """The lists of `num_items` items without hidden ones; items past the end of the lists get empty lists."""
    hidden = np.zeros(num_items, np.bool_)
    hidden[: len(neighbours.hidden)] = neighbours.hidden[:num_items]
    lengths, parts = np.zeros(num_items, np.int64), []
    for first in range(0, len(neighbours.offsets) - 1, ITEMS_PER_BLOCK):
        ends = neighbours.offsets[first : first + ITEMS_PER_BLOCK + 1]
        entries = slice(ends[0], ends[-1])
        owners = np.repeat(np.arange(first, first + len(ends) - 1), np.diff(ends))
        kept = ~(hidden[owners] | hidden[neighbours.items[entries]])
        lengths[first : first + len(ends) - 1] = np.bincount(owners[kept] - first, minlength=len(ends) - 1)
        parts.append((neighbours.items[entries][kept], neighbours.similarities[entries][kept]))
    items, similarities = (
        map(list, zip(*parts, strict=True)) if parts else ([neighbours.items], [neighbours.similarities])
    )
    return Neighbours(np.concatenate([[0], np.cumsum(lengths)]), _joined(items), _joined(similarities))


def rows_of(matrix: sparse.csr_array) -> Ragged:
    """The non-empty columns of each row."""
    return Ragged(matrix.indices.astype(np.int32, copy=False), matrix.indptr.astype(np.int64, copy=False))


def _joined(parts: list[NDArray[T]]) -> NDArray[T]:
    """All parts in one array. Empties the list, since parts and whole together would take the most memory."""
    joined = np.concatenate(parts)
    parts.clear()
    return joined


class _Rows(NamedTuple):
    """A sparse matrix in rows, as the compiled loop reads it."""

    columns: Int32s
    offsets: Ints
    weights: Floats

    @classmethod
    def of(cls, matrix: sparse.csr_array) -> _Rows:
        rows = rows_of(matrix)
        return cls(rows.values, rows.offsets, matrix.data)


def _blocks(pairs: Ints) -> list[range]:
    """Ranges of items with about equal work, counted in `pairs` of items that share a user."""
    companions, num_items = np.concatenate([[0], np.cumsum(pairs)]), len(pairs)
    blocks, start = [], 0
    while start < num_items:
        end = int(np.searchsorted(companions, companions[start] + PAIRS_PER_BLOCK, side="right")) - 1
        end = min(max(end, start + 1), start + ITEMS_PER_BLOCK, num_items)
        blocks.append(range(start, end))
        start = end
    return blocks


def _transposed(rows: _Rows, num_columns: int) -> _Rows:
    """The same matrix by columns, each in the order of the rows."""
    offsets = np.zeros(num_columns + 1, np.int64)
    _count_columns(rows.columns, offsets[1:])
    offsets = np.cumsum(offsets)
    count = len(rows.columns)
    turned = _Rows(scratch_array(count, np.int32), offsets, scratch_array(count, np.float32))
    _turn(rows, offsets[:-1].copy(), turned.columns, turned.weights)
    return turned


@njit(cache=True, nogil=True)
def _count_columns(columns: Int32s, counts: Ints) -> None:
    for column in columns:
        counts[column] += 1


@njit(cache=True, nogil=True)
def _turn(rows: _Rows, free: Ints, columns: Int32s, weights: Floats) -> None:
    """Write the entries of every column at its next free place."""
    for row in range(len(rows.offsets) - 1):
        for entry in range(rows.offsets[row], rows.offsets[row + 1]):
            place = free[rows.columns[entry]]
            columns[place], weights[place] = row, rows.weights[entry]
            free[rows.columns[entry]] += 1


@njit(cache=True, nogil=True)
def _norms(rows: _Rows) -> Floats:
    """The Euclidean length of each row."""
    norms = np.empty(len(rows.offsets) - 1, np.float32)
    for row in range(len(norms)):
        total = 0.0
        for entry in range(rows.offsets[row], rows.offsets[row + 1]):
            total += rows.weights[entry] * rows.weights[entry]
        norms[row] = np.sqrt(total)
    return norms


@njit(cache=True, nogil=True)
def _pairs(users_of: _Rows, items_of: _Rows) -> Ints:
    """For each item, the number of items that its users have."""
    pairs = np.zeros(len(users_of.offsets) - 1, np.int64)
    for item in range(len(pairs)):
        for entry in range(users_of.offsets[item], users_of.offsets[item + 1]):
            user = users_of.columns[entry]
            pairs[item] += items_of.offsets[user + 1] - items_of.offsets[user]
    return pairs


@njit(cache=True, nogil=True)
def _nearest_neighbours(
    items: Ints, users_of: _Rows, items_of: _Rows, norms: Floats, shrinkage: float, nearest: Int32s, scores: Floats
) -> None:
    """Fill heaps (item, neighbour) for some items from their users' items."""
    products = np.zeros(len(norms), np.float32)
    touched = np.empty(len(norms), np.int32)
    for row in range(len(nearest)):
        item, count = items[row], 0
        size: Any = np.int64(0)
        for entry in range(users_of.offsets[item], users_of.offsets[item + 1]):
            user, weight = users_of.columns[entry], users_of.weights[entry]
            for position in range(items_of.offsets[user], items_of.offsets[user + 1]):
                other = items_of.columns[position]
                if products[other] == 0:
                    touched[count] = other
                    count += 1
                products[other] += weight * items_of.weights[position]
        for other in touched[:count]:
            score = np.float32(products[other] / (norms[item] * norms[other] + shrinkage))
            products[other] = 0
            if other != item:
                size = heap_push(nearest[row], scores[row], size, np.int64(other), score)
