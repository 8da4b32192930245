"""Held-out data: random users cut in half (the paper's protocol), a cut in time, or the last items of every user."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pathdex.data.interactions import Interactions
from pathdex.data.ragged import Ragged
from pathdex.data.vocabulary import Vocabulary
from pathdex.errors import DataError


@dataclass(frozen=True, eq=False)
class Queries:
    """What a recommender is asked (`history`) and what came after (`truth`), one row per user."""

    users: Vocabulary
    history: Ragged
    truth: Ragged

    def __len__(self) -> int:
        return len(self.history)

    def __repr__(self) -> str:
        return f"Queries({len(self):,} users, {len(self.truth.values):,} items to find)"


@dataclass(frozen=True, eq=False)
class Split:
    """Training data and two sets of queries, all over the same catalogue."""

    train: Interactions
    valid: Queries
    test: Queries


def split_users(data: Interactions, *, valid_users: int = 0, test_users: int = 0, seed: int = 0) -> Split:
    """Hold out whole users, drawn at random: the first half of a row is the history, the rest the truth.

    The protocol of the paper's experiments. A row of n items gives n // 2 items of history; repeats in the truth
    count. Only users with two or more interactions can be held out; the others stay in the training data. Where the
    data has no order, the halves are drawn at random, with a warning.
    """
    _check_count("valid_users", valid_users)
    _check_count("test_users", test_users)
    _check_count("seed", seed)
    able = holdable_users(data)
    held_out = valid_users + test_users
    problem = shortage(data.num_users, len(able), valid_users, test_users)
    if problem:
        raise DataError(problem)
    if held_out and not data.ordered:
        warnings.warn(
            "the data has no order (it came from a matrix), so the history of a held-out user is a random half of "
            "the row; read from a source with a time column to predict what comes next",
            UserWarning,
            stacklevel=2,
        )
    generator = np.random.default_rng(seed)
    drawn = generator.permutation(able)[:held_out]
    valid, test = np.sort(drawn[:valid_users]), np.sort(drawn[valid_users:])
    train = np.setdiff1d(np.arange(data.num_users), drawn)
    return Split(data.take(train), _halves(data, valid, generator), _halves(data, test, generator))


def split_temporal(data: Interactions, *, valid_share: float = 0.1, test_share: float = 0.1) -> Split:
    """Cut all rows at two moments, so that about the given shares of the interactions lie after each.

    Training sees what happened before the first cut. A query is a user's rows before a cut (history) and between it
    and the next cut, or the end (truth); users without either give no query. Rows of the same moment stay together,
    so the shares are met as nearly as the times allow.
    """
    for name, share in (("valid_share", valid_share), ("test_share", test_share)):
        if not (isinstance(share, int | float) and 0 <= share < 1):
            raise DataError(f"{name}={share!r}: must be a number from 0 up to, not including, 1")
    if valid_share + test_share >= 1:
        raise DataError(
            f"valid_share={valid_share}, test_share={test_share}: together must stay below 1, "
            "or nothing is left to train on"
        )
    if data.times is None or not data.ordered:
        raise DataError(
            "a temporal split needs times and the data has none; read it with time=<column>, or split by users"
        )
    ends = np.sort(data.times)
    first, second = (
        _moment(ends, 1 - valid_share - test_share),
        _moment(ends, 1 - test_share),
    )
    before_first, before_second = _rows_before(data, first), _rows_before(data, second)
    if not before_first.any():
        raise DataError(
            f"valid_share={valid_share}, test_share={test_share}: no interaction lies before the first cut; "
            "the times differ too little; lower the shares or split by users"
        )
    return Split(
        _heads(data, before_first),
        _queries(data, before_first, before_second),
        _queries(data, before_second, data.sequences.lengths),
    )


def split_leave_last(data: Interactions, *, k: int = 1) -> Split:
    """Every user's last k items are the truth of the test, the k before these of the validation.

    The history is all that comes before the truth, so a test history holds the validation items. Users with 2k items
    or fewer stay in the training data wholly and give no query.
    """
    _check_count("k", k, low=1)
    if not data.ordered:
        raise DataError(
            "the data has no order (it came from a matrix), so it has no last items; "
            "read it from a source with a time column, or split by users"
        )
    lengths = data.sequences.lengths
    long = lengths > 2 * k
    if not long.any():
        raise DataError(f"k={k}: no user has more than {2 * k} interactions; lower k")
    nothing = np.zeros_like(lengths)
    return Split(
        _heads(data, np.where(long, lengths - 2 * k, lengths)),
        _queries(data, np.where(long, lengths - 2 * k, nothing), np.where(long, lengths - k, nothing)),
        _queries(data, np.where(long, lengths - k, nothing), np.where(long, lengths, nothing)),
    )


SPLITS: dict[str, Callable[..., Split]] = {
    "users": split_users,
    "temporal": split_temporal,
    "leave-last": split_leave_last,
}


def make_split(data: Interactions, kind: str = "users", **options: Any) -> Split:
    """One of `SPLITS` by name."""
    if kind not in SPLITS:
        raise DataError(f"split={kind!r}: must be one of {', '.join(SPLITS)}")
    return SPLITS[kind](data, **options)


def holdable_users(data: Interactions) -> NDArray[np.intp]:
    """The rows that have both a first and a second half."""
    return np.flatnonzero(data.sequences.lengths >= 2)


def shortage(users: int, able: int, valid_users: int, test_users: int) -> str | None:
    """Why that many users cannot be held out, or None."""
    held_out = valid_users + test_users
    asked = f"valid_users={valid_users}, test_users={test_users}"
    if held_out > able:
        return (
            f"{asked}: {held_out:,} users are to be held out, but only {able:,} have two or more interactions; "
            "lower the numbers or min_interactions"
        )
    if held_out == users:
        return f"{asked}: no user is left to train on; there are {users:,}; lower the numbers"
    return None


def _check_count(name: str, value: object, low: int = 0) -> None:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < low:
        raise DataError(f"{name}={value!r}: must be a whole number of at least {low}")


def _halves(data: Interactions, rows: NDArray[np.intp], generator: np.random.Generator) -> Queries:
    sequences = data.sequences.take(rows)
    if not data.ordered:
        # Sorting random numbers within each row shuffles the row.
        owner = np.repeat(np.arange(len(rows)), sequences.lengths)
        order = np.lexsort((generator.random(len(owner)), owner))
        sequences = Ragged(sequences.values[order], sequences.offsets)
    history, truth = sequences.split_at(sequences.lengths // 2)
    return Queries(data.users.take(rows), history, truth)


def _heads(data: Interactions, cuts: NDArray[np.int64]) -> Interactions:
    """The first `cuts[i]` items of every row; rows that become empty are left out."""
    rows = np.flatnonzero(cuts > 0)
    kept = data.take(rows)
    starts = kept.sequences.offsets[:-1]
    heads, _ = kept.sequences.split_at(cuts[rows])
    times = None
    if kept.times is not None:
        within = np.arange(len(kept.times)) - np.repeat(starts, kept.sequences.lengths)
        times = kept.times[within < np.repeat(cuts[rows], kept.sequences.lengths)]
    return replace(kept, sequences=heads, times=times)


def _queries(data: Interactions, cuts: NDArray[np.int64], ends: NDArray[np.int64]) -> Queries:
    """History up to `cuts[i]`, truth from there to `ends[i]`, for the rows that have both."""
    rows = np.flatnonzero((cuts > 0) & (ends > cuts))
    upto, _ = data.sequences.take(rows).split_at(ends[rows])
    history, truth = upto.split_at(cuts[rows])
    return Queries(data.users.take(rows), history, truth)


def _moment(sorted_times: NDArray[np.float64], share: float) -> float:
    """The time before which about `share` of the interactions lie; all of them for a share of 1."""
    place = round(share * len(sorted_times))
    return float("inf") if place >= len(sorted_times) else float(sorted_times[place])


def _rows_before(data: Interactions, moment: float) -> NDArray[np.int64]:
    """How many items of each row lie before the moment; rows are in the order of time."""
    assert data.times is not None
    seen = np.concatenate([[0], np.cumsum(data.times < moment)])
    counts: NDArray[np.int64] = seen[data.sequences.offsets[1:]] - seen[data.sequences.offsets[:-1]]
    return counts
