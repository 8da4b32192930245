"""The scores s[v, c]: the S best paths of every item, estimated in one pass over a stream (Section 3)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from numba import njit
from numpy.typing import ArrayLike

from pathdex.errors import DataError
from pathdex.index.checks import check_int, check_number, int_array, score_array
from pathdex.kernels.hashing import EMPTY, find_slot, new_table, rows_with_repeats
from pathdex.kernels.threads import run_ranges
from pathdex.kernels.types import Floats, Ints

ROWS_PER_RANGE = 256
"""Rows that are worth a thread."""


@dataclass(frozen=True, eq=False)
class ScoreTable:
    """The S best paths of every item, best first; rows are padded with code -1 and score 0."""

    codes: Ints
    """(item, candidate path)"""
    scores: Floats
    """(item, candidate path)"""

    @classmethod
    def empty(cls, num_items: int, candidate_paths: int) -> ScoreTable:
        """An empty table of `num_items` items with S = `candidate_paths` paths each."""
        shape = check_int("num_items", num_items), check_int("candidate_paths", candidate_paths)
        return cls(np.full(shape, EMPTY, np.int64), np.zeros(shape, np.float32))

    @property
    def num_items(self) -> int:
        return len(self.codes)

    @property
    def candidate_paths(self) -> int:
        return int(self.codes.shape[1])

    def __repr__(self) -> str:
        return f"ScoreTable({self.num_items:,} items, {self.candidate_paths} paths each)"

    def update(
        self, items: ArrayLike, codes: ArrayLike, scores: ArrayLike, decay: float, *, min_score: bool = True
    ) -> None:
        """Apply training instances in order, in place: instance i saw `items[i]` on the paths `codes[i]`.

        Without `min_score`, a path that enters a full list starts from 0 (an ablation).

        `codes` (instance, path) is padded with -1. Items are independent, so they are updated in parallel, each with
        its instances in order; the result does not depend on the number of threads.
        """
        items, codes, scores = self._check(items, codes, scores)
        decay = check_number("decay", decay, low=0.0, high=1.0)
        if (repeats := np.flatnonzero(rows_with_repeats(codes))).size:
            raise DataError(f"codes: row {repeats[0]} holds a path twice, must be distinct; add up its scores first")
        order = np.argsort(items, kind="stable")
        starts = np.flatnonzero(np.diff(items[order], prepend=-1))
        ends = np.append(starts[1:], len(items))
        rates = np.float32(decay), np.float32(decay if min_score else 0.0)
        work = partial(_update_items, self.codes, self.scores, items, order, starts, ends, codes, scores, *rates)
        run_ranges(work, len(starts), least=ROWS_PER_RANGE)

    def set_rows(self, items: ArrayLike, codes: ArrayLike, scores: ArrayLike) -> None:
        """Replace the rows of these items by the S best of new lists (item, path), in place.

        The scores of a code that a list repeats are added.
        """
        items, codes, scores = self._check(items, codes, scores)
        if len(np.unique(items)) != len(items):
            raise DataError("items: holds an item twice, must be distinct; join the lists of each item")
        run_ranges(partial(_set_rows, self.codes, self.scores, items, codes, scores), len(items), least=ROWS_PER_RANGE)

    def _check(self, items: ArrayLike, codes: ArrayLike, scores: ArrayLike) -> tuple[Ints, Ints, Floats]:
        items = int_array("items", items, None)
        if len(items) and (largest := items.max()) >= self.num_items:
            raise DataError(f"items: holds {largest}, must stay below {self.num_items}; the table has no such row")
        codes = int_array("codes", codes, len(items), None, low=EMPTY)
        return items, codes, score_array("scores", scores, *codes.shape)


def update_scores(
    codes: ArrayLike, scores: ArrayLike, new_codes: ArrayLike, new_scores: ArrayLike, decay: float
) -> tuple[Ints, Floats]:
    """One item's score list (code -1 where empty) after one training instance, as a new list, best first.

    Implements the streaming update of Section 3: with min_score = min_i s[c_i], for each path c of both lists

        in both lists:         s[c] <- decay * s[c] + s'[c]
        in the new list only:  s[c] <- decay * min_score + s'[c]
        in the old list only:  s[c] <- decay * s[c]

    and the S largest stay. Ties go to paths of the old list that were not seen again.

    Differs from the paper: min_score counts as 0 until the list is full, since no path has been pushed out before that.
    """
    codes = int_array("codes", codes, None, low=EMPTY)
    table = ScoreTable.empty(1, len(codes))
    table.set_rows([0], codes[None], score_array("scores", scores, len(codes))[None])
    table.update([0], np.asarray(new_codes)[None], np.asarray(new_scores)[None], decay)
    return table.codes[0], table.scores[0]


@njit(cache=True, nogil=True)
def _update_items(
    table_codes: Ints,
    table_scores: Floats,
    items: Ints,
    order: Ints,
    starts: Ints,
    ends: Ints,
    codes: Ints,
    scores: Floats,
    decay: np.float32,
    floor: np.float32,
    first: int,
    end: int,
) -> None:
    for group in range(first, end):
        item = items[order[starts[group]]]
        position_of = new_table(codes.shape[1])
        kept_codes, kept_scores = np.empty_like(table_codes[item]), np.empty_like(table_scores[item])
        touched_codes, touched_scores = np.empty_like(codes[0]), np.empty_like(scores[0])
        for instance in order[starts[group] : ends[group]]:
            # The new list becomes `touched`: its paths start from min_score, and those that the item's row also holds
            # are corrected below. `kept` is the rest of the row, which decay leaves in order.
            position_of[:, 0] = EMPTY
            min_score = table_scores[item, -1] if table_codes[item, -1] != EMPTY else np.float32(0)
            touched = 0
            for b in range(codes.shape[1]):
                touched_codes[b], touched_scores[b] = codes[instance, b], -1.0  # padding sorts to the end
                if codes[instance, b] != EMPTY:
                    slot = find_slot(position_of, codes[instance, b])
                    position_of[slot, 0], position_of[slot, 1] = codes[instance, b], b
                    touched_scores[b] = floor * min_score + scores[instance, b]
                    touched += 1
            kept = 0
            for s in range(table_codes.shape[1]):
                if table_codes[item, s] == EMPTY:
                    break
                slot = find_slot(position_of, table_codes[item, s])
                if position_of[slot, 0] == EMPTY:
                    kept_codes[kept], kept_scores[kept] = table_codes[item, s], decay * table_scores[item, s]
                    kept += 1
                else:
                    b = position_of[slot, 1]
                    touched_scores[b] = decay * table_scores[item, s] + scores[instance, b]
            _sort_descending(touched_codes, touched_scores)
            _merge(
                table_codes, table_scores, item, kept_codes, kept_scores, kept, touched_codes, touched_scores, touched
            )


@njit(cache=True, nogil=True)
def _sort_descending(codes: Ints, scores: Floats) -> None:
    # Insertion sort: stable, and a beam returns its paths almost in this order.
    for i in range(1, len(codes)):
        code, score = codes[i], scores[i]
        j = i
        while j > 0 and scores[j - 1] < score:
            codes[j], scores[j] = codes[j - 1], scores[j - 1]
            j -= 1
        codes[j], scores[j] = code, score


@njit(cache=True, nogil=True)
def _merge(
    table_codes: Ints,
    table_scores: Floats,
    item: int,
    codes_a: Ints,
    scores_a: Floats,
    length_a: int,
    codes_b: Ints,
    scores_b: Floats,
    length_b: int,
) -> None:
    """Write the S best of two sorted lists into an item's row; ties go to list a."""
    a = b = 0
    for s in range(table_codes.shape[1]):
        if a < length_a and (b == length_b or scores_a[a] >= scores_b[b]):
            table_codes[item, s], table_scores[item, s] = codes_a[a], scores_a[a]
            a += 1
        elif b < length_b:
            table_codes[item, s], table_scores[item, s] = codes_b[b], scores_b[b]
            b += 1
        else:
            table_codes[item, s], table_scores[item, s] = EMPTY, 0.0


@njit(cache=True, nogil=True)
def _set_rows(
    table_codes: Ints, table_scores: Floats, items: Ints, codes: Ints, scores: Floats, first: int, end: int
) -> None:
    position_of = new_table(codes.shape[1])
    row_codes, row_scores = np.empty(codes.shape[1], np.int64), np.empty(codes.shape[1], np.float32)
    for row in range(first, end):
        for slot in range(len(position_of)):
            position_of[slot, 0] = EMPTY
        length = 0
        for b in range(codes.shape[1]):
            if codes[row, b] == EMPTY:
                continue
            slot = find_slot(position_of, codes[row, b])
            if position_of[slot, 0] == EMPTY:
                position_of[slot, 0], position_of[slot, 1] = codes[row, b], length
                row_codes[length], row_scores[length] = codes[row, b], 0.0
                length += 1
            row_scores[position_of[slot, 1]] += scores[row, b]
        _sort_descending(row_codes[:length], row_scores[:length])
        for s in range(table_codes.shape[1]):
            known = s < length
            table_codes[items[row], s] = row_codes[s] if known else EMPTY
            table_scores[items[row], s] = row_scores[s] if known else 0.0
