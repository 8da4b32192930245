"""FFM vectors and their HNSW graph."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from pathdex.data.ragged import Ragged
from pathdex.errors import BundleError, ConfigError, MissingExtraError, QueryError
from pathdex.recommenders.ffm_hnsw import FFMHNSW, FieldEncoder
from pathdex.retrieval.filters import Filters
from pathdex.storage.bundle import Bundle, read_bundle, write_bundle
from tests.recommender_contract import TEXT_IDS, RecommenderContract, ResumeContract, grouped_data

TINY: dict[str, Any] = {"epochs": 4, "factors": 4, "batch_size": 64, "learning_rate": 0.05, "threads": 1}


class TestContract(RecommenderContract, ResumeContract):
    def make(self) -> FFMHNSW:
        return FFMHNSW(**TINY)


@pytest.fixture(scope="module")
def model() -> FFMHNSW:
    return FFMHNSW(**TINY).fit(grouped_data(TEXT_IDS))


def test_user_vector_has_three_field_means() -> None:
    vectors = torch.tensor([[[1.0, 1.0, 1.0], [3.0, 3.0, 3.0], [8.0, 8.0, 8.0]]])
    encoded = FieldEncoder(recent=2, dropout=0.0)(vectors)
    assert encoded.tolist() == [[[1, 1, 1], [3, 2, 2], [8, 5.5, 4]]]


def test_wide_search_is_exhaustive(model: FFMHNSW) -> None:
    histories = Ragged.from_rows([[0, 5], [31], []])
    scores = model.user_vectors(histories) @ model.item_vectors.T + model.item_bias
    ranking = model.rank(histories, 5, ef_search=32)
    assert ranking.items.tolist() == np.argsort(-scores, axis=1, kind="stable")[:, :5].tolist()
    assert ranking.candidates.tolist() == [32, 32, 32]


def test_narrow_search_scores_few_items(model: FFMHNSW) -> None:
    assert model.rank(Ragged.from_rows([[0, 5]]), 3, ef_search=4).candidates.tolist() == [4]


def test_filters_widen_the_search(model: FFMHNSW) -> None:
    histories = Ragged.from_rows([[0, 5], [31]])
    near = model.rank(histories, 4, ef_search=4).items
    filters = Filters(exclude=Ragged.from_rows([near[0], near[1]]), allow=[np.arange(32), np.array([0, 1])])
    ranking = model.rank(histories, 4, filters, ef_search=4)
    assert (ranking.items[0] >= 0).all()
    assert not set(ranking.items[0]) & set(near[0])
    assert ranking.items[1].tolist()[2:] == [-1, -1]
    assert sorted(ranking.items[1].tolist()[:2]) == [0, 1]


@pytest.mark.parametrize("value", [0, 2.5, True])
def test_ef_search_must_be_a_positive_integer(model: FFMHNSW, value: Any) -> None:
    with pytest.raises(QueryError, match=r"ef_search=.*: must be a whole number of at least 1; leave it out .* 200"):
        model.recommend([TEXT_IDS[0]], ef_search=value)


def test_unknown_option_is_an_error(model: FFMHNSW) -> None:
    with pytest.raises(QueryError, match="beam=3: ffm-hnsw takes no such option"):
        model.recommend([TEXT_IDS[0]], beam=3)


def test_error_lists_all_invalid_parameters() -> None:
    with pytest.raises(ConfigError) as caught:
        FFMHNSW(factors=0, loss="hinge", connectivity=1)
    assert [problem.split(":")[0] for problem in map(str, caught.value.problems)] == [
        "factors=0",
        "loss='hinge'",
        "connectivity=1",
    ]


def test_graph_of_another_size_is_rejected(model: FFMHNSW, tmp_path: Path) -> None:
    bundle = read_bundle(model.save(tmp_path / "whole"))
    few = FFMHNSW(**TINY).fit(grouped_data(TEXT_IDS))
    few._graph.remove(3)
    arrays = {**bundle.arrays, "graph": np.frombuffer(few._graph.save(), np.uint8)}
    path = write_bundle(tmp_path / "broken", Bundle(bundle.estimator, bundle.settings, arrays, bundle.weights))
    with pytest.raises(BundleError, match="graph: has another head than usearch writes for these items; copy or save"):
        FFMHNSW.load(path)


def test_same_data_gives_the_same_bundle(model: FFMHNSW) -> None:
    first, again = model.get_state(), FFMHNSW(**TINY).fit(grouped_data(TEXT_IDS)).get_state()
    assert first.arrays["graph"].tobytes() == again.arrays["graph"].tobytes()
    assert all(first.weights[name].tobytes() == again.weights[name].tobytes() for name in first.weights)


def test_missing_package_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pathdex.system.Feature.available", False)
    with pytest.raises(
        MissingExtraError, match=r"ffm-hnsw needs usearch; install it with: pip install 'pathdex\[ann\]'"
    ):
        FFMHNSW()


def test_concurrent_searches_with_different_widths_are_independent(model: FFMHNSW) -> None:
    """The search width is a property of the graph, and servers query from several threads."""
    histories = Ragged.from_rows([[code] for code in range(32)])
    widths = [2, 32] * 20
    alone = {ef: model.rank(histories, 2, ef_search=ef).items for ef in set(widths)}
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda ef: model.rank(histories, 2, ef_search=ef).items, widths))
    for ef, items in zip(widths, answers, strict=True):
        np.testing.assert_array_equal(items, alone[ef])
