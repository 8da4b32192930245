"""ALS from the library; fold-in of users against the normal equations."""

import dataclasses

import numpy as np
import pytest

from pathdex.data.interactions import Interactions
from pathdex.data.ragged import Ragged
from pathdex.data.vocabulary import Vocabulary
from pathdex.errors import ConfigError, DataError, MissingExtraError, QueryError
from pathdex.recommenders.implicit_als import ImplicitALS
from tests.recommender_contract import TEXT_IDS, RecommenderContract, grouped_data
from tests.recommenders.fakes import RecordedTraining


class TestContract(RecommenderContract):
    def make(self) -> ImplicitALS:
        # With more iterations all other groups score 0, and rounding decides the order of ties.
        return ImplicitALS(factors=4, regularization=0.01, iterations=2, threads=1)


@pytest.fixture(scope="module")
def model() -> ImplicitALS:
    return ImplicitALS(factors=8, alpha=3.0, regularization=0.1, threads=1).fit(grouped_data(TEXT_IDS))


def test_user_vector_solves_the_normal_equations(model: ImplicitALS) -> None:
    # The library's confidence is alpha for what the user has and 1 for the rest.
    items = model.item_vectors.astype(np.float64)
    seen = items[[0, 5]]
    left = items.T @ items + (3.0 - 1) * seen.T @ seen + 0.1 * np.eye(8)
    expected = np.linalg.solve(left, 3.0 * seen.sum(axis=0))
    found = model.user_vectors(Ragged.from_rows([[0, 5, 5]]))[0]
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-5)


def test_empty_history_gets_the_most_popular_items(model: ImplicitALS) -> None:
    counts = grouped_data(TEXT_IDS).item_counts()
    answer = model.recommend([], n=5)
    assert [TEXT_IDS.index(str(item)) for item, _ in answer] == np.argsort(-counts, kind="stable")[:5].tolist()
    assert [score for _, score in answer] == [0.0] * 5


def test_error_lists_all_invalid_parameters() -> None:
    with pytest.raises(ConfigError) as caught:
        ImplicitALS(factors=0, alpha=0, iterations=1.5)
    assert [problem.split(":")[0] for problem in map(str, caught.value.problems)] == [
        "factors=0",
        "alpha=0",
        "iterations=1.5",
    ]


def test_empty_data_is_an_error() -> None:
    nothing = Interactions(Ragged.from_rows([]), Vocabulary(np.arange(0)), Vocabulary(["a"]))
    with pytest.raises(DataError, match="data: has no interactions"):
        ImplicitALS().fit(nothing)


def test_unknown_option_is_an_error(model: ImplicitALS) -> None:
    with pytest.raises(QueryError, match="beam=3: implicit-als takes no such option"):
        model.recommend([TEXT_IDS[0]], beam=3)


def test_missing_package_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pathdex.system.Feature.available", False)
    with pytest.raises(
        MissingExtraError, match=r"implicit-als needs implicit; install it with: pip install 'pathdex\[peers\]'"
    ):
        ImplicitALS()


def test_callbacks_are_called_for_every_iteration() -> None:
    notes = RecordedTraining()
    ImplicitALS(factors=2, iterations=3, threads=1).fit(grouped_data(TEXT_IDS), callbacks=[notes])
    assert notes.steps == [("als", 1, 3), ("als", 2, 3), ("als", 3, 3)]


def test_a_history_that_cannot_be_solved_is_an_error() -> None:
    model = ImplicitALS(factors=4, iterations=1, regularization=0.0).fit(grouped_data(TEXT_IDS))
    bundle = model.to_bundle()
    flat = {**bundle.arrays, "item_factors": np.zeros_like(bundle.arrays["item_factors"])}
    opened = ImplicitALS.from_bundle(dataclasses.replace(bundle, arrays=flat))
    with pytest.raises(QueryError, match="cannot be solved from these item vectors; train again"):
        opened.recommend([TEXT_IDS[0]])
