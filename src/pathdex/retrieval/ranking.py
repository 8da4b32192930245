"""The exact top n under filters, for every estimator; ties go by item.

`TopN` selects from blocks of the catalogue and `top_n_of` from a few scored candidates per query.
`fill_in_order` completes short answers from a fixed order of the catalogue.
"""

# mypy: disallow-untyped-decorators=False

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from pathdex.data.ragged import Ragged
from pathdex.data.vocabulary import UNKNOWN
from pathdex.kernels.topk import heap_push
from pathdex.kernels.types import Floats, Int32s, Ints, Mask
from pathdex.retrieval.filters import NO_FILTERS, Filters


class Ranking(NamedTuple):
    """The answer to a batch of queries, in codes."""

    items: Ints
    """(query, n) best first, padded with `UNKNOWN` (-1)."""
    scores: Floats
    """(query, n), padded with -inf."""
    candidates: Ints
    """(query,) the number of items that were scored."""

    def copy(self) -> Ranking:
        return Ranking(self.items.copy(), self.scores.copy(), self.candidates.copy())


class TopN:
    """A running top n over blocks of the catalogue, for scores that do not fit in memory at once."""

    def __init__(self, num_queries: int, num_items: int, n: int, filters: Filters = NO_FILTERS) -> None:
        self.n = n
        self._filters = _compiled_filters(filters, num_queries, num_items)
        self._best = no_ranking(num_queries, min(n, num_items))
        self._sizes = np.zeros(num_queries, np.int64)

    def add(self, scores: Floats, first: int = 0) -> None:
        """Add `scores` (query, item) of the items `first`, `first + 1`, ...; blocks must come in ascending order."""
        _add_block(scores, first, self._filters, self._best, self._sizes)

    def ranking(self) -> Ranking:
        """The answer so far; `candidates` counts the eligible items that were added."""
        return _sorted_ranking(self._best, self.n)


def top_n_of(candidates: Ragged, scores: Floats, num_items: int, n: int, filters: Filters = NO_FILTERS) -> Ranking:
    """The best n of each query's distinct candidates; `scores` belong to `candidates.values`."""
    best = no_ranking(len(candidates), min(n, num_items))
    compiled = _compiled_filters(filters, len(candidates), num_items)
    _add_candidates(candidates.values, candidates.offsets, scores, compiled, best)
    return _sorted_ranking(best, n)


def fill_in_order(ranking: Ranking, order: Ints, scores: Floats, filters: Filters = NO_FILTERS) -> Ranking:
    """Fill rows that end in `UNKNOWN` with the first eligible items of `order` that they do not hold yet.

    `order` is a permutation of the catalogue and `scores[v]` the score of item v if it is filled in. Scores should
    descend along `order` and not exceed the lowest score already there, so that the answer stays sorted.
    """
    filled = ranking.copy()
    _fill(filled, order, scores, _compiled_filters(filters, len(ranking.items), len(order)))
    return filled


def no_ranking(num_queries: int, n: int) -> Ranking:
    """An answer without items."""
    return Ranking(
        np.full((num_queries, n), UNKNOWN, np.int64),
        np.full((num_queries, n), -np.inf, np.float32),
        np.zeros(num_queries, np.int64),
    )


def join_rankings(parts: Sequence[Ranking]) -> Ranking:
    """Concatenate the answers to several batches."""
    return Ranking(*map(np.concatenate, zip(*parts, strict=True)))


def row_blocks(count: int, size: int) -> list[Ints]:
    """The rows 0..count-1 in blocks of `size`; one empty block if there are none."""
    return [np.arange(start, min(start + size, count)) for start in range(0, max(count, 1), size)]


def incomplete_rows(ranking: Ranking, filters: Filters, num_items: int) -> Ints:
    """The queries whose answer lacks items that their filters allow."""
    found = (ranking.items != UNKNOWN).sum(axis=1)
    lacking = np.flatnonzero(found < min(ranking.items.shape[1], num_items))
    # Masks over the whole catalogue are built only for queries that lack items.
    eligible = [int(filters.eligible(int(row), num_items).sum()) for row in lacking]
    short: Ints = lacking[found[lacking] < np.minimum(eligible, ranking.items.shape[1])]
    return short


def replace_rows(ranking: Ranking, rows: Ints, better: Ranking) -> Ranking:
    """The ranking with the given rows replaced by those of `better`."""
    replaced = ranking.copy()
    replaced.items[rows], replaced.scores[rows], replaced.candidates[rows] = better
    return replaced


class _CompiledFilters(NamedTuple):
    """`Filters` for compiled loops: without None, and with `stamps` that mark what the current query excludes."""

    exclude: Int32s
    offsets: Ints
    masks: Mask
    """(mask, item): what `allow` and `where` allow; queries with the same filters share a mask."""
    mask_of: Ints
    stamps: Ints


def _compiled_filters(filters: Filters, num_queries: int, num_items: int) -> _CompiledFilters:
    exclude = filters.exclude
    if exclude is None:
        exclude = Ragged(np.empty(0, np.int32), np.zeros(num_queries + 1, np.int64))
    position_of: dict[tuple[int, int], int] = {}
    masks: list[Mask] = []
    mask_of = np.zeros(num_queries, np.int64)
    for query in range(num_queries):
        key = id(filters.allow_of(query)), id(filters.where_of(query))
        if key not in position_of:
            position_of[key] = len(masks)
            masks.append(filters.allowed(query, num_items))
        mask_of[query] = position_of[key]
    stacked = np.stack(masks) if masks else np.empty((0, num_items), np.bool_)
    stamps = np.full(num_items, UNKNOWN, np.int64)
    return _CompiledFilters(exclude.values, exclude.offsets, stacked, mask_of, stamps)


def _sorted_ranking(best: Ranking, n: int) -> Ranking:
    ties = np.where(best.items == UNKNOWN, np.iinfo(np.int64).max, best.items)
    order = np.lexsort((ties, -best.scores))
    answer = no_ranking(len(best.items), n)
    kept = best.items.shape[1]
    answer.items[:, :kept] = np.take_along_axis(best.items, order, axis=1)
    answer.scores[:, :kept] = np.take_along_axis(best.scores, order, axis=1)
    return answer._replace(candidates=best.candidates.copy())


@njit(cache=True, nogil=True)
def _stamp_excluded(filters: _CompiledFilters, query: int) -> None:
    for position in range(filters.offsets[query], filters.offsets[query + 1]):
        filters.stamps[filters.exclude[position]] = query


@njit(cache=True, nogil=True)
def _add_block(scores: Floats, first: int, filters: _CompiledFilters, best: Ranking, sizes: Ints) -> None:
    for query in range(scores.shape[0]):
        _stamp_excluded(filters, query)
        allowed = filters.masks[filters.mask_of[query]]
        items, kept, size, eligible = best.items[query], best.scores[query], sizes[query], 0
        # Items come in ascending order, so one that only equals the worst kept score never replaces it.
        worst = kept[0] if size == len(items) else -np.inf
        for column in range(scores.shape[1]):
            item = first + column
            if allowed[item] and filters.stamps[item] != query:
                eligible += 1
                if size < len(items) or scores[query, column] > worst:
                    size = heap_push(items, kept, size, item, scores[query, column])
                    worst = kept[0]
        sizes[query] = size
        best.candidates[query] += eligible


@njit(cache=True, nogil=True)
def _add_candidates(
    candidates: Int32s, offsets: Ints, scores: Floats, filters: _CompiledFilters, best: Ranking
) -> None:
    for query in range(len(offsets) - 1):
        _stamp_excluded(filters, query)
        allowed = filters.masks[filters.mask_of[query]]
        size: Any = np.int64(0)
        for position in range(offsets[query], offsets[query + 1]):
            item = candidates[position]
            if allowed[item] and filters.stamps[item] != query:
                best.candidates[query] += 1
                size = heap_push(best.items[query], best.scores[query], size, np.int64(item), scores[position])


@njit(cache=True, nogil=True)
def _fill(filled: Ranking, order: Ints, scores: Floats, filters: _CompiledFilters) -> None:
    for query in range(filled.items.shape[0]):
        items = filled.items[query]
        size = 0
        while size < len(items) and items[size] != UNKNOWN:
            filters.stamps[items[size]] = query
            size += 1
        _stamp_excluded(filters, query)
        allowed = filters.masks[filters.mask_of[query]]
        for item in order:
            if size == len(items):
                break
            if allowed[item] and filters.stamps[item] != query:
                items[size] = item
                filled.scores[query, size] = scores[item]
                filled.candidates[query] += 1
                size += 1
