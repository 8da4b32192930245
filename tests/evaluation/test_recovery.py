"""Whether planted interests are recovered."""

from __future__ import annotations

import numpy as np
import pytest

from pathdex.errors import DataError
from pathdex.evaluation.recovery import planted_recovery


def test_paths_of_one_interest_each_are_pure() -> None:
    paths = np.array([[1, 2], [1, 2], [8, 9], [8, 9]])
    found = planted_recovery(paths, [["food"], ["food"], ["toys"], ["toys"]])
    assert found.purity == 1.0
    assert found.both_interests == 0.0  # no item has two


def test_the_share_of_a_mixed_path_is_its_majority() -> None:
    paths = np.array([[5], [5], [5], [5]])
    assert planted_recovery(paths, [["food"], ["food"], ["food"], ["toys"]]).purity == 0.75


def test_an_item_of_two_interests_counts_on_paths_of_both() -> None:
    paths = np.array([[1, 2], [1, 2], [8, 9], [8, 9], [1, 8], [1, 2]])
    both = ["food", "toys"]
    found = planted_recovery(paths, [["food"], ["food"], ["toys"], ["toys"], both, both])
    assert found.purity == 1.0
    assert found.both_interests == 0.5  # the last item is on two paths of food


def test_chance_is_measured_by_shuffling_the_items() -> None:
    paths = np.repeat(np.arange(50), 20)[:, None]
    interests = [[f"interest {number // 100}"] for number in range(1000)]
    found = planted_recovery(paths, interests)
    assert found.purity == 1.0
    assert 0.1 < found.purity_by_chance < 0.35  # ten interests; the largest of 20 random ones has about a fifth


def test_items_and_interests_must_match() -> None:
    with pytest.raises(
        DataError, match=r"^paths has 2 items and interests 1; pass the interests in the order of the catalogue$"
    ):
        planted_recovery(np.zeros((2, 1), np.int64), [["food"]])
