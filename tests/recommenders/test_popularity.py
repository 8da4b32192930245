"""Popularity: the same items for everyone."""

import numpy as np
import pytest

from pathdex.data.interactions import Interactions, popularity_order
from pathdex.data.ragged import Ragged
from pathdex.data.vocabulary import Vocabulary
from pathdex.errors import QueryError
from pathdex.recommenders.popularity import Popularity
from tests.recommender_contract import RecommenderContract


class TestContract(RecommenderContract):
    personal = False

    def make(self) -> Popularity:
        return Popularity()


@pytest.fixture
def model() -> Popularity:
    sequences = Ragged.from_rows([[2, 2, 0], [2, 1], [0]])
    return Popularity().fit(Interactions(sequences, Vocabulary(np.arange(3)), Vocabulary(["a", "b", "c", "d"])))


def test_items_are_ranked_by_count(model: Popularity) -> None:
    assert model.recommend([], n=10) == [("c", 3.0), ("a", 2.0), ("b", 1.0), ("d", 0.0)]


def test_seen_items_are_skipped(model: Popularity) -> None:
    assert [item for item, _ in model.recommend(["c", "b"], n=2)] == ["a", "d"]


def test_ties_are_in_code_order() -> None:
    assert popularity_order(np.array([1, 5, 1, 5, 0])).tolist() == [1, 3, 0, 2, 4]


def test_unknown_option_is_an_error(model: Popularity) -> None:
    with pytest.raises(QueryError, match="beam=5: popularity takes no such option; leave it out"):
        model.recommend(["a"], beam=5)
