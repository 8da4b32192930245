"""How experiments hold out users."""

from __future__ import annotations

import numpy as np
import pytest

from pathdex.data import Interactions, Ragged, Vocabulary
from pathdex.experiments.splitting import default_held_out, few_users_note, prepare_split, split_problems


def users(count: int, length: int = 3) -> Interactions:
    rows = Ragged.from_rows([[0] * length] * count)
    return Interactions(rows, Vocabulary([str(one) for one in range(count)]), Vocabulary(["only"]))


@pytest.mark.parametrize(
    ("count", "held_out"), [(2, 0), (3, 1), (40, 6), (610, 91), (2000, 200), (6000, 300), (50_000, 1000)]
)
def test_as_many_users_are_held_out_as_a_useful_standard_error_needs(count: int, held_out: int) -> None:
    assert default_held_out(users(count)) == {"valid_users": held_out, "test_users": held_out}


def test_few_held_out_users_are_worth_a_note() -> None:
    split = prepare_split(users(300), {"kind": "users", "valid_users": 99, "test_users": 100}, seed=0)
    assert few_users_note(split.test) is None
    assert "only 99 users are held out, so figures are rough" in str(few_users_note(split.valid))
    assert few_users_note(split.valid.take(np.arange(0))) is None


def test_users_with_one_item_cannot_be_held_out() -> None:
    assert default_held_out(users(100, length=1)) == {"valid_users": 0, "test_users": 0}


def test_the_seed_draws_the_users_of_a_users_split() -> None:
    splits = [prepare_split(users(40), {"kind": "users", "test_users": 5}, seed=seed) for seed in (1, 1, 2)]
    drawn = [split.test.users.ids(range(5)) for split in splits]
    assert drawn[0] == drawn[1] != drawn[2]
    assert [len(split.valid) for split in splits] == [6, 6, 6]  # the default


@pytest.mark.parametrize("kind", ["users", "leave-last"])
def test_held_out_users_can_be_limited(kind: str) -> None:
    split = prepare_split(users(200), {"kind": kind}, seed=0, max_held_out=4)
    assert (len(split.valid), len(split.test)) == (4, 4)


@pytest.mark.parametrize(
    ("split", "problem"),
    [
        (
            {"kind": "leave-lst"},
            "split='leave-lst': must be one of users, temporal, leave-last; did you mean 'leave-last'?",
        ),
        ({"kind": "users", "k": 2}, "k=2: belongs to split='leave-last', not 'users'; leave it out"),
        ({"kind": "users", "test_users": -1}, "test_users=-1: must be a whole number of at least 0"),
    ],
)
def test_problems_are_found_without_the_data(split: dict[str, object], problem: str) -> None:
    assert list(map(str, split_problems(split))) == [problem]


def test_a_valid_split_has_no_problems() -> None:
    assert split_problems({"kind": "temporal", "valid_share": 0.1}) == []
