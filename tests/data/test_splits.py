"""Splits by users, by time and by last items."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pathdex.data import (
    Interactions,
    Ragged,
    Vocabulary,
    make_split,
    read,
    split_leave_last,
    split_temporal,
    split_users,
)
from pathdex.data.splits import hold_out_tails, split_like
from pathdex.errors import DataError


def interactions(rows, *, ordered=True, times=None):
    ragged = Ragged.from_rows(rows)
    clock = None if times is None else np.array([time for row in times for time in row], np.float64)
    users = Vocabulary(np.arange(100, 100 + len(rows)))
    return Interactions(ragged, users, Vocabulary([f"i{code}" for code in range(50)]), clock, ordered)


def by_user(users, rows):
    return {users.id(row): values.tolist() for row, values in enumerate(rows)}


many_rows = st.lists(st.lists(st.integers(0, 49), min_size=1, max_size=9), min_size=1, max_size=12)


@settings(max_examples=50)
@given(many_rows, st.integers(0, 4), st.integers(0, 4), st.integers(0, 5))
def test_held_out_users_are_disjoint_and_their_halves_join_to_the_sequence(rows, valid_users, test_users, seed):
    data = interactions(rows)
    able = [row for row in rows if len(row) >= 2]
    if valid_users + test_users > len(able) or valid_users + test_users == len(rows):
        with pytest.raises(DataError):
            split_users(data, valid_users=valid_users, test_users=test_users, seed=seed)
        return
    split = split_users(data, valid_users=valid_users, test_users=test_users, seed=seed)
    assert (len(split.valid), len(split.test)) == (valid_users, test_users)
    rebuilt = by_user(split.train.users, split.train.sequences)
    for queries in (split.valid, split.test):
        history, truth = by_user(queries.users, queries.history), by_user(queries.users, queries.truth)
        for user in history:
            assert user not in rebuilt
            rebuilt[user] = history[user] + truth[user]
            assert len(history[user]) == len(rebuilt[user]) // 2
    assert rebuilt == by_user(data.users, data.sequences)
    assert split.train.items is data.items


def test_tails_are_cut_off_the_sequences_of_some_users():
    data = interactions([[1, 2, 3, 4, 5], [6, 7], [8], [9, 10, 11, 12]])
    train, queries = hold_out_tails(data, 2, seed=3)
    assert len(queries) == 2
    rebuilt = by_user(train.users, train.sequences)
    for user, truth in by_user(queries.users, queries.truth).items():
        assert by_user(queries.users, queries.history)[user] == rebuilt[user]
        rebuilt[user] += truth
    assert rebuilt == by_user(data.users, data.sequences)
    assert len(hold_out_tails(data, 10)[1]) == 3, "a sequence of one item has no second half"


def test_the_seed_determines_the_held_out_users():
    data = interactions([[1, 2, 3]] * 40)
    first, same, other = (split_users(data, test_users=5, seed=seed).test.users for seed in (1, 1, 2))
    assert first.ids(range(5)) == same.ids(range(5))
    assert first.ids(range(5)) != other.ids(range(5))


def test_repeats_in_the_truth_are_kept():
    split = split_users(interactions([[1, 2, 7, 7, 7], [3]]), test_users=1)
    assert [row.tolist() for row in split.test.history] == [[1, 2]]
    assert [row.tolist() for row in split.test.truth] == [[7, 7, 7]]
    assert repr(split.test) == "Queries(1 users, 3 items to find)"


def test_users_with_one_interaction_are_not_held_out():
    with pytest.raises(DataError, match=r"valid_users \+ test_users=2: only 1 of 3 users have two or more"):
        split_users(interactions([[1], [2], [3, 4]]), valid_users=1, test_users=1)


def test_some_users_must_remain_for_training():
    with pytest.raises(DataError, match="no user is left to train on; there are 2"):
        split_users(interactions([[1, 2], [3, 4]]), valid_users=1, test_users=1)


@pytest.mark.parametrize("option", ["valid_users", "test_users", "seed"])
@pytest.mark.parametrize("value", [-1, 1.5, True])
def test_counts_are_checked(option, value):
    with pytest.raises(DataError, match=f"{option}={value}: must be a whole number of at least 0"):
        split_users(interactions([[1, 2]] * 3), **{option: value})


def test_without_order_the_halves_are_random_with_a_warning():
    row = list(range(20))
    data = interactions([row] * 3, ordered=False)
    with pytest.warns(UserWarning, match="no order"):
        split = split_users(data, test_users=1)
    history, truth = split.test.history[0].tolist(), split.test.truth[0].tolist()
    assert sorted(history + truth) == row
    assert history != row[:10]
    assert len(history) == 10


def test_without_order_temporal_and_leave_last_splits_are_errors():
    data = interactions([[1, 2, 3]], ordered=False)
    with pytest.raises(DataError, match=r"no order .* no last items"):
        split_leave_last(data)
    with pytest.raises(DataError, match="a temporal split needs times"):
        split_temporal(data)


def test_a_temporal_split_needs_times():
    with pytest.raises(DataError, match=r"a temporal split needs times, .* time=<column>"):
        split_temporal(interactions([[1, 2, 3]]))


def test_temporal_cuts_by_hand():
    #             cut at time 6 and at time 8 of the ten moments 0..9
    rows = [[1, 2, 3, 4], [5, 6, 7], [8, 9], [10]]
    times = [[0, 1, 6, 8], [2, 3, 9], [4, 5], [7]]
    split = split_temporal(interactions(rows, times=times), valid_share=0.2, test_share=0.2)
    assert by_user(split.train.users, split.train.sequences) == {100: [1, 2], 101: [5, 6], 102: [8, 9]}
    assert split.train.times.tolist() == [0, 1, 2, 3, 4, 5]
    assert by_user(split.valid.users, split.valid.history) == {100: [1, 2]}
    assert by_user(split.valid.users, split.valid.truth) == {100: [3]}
    assert by_user(split.test.users, split.test.history) == {100: [1, 2, 3], 101: [5, 6]}
    assert by_user(split.test.users, split.test.truth) == {100: [4], 101: [7]}


@settings(max_examples=50)
@given(st.data())
def test_no_history_contains_the_future(data):
    times = data.draw(
        st.lists(st.lists(st.integers(0, 30), min_size=1, max_size=6).map(sorted), min_size=3, max_size=8)
    )
    flat = sorted(time for row in times for time in row)
    shares = data.draw(st.tuples(st.floats(0, 0.4), st.floats(0, 0.4)))
    # Items are times, so that a query can be checked against the cut.
    whole = interactions(times, times=times)
    try:
        split = split_temporal(whole, valid_share=shares[0], test_share=shares[1])
    except DataError:
        assert flat[0] == flat[round((1 - sum(shares)) * len(flat))]
        return
    for queries in (split.valid, split.test):
        assert (queries.history.lengths > 0).all()
        assert (queries.truth.lengths > 0).all()
        if len(queries):
            assert queries.history.values.max() < queries.truth.values.min()
            assert split.train.times.max() < queries.truth.values.min()


def test_a_share_of_zero_gives_no_queries():
    split = split_temporal(interactions([[1, 2]], times=[[1, 2]]), valid_share=0, test_share=0.5)
    assert len(split.valid) == 0
    assert by_user(split.test.users, split.test.truth) == {100: [2]}


def test_equal_times_cannot_be_cut():
    with pytest.raises(DataError, match="no interaction is before the first cut"):
        split_temporal(interactions([[1, 2, 3]], times=[[5, 5, 5]]))


@pytest.mark.parametrize("share", [-0.1, 1.0, "half"])
def test_shares_are_checked(share):
    with pytest.raises(DataError, match=r"test_share=.* must be a number from 0 to less than 1"):
        split_temporal(interactions([[1, 2]], times=[[1, 2]]), test_share=share)


def test_shares_must_leave_training_data():
    with pytest.raises(DataError, match=r"valid_share \+ test_share=1.0: must be less than 1"):
        split_temporal(interactions([[1, 2]], times=[[1, 2]]), valid_share=0.5, test_share=0.5)


def test_leave_last_by_hand():
    split = split_leave_last(interactions([[1, 2, 3, 4, 5], [6, 7, 8, 9]]), k=2)
    assert by_user(split.train.users, split.train.sequences) == {100: [1], 101: [6, 7, 8, 9]}
    assert by_user(split.valid.users, split.valid.history) == {100: [1]}
    assert by_user(split.valid.users, split.valid.truth) == {100: [2, 3]}
    assert by_user(split.test.users, split.test.history) == {100: [1, 2, 3]}
    assert by_user(split.test.users, split.test.truth) == {100: [4, 5]}


def test_leave_last_checks_k():
    with pytest.raises(DataError, match="k=2: no user has more than 4 interactions; lower k"):
        split_leave_last(interactions([[1, 2, 3, 4]]), k=2)
    with pytest.raises(DataError, match="k=0: must be a whole number of at least 1"):
        split_leave_last(interactions([[1, 2, 3, 4]]), k=0)


def test_splits_by_name():
    data = interactions([[1, 2, 3]] * 3)
    assert len(make_split(data, "users", test_users=1).test) == 1
    assert len(make_split(data, "leave-last", k=1).test) == 3
    with pytest.raises(DataError, match="split='random': must be one of users, temporal, leave-last"):
        make_split(data, "random")


def test_the_users_of_an_earlier_split_are_held_out_again() -> None:
    rows = [(user, item) for user in range(12) for item in range(4)]
    before = split_users(read(pl.DataFrame(rows, schema=["user", "item"], orient="row")), valid_users=2, test_users=3)
    # One test user is gone, one has a single row now, and there are new users.
    gone, short = before.test.users.first_ids(2)
    kept = [(user, item) for user, item in rows if user != gone and (user != short or item == 0)]
    later = [*kept, *((user, item) for user in range(20, 25) for item in range(6))]
    now = split_like(read(pl.DataFrame(later, schema=["user", "item"], orient="row")), before)
    assert now.valid.users.first_ids(9) == before.valid.users.first_ids(9)
    assert now.test.users.first_ids(9) == before.test.users.first_ids(9)[2:]
    assert now.train.num_users == 16 - 3
    assert set(now.train.users.first_ids(99)) >= {short, 20, 24}


@pytest.mark.parametrize(
    ("kind", "options"),
    [("users", {"valid_users": 5, "test_users": 5}), ("temporal", {"test_share": 0.3}), ("leave-last", {"k": 1})],
)
def test_arrays_in_files_and_in_blocks_give_the_same_split(monkeypatch, kind, options):
    generator = np.random.default_rng(0)
    rows = [generator.integers(0, 9, generator.integers(1, 12)).tolist() for _ in range(40)]
    times = [np.sort(generator.integers(0, 20, len(row))).tolist() for row in rows]
    data = interactions(rows, times=times)
    expected = make_split(data, kind, **options)
    monkeypatch.setenv("PATHDEX_SCRATCH_LIMIT", "0")
    for module in ("storage.scratch", "data.ragged"):
        monkeypatch.setattr(f"pathdex.{module}.BLOCK", 7)
    found = make_split(data, kind, **options)
    for one, other in (
        (found.train.sequences, expected.train.sequences),
        (found.valid.history, expected.valid.history),
        (found.test.history, expected.test.history),
        (found.test.truth, expected.test.truth),
    ):
        assert [row.tolist() for row in one] == [row.tolist() for row in other]
    assert found.train.times.tolist() == expected.train.times.tolist()
