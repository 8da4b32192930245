"""Brute force over known vectors and over those of a trained model."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pathdex
from pathdex.data.ragged import Ragged
from pathdex.data.vocabulary import Vocabulary
from pathdex.errors import NotFittedError, QueryError
from pathdex.recommenders.brute_force import BruteForce
from pathdex.recommenders.capabilities import HasVectors
from pathdex.recommenders.youtube_dnn import YouTubeDNN
from pathdex.retrieval import exhaustive
from pathdex.retrieval.filters import NO_FILTERS, Filters
from pathdex.retrieval.ranking import Ranking
from tests.fakes import FakeRecommender
from tests.recommender_contract import HISTORIES, TEXT_IDS, RecommenderContract, grouped_data, same_answers

TINY: dict[str, Any] = {
    "epochs": 3,
    "embedding_dim": 8,
    "structure_hidden": 4,
    "node_dim": 4,
    "num_nodes": 8,
    "batch_size": 64,
    "learning_rate": 0.02,
    "item_learning_rate": 0.02,
    "threads": 1,
}


class TestContract(RecommenderContract):
    def make(self) -> BruteForce:
        return BruteForce(**TINY)


class KnownVectors(FakeRecommender, HasVectors):
    """A user vector is the sum of the vectors of its history."""

    history_length = 69

    def __init__(self, vectors: Any, bias: Any) -> None:
        self.vectors, self.bias = np.asarray(vectors, np.float32), np.asarray(bias, np.float32)
        self._items = Vocabulary(np.arange(len(self.vectors)))

    @property
    def item_vectors(self) -> Any:
        return self.vectors

    @property
    def item_bias(self) -> Any:
        return self.bias

    def rank(self, histories: Ragged, n: int, filters: Filters = NO_FILTERS, **options: Any) -> Ranking:
        raise AssertionError("brute force ranks by itself")

    def user_vectors(self, histories: Ragged) -> Any:
        return np.stack([self.item_vectors[row].sum(axis=0) for row in histories])


def test_score_is_inner_product_plus_bias() -> None:
    model = BruteForce(KnownVectors([[1, 0], [0, 1], [1, 1]], [0.0, 0.5, -3.0]))
    assert model.recommend([0], exclude_seen=False) == [(0, 1.0), (1, 0.5), (2, -2.0)]


def test_ties_are_in_code_order() -> None:
    model = BruteForce(KnownVectors(np.ones((6, 2)), np.zeros(6)))
    assert [item for item, _ in model.recommend([3], n=4)] == [0, 1, 2, 4]


def test_candidates_are_the_eligible_items() -> None:
    model = BruteForce(KnownVectors(np.ones((6, 2)), np.zeros(6)))
    filters = Filters(exclude=Ragged.from_rows([[3, 3], []]), allow=[np.array([1, 3, 5])] * 2)
    assert model.rank(Ragged.from_rows([[3], [0]]), 2, filters).candidates.tolist() == [2, 3]


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 1000),
    n=st.integers(1, 25),
    query_block=st.sampled_from([1, 2, 256]),
    item_block=st.sampled_from([1, 3, 65_536]),
)
def test_block_sizes_do_not_change_the_result(seed: int, n: int, query_block: int, item_block: int) -> None:
    random = np.random.default_rng(seed)
    # Small integers give exact ties, which are broken by code.
    known = KnownVectors(random.integers(-2, 3, (20, 3)), random.integers(-1, 2, 20))
    histories = Ragged.from_rows(random.integers(0, 20, size) for size in (1, 3, 2, 4, 1))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exhaustive, "QUERY_BLOCK", query_block)
        patch.setattr(exhaustive, "ITEM_BLOCK", item_block)
        ranking = BruteForce(known).rank(histories, n, Filters(exclude=histories))
    for query, user in enumerate(known.user_vectors(histories)):
        scores = known.item_vectors @ user + known.item_bias
        expected = [item for item in np.argsort(-scores, kind="stable") if item not in histories[query]][:n]
        assert ranking.items[query].tolist() == expected + [-1] * (n - len(expected))
        assert ranking.scores[query, : len(expected)].tolist() == scores[expected].tolist()


def test_rank_candidates_uses_the_same_score() -> None:
    random = np.random.default_rng(0)
    known = KnownVectors(random.normal(size=(20, 3)), random.normal(size=20))
    model = BruteForce(known)
    histories = Ragged.from_rows([[0], [5, 6]])
    everything = Ragged.from_rows([range(20), range(20)])
    np.testing.assert_array_equal(
        model.rank_candidates(histories, everything, 20).items, model.rank(histories, 20).items
    )
    few = model.rank_candidates(histories, Ragged.from_rows([[7, 3, 9], []]), 3)
    assert sorted(few.items[0].tolist()) == [3, 7, 9]
    assert few.items[1].tolist() == [-1, -1, -1]


def test_no_queries_give_no_answers() -> None:
    model = BruteForce(**TINY).fit(grouped_data(TEXT_IDS))
    assert model.recommend_batch([]) == []


def test_vectors_are_those_of_the_trained_model(tmp_path: Path) -> None:
    from pathdex.recommenders.deep_retrieval import DeepRetrieval

    trained = DeepRetrieval(**TINY, rounds=0).fit(grouped_data(TEXT_IDS))
    model = BruteForce(trained)
    assert model.history_length == trained.history_length
    histories = model.encode_histories(HISTORIES)
    scores = trained.user_vectors(histories) @ trained.item_vectors.T + trained.item_bias
    np.testing.assert_allclose(model.rank(histories, 32).scores, -np.sort(-scores, axis=1), rtol=1e-4, atol=1e-5)
    opened = BruteForce.load(model.save(tmp_path / "bundle"))
    assert same_answers(opened.recommend(HISTORIES), model.recommend(HISTORIES))


def test_model_is_not_available_before_fit() -> None:
    with pytest.raises(NotFittedError, match="BruteForce is not fitted"):
        _ = BruteForce().model


def test_unknown_option_is_an_error() -> None:
    model = BruteForce(KnownVectors(np.ones((3, 2)), np.zeros(3)))
    with pytest.raises(QueryError, match="beam=5: brute-force takes no such option"):
        model.recommend([0], beam=5)


def test_brute_force_over_any_model_with_vectors_can_be_saved(tmp_path: Path) -> None:
    model = YouTubeDNN(embedding_dim=8, epochs=1, threads=1).fit(grouped_data(TEXT_IDS), callbacks=())
    brute = BruteForce(model)
    brute.save(tmp_path / "brute")
    opened = pathdex.load(tmp_path / "brute")
    assert isinstance(opened, BruteForce)
    assert opened.model.name == "youtube-dnn"
    assert same_answers(opened.recommend_batch(HISTORIES, 5), brute.recommend_batch(HISTORIES, 5))
