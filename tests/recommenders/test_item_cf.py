"""Item-CF against similarities computed by hand and with dense matrices."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from pathdex.data.interactions import Interactions
from pathdex.data.ragged import Ragged
from pathdex.data.vocabulary import Vocabulary
from pathdex.errors import ConfigError, QueryError
from pathdex.index import neighbours
from pathdex.recommenders import item_cf
from pathdex.recommenders.item_cf import ItemCF
from tests.recommender_contract import RecommenderContract


class TestContract(RecommenderContract):
    def make(self) -> ItemCF:
        return ItemCF(neighbours=20)


def interactions(rows: list[list[int]], num_items: int) -> Interactions:
    return Interactions(Ragged.from_rows(rows), Vocabulary(np.arange(len(rows))), Vocabulary(np.arange(num_items)))


ROWS = [[0, 1], [0, 1, 2], [0, 2, 2], [3]]


def test_similarity_is_the_cosine_over_users() -> None:
    model = ItemCF().fit(interactions(ROWS, 5))
    answer = dict(model.similar_items(0))
    assert answer[1] == pytest.approx(2 / math.sqrt(3 * 2))
    assert answer[2] == pytest.approx(2 / math.sqrt(3 * 2))
    assert answer[3] == answer[4] == 0.0


def test_count_weights_include_repeats() -> None:
    model = ItemCF(weights="count").fit(interactions(ROWS, 5))
    assert dict(model.similar_items(0))[2] == pytest.approx((1 + 2) / math.sqrt(3 * 5))
    once, twice = dict(model.recommend([0])), dict(model.recommend([0, 0]))
    assert twice[1] == pytest.approx(2 * once[1])


def test_repeats_in_a_history_count_once_by_default() -> None:
    model = ItemCF().fit(interactions(ROWS, 5))
    assert model.recommend([0, 0]) == model.recommend([0])


def test_a_fit_for_some_histories_ranks_them_as_a_whole_fit() -> None:
    data, histories = interactions(ROWS, 5), Ragged.from_rows([[1, 3], [1]])
    whole, some = ItemCF().fit(data), ItemCF().fit_for(histories, data)
    for one, other in zip(whole.rank(histories, 4), some.rank(histories, 4), strict=True):
        np.testing.assert_array_equal(one, other)
    assert some.get_state().arrays["offsets"].tolist() == [0, 0, 2, 2, 2, 2]


def test_shrinkage_lowers_the_similarity_of_rare_items_most() -> None:
    model = ItemCF(shrinkage=2.0).fit(interactions(ROWS, 5))
    assert dict(model.similar_items(0))[1] == pytest.approx(2 / (math.sqrt(3 * 2) + 2))


def test_score_is_the_sum_of_similarities_to_the_history() -> None:
    model = ItemCF().fit(interactions(ROWS, 5))
    expected = dict(model.similar_items(1))[0] + dict(model.similar_items(2))[0]
    assert model.recommend([1, 2], n=1) == [(0, pytest.approx(expected))]


def test_nearest_neighbours_are_kept_with_ties_by_code() -> None:
    model = ItemCF(neighbours=1).fit(interactions(ROWS, 5))
    assert model.similar_items(0)[0] == (1, pytest.approx(2 / math.sqrt(3 * 2)))
    assert [score for _, score in model.similar_items(0)[1:]] == [0.0, 0.0, 0.0]


def test_short_answers_are_filled_by_popularity_with_score_0() -> None:
    model = ItemCF().fit(interactions(ROWS, 6))
    assert model.recommend([3], n=5) == [(0, 0.0), (2, 0.0), (1, 0.0), (4, 0.0), (5, 0.0)]


def test_candidates_are_eligible_neighbours_and_filled_items() -> None:
    model = ItemCF().fit(interactions(ROWS, 6))
    assert model.rank(Ragged.from_rows([[0], [3]]), 2).candidates.tolist() == [2, 2]
    assert model.rank(Ragged.from_rows([[0]]), 1).candidates.tolist() == [2]


def dense_scores(rows: list[list[int]], num_items: int, weights: str, shrinkage: float) -> NDArray[np.float64]:
    """Reference: (item, item) similarities from the full matrix."""
    matrix = np.zeros((len(rows), num_items))
    for row, items in enumerate(rows):
        np.add.at(matrix[row], items, 1)
    if weights == "binary":
        matrix = (matrix > 0).astype(float)
    norms = np.linalg.norm(matrix, axis=0)
    similarity = matrix.T @ matrix / np.maximum(np.outer(norms, norms) + shrinkage, 1e-12)
    np.fill_diagonal(similarity, 0)
    return similarity


@settings(max_examples=30, deadline=None)
@given(
    rows=st.lists(st.lists(st.integers(0, 11), min_size=1, max_size=8), min_size=1, max_size=12),
    weights=st.sampled_from(item_cf.WEIGHTS),
    shrinkage=st.sampled_from([0.0, 1.5]),
    pairs=st.sampled_from([1, 7, 10**6]),
)
def test_block_sizes_do_not_change_the_similarities(
    rows: list[list[int]], weights: str, shrinkage: float, pairs: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(neighbours, "PAIRS_PER_BLOCK", pairs)
        patch.setattr(neighbours, "ITEMS_PER_BLOCK", 5)
        model = ItemCF(weights=weights, shrinkage=shrinkage).fit(interactions(rows, 12))
    assert model._similarity is not None
    np.testing.assert_allclose(
        model._similarity.toarray(), dense_scores(rows, 12, weights, shrinkage), rtol=1e-5, atol=1e-6
    )


def test_query_blocks_do_not_change_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    model = ItemCF().fit(interactions(ROWS, 5))
    histories = [[0], [1, 2], [], [3]]
    whole = model.recommend_batch(histories, 4)
    monkeypatch.setattr(item_cf, "QUERY_BLOCK", 3)
    assert model.recommend_batch(histories, 4) == whole


@pytest.mark.parametrize(
    ("settings", "rule"),
    [
        ({"neighbours": 0}, "neighbours=0: must be a whole number of at least 1"),
        ({"neighbours": 1.5}, "neighbours=1.5: must be a whole number of at least 1"),
        ({"neighbours": True}, "neighbours=True: must be a whole number"),
        ({"weights": "tf"}, "weights='tf': must be one of binary, count"),
        ({"shrinkage": -1.0}, "shrinkage=-1.0: must be a finite number of at least 0"),
        ({"shrinkage": float("nan")}, "shrinkage=nan: must be a finite number"),
    ],
)
def test_invalid_parameter_is_an_error(settings: dict[str, Any], rule: str) -> None:
    with pytest.raises(ConfigError, match=rule):
        ItemCF(**settings)


def test_error_lists_all_invalid_parameters() -> None:
    with pytest.raises(ConfigError) as caught:
        ItemCF(neighbours=0, weights="tf", shrinkage=-1)
    assert len(caught.value.problems) == 3


def test_unknown_option_is_an_error() -> None:
    model = ItemCF().fit(interactions(ROWS, 5))
    with pytest.raises(QueryError, match="candidates=5: item-cf takes no such option"):
        model.recommend([0], candidates=5, beam=2)
