"""Train, validation and test splits: by users (the paper's protocol), by time, or by the last items of every user."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pathdex.data.interactions import Interactions
from pathdex.data.ragged import Ragged
from pathdex.data.vocabulary import Vocabulary
from pathdex.errors import DataError, Problem
from pathdex.parameters import count_problems
from pathdex.storage.scratch import blocks, scratch_array


@dataclass(frozen=True, eq=False)
class Queries:
    """Held-out histories and the items that followed them (`truth`), one row per user."""

    users: Vocabulary
    history: Ragged
    truth: Ragged

    def __len__(self) -> int:
        return len(self.history)

    def take(self, rows: NDArray[np.integer]) -> Queries:
        """The given rows, in the given order."""
        return Queries(self.users.take(rows), self.history.take(rows), self.truth.take(rows))

    def __repr__(self) -> str:
        return f"Queries({len(self):,} users, {len(self.truth.values):,} items to find)"


@dataclass(frozen=True, eq=False)
class Split:
    """Training data, validation queries and test queries over one catalogue."""

    train: Interactions
    valid: Queries
    test: Queries


def split_users(data: Interactions, *, valid_users: int = 0, test_users: int = 0, seed: int = 0) -> Split:
    """Hold out random users: the first half of a sequence is the history, the second half the truth.

    The protocol of the paper's experiments. A sequence of n items gives n // 2 items of history; repeats in the truth
    are kept. Only users with two or more interactions can be held out. If the data has no order, the halves are drawn
    at random, with a warning.
    """
    _check_count("valid_users", valid_users)
    _check_count("test_users", test_users)
    _check_count("seed", seed)
    able = users_to_hold_out(data)
    held_out = valid_users + test_users
    problem = too_few_users(data.num_users, len(able), valid_users, test_users)
    if problem:
        raise DataError(problem)
    if held_out and not data.ordered:
        warnings.warn(
            "the data has no order (it came from a matrix), so the history of a held-out user is a random half of "
            "the items; read from a source with a time column to predict what comes next",
            UserWarning,
            stacklevel=2,
        )
    generator = np.random.default_rng(seed)
    drawn = generator.permutation(able)[:held_out]
    valid, test = np.sort(drawn[:valid_users]), np.sort(drawn[valid_users:])
    train = np.setdiff1d(np.arange(data.num_users), drawn)
    return Split(data.take(train), _halves(data, valid, generator), _halves(data, test, generator))


def split_like(data: Interactions, earlier: Split) -> Split:
    """Hold out the users that an earlier split of users held out, as far as the data has them with a history and truth.

    A model that was trained on the earlier split has not seen them. Other users are training data.
    """
    able = users_to_hold_out(data)
    held_out = [
        np.intersect1d(data.users.codes(one.users.ids(np.arange(len(one)))), able)
        for one in (earlier.valid, earlier.test)
    ]
    valid, test = held_out
    generator = np.random.default_rng(0)
    train = np.setdiff1d(np.arange(data.num_users), np.concatenate(held_out))
    if not len(train):
        raise DataError(Problem("no user is left to train on: all were held out before", "split", remedy="add users"))
    return Split(data.take(train), _halves(data, valid, generator), _halves(data, test, generator))


def split_temporal(data: Interactions, *, valid_share: float = 0.1, test_share: float = 0.1) -> Split:
    """Cut all sequences at two times, so that about the given shares of the interactions follow each cut.

    Training data is everything before the first cut. A query is a user's interactions before a cut (history) and from
    there to the next cut or the end (truth); users who lack either give no query. Interactions with equal times stay
    together, so the shares are approximate.
    """
    for name, share in (("valid_share", valid_share), ("test_share", test_share)):
        if not (isinstance(share, int | float) and 0 <= share < 1):
            raise DataError(Problem("must be a number from 0 to less than 1", name, share))
    if valid_share + test_share >= 1:
        rule = "must be less than 1, or no training data is left"
        raise DataError(Problem(rule, "valid_share + test_share", valid_share + test_share, "lower one of them"))
    if data.times is None or not data.ordered:
        rule = "a temporal split needs times, and the data has none"
        raise DataError(Problem(rule, remedy="read it with time=<column>, or split by users"))
    ends = scratch_array(len(data.times), np.float64)
    ends[:] = data.times
    ends.sort()
    first, second = (_moment(ends, 1 - valid_share - test_share), _moment(ends, 1 - test_share))
    before_first, before_second = _rows_before(data, first), _rows_before(data, second)
    if not before_first.any():
        rule = "no interaction is before the first cut, since the times differ too little"
        remedy = "lower the shares or split by users"
        raise DataError(Problem(rule, "valid_share + test_share", valid_share + test_share, remedy))
    return Split(
        _heads(data, before_first),
        _queries(data, before_first, before_second),
        _queries(data, before_second, data.sequences.lengths),
    )


def split_leave_last(data: Interactions, *, k: int = 1) -> Split:
    """Every user's last k items are the test truth, the k items before them the validation truth.

    The history is everything before the truth, so a test history includes the validation items. Users with 2k items or
    fewer are training data only.
    """
    _check_count("k", k, low=1)
    if not data.ordered:
        rule = "the data has no order (it came from a matrix), so it has no last items"
        raise DataError(Problem(rule, remedy="read it from a source with a time column, or split by users"))
    lengths = data.sequences.lengths
    long = lengths > 2 * k
    if not long.any():
        raise DataError(Problem(f"no user has more than {2 * k} interactions", "k", k, "lower k"))
    before_valid, before_test, end = (np.where(long, lengths - rest, 0) for rest in (2 * k, k, 0))
    train = _heads(data, np.where(long, before_valid, lengths))
    return Split(train, _queries(data, before_valid, before_test), _queries(data, before_test, end))


def hold_out_tails(data: Interactions, num_users: int, *, seed: int = 0) -> tuple[Interactions, Queries]:
    """Cut the second half off the sequences of `num_users` random users: the rest of the data, and these as queries.

    For choices within a training. Unlike with `split_users`, the first halves stay in the training data, so that little
    of it is lost.
    """
    able = users_to_hold_out(data)
    generator = np.random.default_rng(seed)
    rows = np.sort(generator.permutation(able)[:num_users])
    lengths = data.sequences.lengths
    cuts = lengths.copy()
    cuts[rows] = lengths[rows] // 2
    return _heads(data, cuts), _queries(data, np.where(cuts < lengths, cuts, 0), lengths)


SPLITS: dict[str, Callable[..., Split]] = {
    "users": split_users,
    "temporal": split_temporal,
    "leave-last": split_leave_last,
}


def make_split(data: Interactions, kind: str = "users", **options: Any) -> Split:
    """One of `SPLITS` by name."""
    if kind not in SPLITS:
        raise DataError(Problem(f"must be one of {', '.join(SPLITS)}", "split", kind))
    return SPLITS[kind](data, **options)


def users_to_hold_out(data: Interactions) -> NDArray[np.intp]:
    """The users with two or more interactions: only these have a history and a truth."""
    return np.flatnonzero(data.sequences.lengths >= 2)


def too_few_users(users: int, able: int, valid_users: int, test_users: int) -> Problem | None:
    """The problem with holding out that many users of `users`, of whom `able` can be held out; or None."""
    argument, held_out = "valid_users + test_users", valid_users + test_users
    if held_out > able:
        rule = f"only {able:,} of {users:,} users have two or more interactions and can be held out"
        return Problem(rule, argument, held_out, "lower the numbers or min_interactions")
    if held_out == users:
        return Problem(f"no user is left to train on; there are {users:,}", argument, held_out, "lower the numbers")
    return None


def _check_count(name: str, value: object, low: int = 0) -> None:
    if problems := count_problems(name, value, low):
        raise DataError(*problems)


def _halves(data: Interactions, rows: NDArray[np.intp], generator: np.random.Generator) -> Queries:
    sequences = data.take(rows).shuffled_if_unordered(int(generator.integers(2**31))).sequences
    history, truth = sequences.split_at(sequences.lengths // 2)
    return Queries(data.users.take(rows), history, truth)


def _heads(data: Interactions, cuts: NDArray[np.int64]) -> Interactions:
    """The first `cuts[i]` items of every row; empty rows are dropped."""
    rows = np.flatnonzero(cuts > 0)
    return data.take(rows, cuts[rows])


def _queries(data: Interactions, cuts: NDArray[np.int64], ends: NDArray[np.int64]) -> Queries:
    """History up to `cuts[i]`, truth from there to `ends[i]`, for the rows that have both."""
    rows = np.flatnonzero((cuts > 0) & (ends > cuts))
    upto, _ = data.sequences.take(rows).split_at(ends[rows])
    history, truth = upto.split_at(cuts[rows])
    return Queries(data.users.take(rows), history, truth)


def _moment(sorted_times: NDArray[np.float64], share: float) -> float:
    """The time before which about `share` of the interactions happened; infinity for a share of 1."""
    place = round(share * len(sorted_times))
    return float("inf") if place >= len(sorted_times) else float(sorted_times[place])


def _rows_before(data: Interactions, moment: float) -> NDArray[np.int64]:
    """How many items of each row are before the moment."""
    assert data.times is not None
    offsets, counts = data.sequences.offsets, np.zeros(data.num_users, np.int64)
    for part in blocks(data.num_interactions):
        early = np.flatnonzero(data.times[part] < moment) + part.start
        # Codes of users, so an array as long as that of the users is enough.
        counts += np.bincount(np.searchsorted(offsets, early, side="right") - 1, minlength=len(counts))
    return counts
