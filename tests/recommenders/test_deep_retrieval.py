"""Deep Retrieval: the contract and its own methods."""

import dataclasses
import gc
import itertools
import subprocess
import sys
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pathdex.config import Config
from pathdex.data.interactions import Interactions
from pathdex.data.ragged import Ragged
from pathdex.data.vocabulary import Vocabulary
from pathdex.errors import ConfigError, NotFittedError, QueryError
from pathdex.recommenders.deep_retrieval import DeepRetrieval
from pathdex.recommenders.item_cf import ItemCF
from pathdex.retrieval.filters import Filters
from tests.random_model import random_model
from tests.recommender_contract import RecommenderContract, ResumeContract
from tests.tiny import TINY

SETTINGS: dict[str, Any] = {
    **TINY,
    "batch_size": 64,
    "structure_batch_size": 64,
    "epochs": 3,
    "learning_rate": 0.02,
    "item_learning_rate": 0.02,
}


class TestContract(RecommenderContract, ResumeContract):
    def make(self) -> DeepRetrieval:
        return DeepRetrieval(**SETTINGS, threads=1)


class TestContractWithNeighbours(RecommenderContract):
    def make(self) -> DeepRetrieval:
        return DeepRetrieval(**SETTINGS, neighbours=5, threads=1)


@pytest.fixture(scope="module")
def data() -> Interactions:
    random = np.random.default_rng(0)
    rows = [random.integers(0, 8, 12) + 8 * (user % 4) for user in range(160)]
    names = [f"item {code}" for code in range(32)]
    return Interactions(Ragged.from_rows(rows), Vocabulary(np.arange(160)), Vocabulary(names))


@pytest.fixture(scope="module")
def model(data: Interactions) -> DeepRetrieval:
    return DeepRetrieval(**SETTINGS, neighbours=0, threads=1).fit(data)


HISTORY = ["item 1", "item 5"]


def test_recommendations_come_from_the_group_of_the_history(model: DeepRetrieval) -> None:
    found = {item for item, _ in model.recommend(HISTORY, n=6)}
    assert found == {f"item {code}" for code in (0, 2, 3, 4, 6, 7)}


def test_neighbours_equal_those_of_item_cf_and_change_nothing_else(model: DeepRetrieval, data: Interactions) -> None:
    near = DeepRetrieval(**SETTINGS, neighbours=5, threads=1).fit(data)
    found, expected = near.model_state.neighbours, ItemCF(neighbours=5, shrinkage=20.0).fit(data)._similarity
    assert found is not None
    assert expected is not None
    assert found.items.tolist() == expected.indices.tolist()
    assert found.offsets.tolist() == expected.indptr.tolist()
    np.testing.assert_array_equal(found.similarities, expected.data)
    np.testing.assert_array_equal(near.model_state.paths, model.model_state.paths)
    np.testing.assert_array_equal(near.model_state.rows, model.model_state.rows)
    assert near.without_neighbours().recommend(HISTORY, 6) == model.recommend(HISTORY, 6)
    assert near.recommend(HISTORY, 6) != model.recommend(HISTORY, 6)


def test_item_found_only_by_neighbours_is_explained() -> None:
    model, history = random_model(neighbours=8), [101, 104]
    alone = {one.id for one in model.without_neighbours().recommend(history, 7, beam=3)}
    joined = [one for one in model.recommend(history, 7, beam=3) if one.id not in alone]
    assert joined
    for one in joined:
        why = model.why_not(history, one.id, n=7, beam=3)
        assert why.reason == "recommended"
        assert why.explanation.score == pytest.approx(one.score)
        assert all(path.beam_rank is None for path in why.explanation.paths)


def test_beam_of_all_paths_equals_exhaustive_scoring(model: DeepRetrieval) -> None:
    histories = model.encode_histories([HISTORY, ["item 30"], []])
    plain = DeepRetrieval(**SETTINGS, neighbours=0)
    plain._items = model._items
    plain._adopt(dataclasses.replace(model.model_state, config=model.config.replace(path_weight=0.0)))
    ranking = plain.rank(histories, 32, beam=16)
    scores = model.user_vectors(histories) @ model.item_vectors.T + model.item_bias
    assert ranking.candidates.tolist() == [32, 32, 32]
    np.testing.assert_allclose(ranking.scores, -np.sort(-scores, axis=1), rtol=1e-4, atol=1e-5)


def test_candidates_is_a_budget_of_scored_items(model: DeepRetrieval) -> None:
    histories = model.encode_histories([HISTORY, ["item 30"], ["item 9"]])
    filters = Filters(exclude=histories)
    for budget in (3, 7, 20):
        ranking = model.rank(histories, 3, filters, candidates=budget)
        found = model.candidate_items(histories, filters, n=3, candidates=budget)
        assert ranking.candidates.max() <= budget
        assert found.lengths.tolist() == ranking.candidates.tolist()
        for items, candidates in zip(ranking.items, found, strict=True):
            assert set(items.tolist()) <= set(candidates.tolist())


@pytest.mark.parametrize(("options", "message"), [({"candidates": 4}, "candidates=4"), ({"beam": 0}, "beam=0")])
def test_invalid_beam_or_budget_is_an_error(model: DeepRetrieval, options: dict[str, int], message: str) -> None:
    with pytest.raises(QueryError, match=message):
        model.recommend(HISTORY, n=5, **options)


def test_explain_agrees_with_recommend(model: DeepRetrieval) -> None:
    item, score = model.recommend(HISTORY, n=1, beam=16)[0]
    why = model.explain(HISTORY, item, beam=16)
    assert why.score == pytest.approx(score, rel=1e-4)
    assert [path.nodes for path in why.paths] != []
    assert {path.nodes for path in why.paths} == set(model.item_paths(item))
    for path in why.paths:
        assert path.probability == pytest.approx(np.prod(path.layer_probability), rel=1e-5)
        assert path.beam_rank is not None
    assert "beam rank" in str(why)


def test_explain_reports_that_the_beam_lost_an_item(model: DeepRetrieval) -> None:
    why = model.explain(HISTORY, "item 31", beam=1)
    assert why.score is None
    assert "not retrieved" in str(why)


def test_explain_rejects_an_unknown_item(model: DeepRetrieval) -> None:
    with pytest.raises(QueryError, match=r"item='nothing': is not in the catalogue"):
        model.explain(HISTORY, "nothing")


def test_loaded_model_needs_no_training_data(model: DeepRetrieval, tmp_path: Path) -> None:
    model.save(tmp_path / "model")
    same = DeepRetrieval.load(tmp_path / "model")
    assert same.recommend(HISTORY, n=5) == model.recommend(HISTORY, n=5)
    assert same.config == model.config
    assert same.item_paths("item 3") == model.item_paths("item 3")
    assert same.health() == model.health()


def test_every_item_is_reachable(model: DeepRetrieval) -> None:
    health = model.health()
    assert health.unreachable_items == 0
    assert int(model.postings.sizes.sum()) == 32 * 2


def test_keywords_override_the_config() -> None:
    assert DeepRetrieval(Config(epochs=3), rounds=2).config == Config(epochs=3, rounds=2)
    with pytest.raises(ConfigError, match="roundz"):
        DeepRetrieval(roundz=2)


def test_unfitted_model_raises() -> None:
    with pytest.raises(NotFittedError, match="fit"):
        DeepRetrieval().health()


@pytest.mark.parametrize(
    "parameters",
    [
        {"encoder": "pooled", "reranker": "logistic"},
        {"encoder": "attention", "softmax": "sampled", "negatives": "popularity", "num_negatives": 8},
        {"schedule": "paper", "start": "random", "scoring": "streaming", "penalty": 0.001, "structure": "recurrent"},
        {"shared_items": False, "softmax": "sampled", "negatives": "in-batch", "num_negatives": 8, "epochs": 6},
    ],
)
def test_every_encoder_and_structure_learns_the_groups(data: Interactions, parameters: dict[str, Any]) -> None:
    model = DeepRetrieval(**{**SETTINGS, "epochs": 6, **parameters}, threads=1).fit(data)
    found = {item for item, _ in model.recommend(HISTORY, n=6)}
    assert len(found & {f"item {code}" for code in range(8)}) >= 5


def test_similar_items_share_paths_and_are_ranked_by_cosine() -> None:
    model = random_model()
    found = model.similar_items(103, n=29)
    vectors = model.item_vectors / np.linalg.norm(model.item_vectors, axis=1, keepdims=True)
    cosine = vectors @ vectors[3]
    assert [item for item, _ in found] == [100 + code for code in np.argsort(-cosine, kind="stable") if code != 3]
    np.testing.assert_allclose([score for _, score in found], np.sort(np.delete(cosine, 3))[::-1], rtol=1e-4)
    own = set(model.model_state.paths[3].tolist())
    on_them = {100 + code for code in range(30) if code != 3 and own & set(model.model_state.paths[code].tolist())}
    assert {item for item, _ in model.similar_items(103, n=len(on_them))} == on_them


def test_path_items_inverts_item_paths() -> None:
    model = random_model()
    for item in (100, 117):
        for path in model.item_paths(item):
            assert item in model.path_items(path)
            assert all(path in model.item_paths(other) for other in model.path_items(path))
    used = {path for item in range(100, 105) for path in random_model(5).item_paths(item)}
    unused = next(path for path in itertools.product(range(4), repeat=2) if path not in used)
    assert random_model(5).path_items(unused) == []


@pytest.mark.parametrize("path", [(1,), (1, 4), (-1, 0), (0.5, 1), "ab"])
def test_invalid_path_is_an_error(path: Any) -> None:
    with pytest.raises(QueryError, match="must have 2 nodes between 0 and 3; item_paths"):
        random_model().path_items(path)


def test_why_not_reports_the_layer_and_the_smallest_beam() -> None:
    model = random_model(60, num_nodes=6, depth=3)
    history = [101, 104]
    user = model.state(history).vector
    reasons = set()
    for item in range(100, 160):
        why = model.why_not(history, item, n=5, beam=3)
        reasons.add(why.reason)
        assert why.explanation == model.explain(history, item, beam=3)
        own = set(model.model_state.paths[item - 100].tolist())
        if why.reason == "beam":
            assert why.smallest_beam is not None
            assert own & set(model.retriever.search_paths(user, why.smallest_beam)[0].tolist())
            assert not own & set(model.retriever.search_paths(user, why.smallest_beam - 1)[0].tolist())
            lost = [path.lost_at for path in why.explanation.paths]
            assert why.layer == max(layer for layer in lost if layer is not None)
            assert f"lost at layer {why.layer} by a beam of 3; a beam of {why.smallest_beam} finds it" in str(why)
        else:
            assert (why.layer, why.smallest_beam) == (None, None)
    assert reasons == {"seen", "beam", "recommended", "rerank"}


def test_why_not_agrees_with_recommend() -> None:
    model = random_model()
    found = [item for item, _ in model.recommend([101], 5, beam=16)]
    for item in range(100, 130):
        why = model.why_not([101], item, n=5, beam=16)
        assert (why.reason == "recommended") == (item in found)
        if why.reason == "recommended":
            assert why.rank == found.index(item) + 1
        elif why.reason == "rerank":
            assert why.needed is not None
            assert why.explanation.score is not None
            assert why.explanation.score <= why.needed
            assert f"the first 5 score {why.needed:.3f} or more" in str(why)
        else:
            assert (why.reason, item) == ("seen", 101)
    assert model.why_not([101], 101, n=5, beam=16, exclude_seen=False).reason in ("recommended", "rerank")


def test_path_is_lost_where_its_prefix_leaves_the_beam() -> None:
    model = random_model(60, num_nodes=6, depth=3)
    user = model.state([101]).vector
    for path in model.explain([101], 120, beam=2).paths:
        code = (path.nodes[0] * 6 + path.nodes[1]) * 6 + path.nodes[2]
        prefixes = [code // 36, code // 6, code]
        kept = [
            prefix in model.retriever.search_paths(user, 2, depth)[0] for depth, prefix in enumerate(prefixes, start=1)
        ]
        assert path.lost_at == (kept.index(False) + 1 if False in kept else None)


def test_queries_do_not_import_torch(tmp_path: Path) -> None:
    random_model().save(tmp_path / "model")
    query = "import sys, pathdex; m = pathdex.load(sys.argv[1]); assert len(m.recommend([101], 5)) == 5"
    code = f"{query}; m.warmup(); print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path / "model")], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("False\n", "")


def test_model_is_freed_without_garbage_collection() -> None:
    model = random_model()
    model.recommend([101], 3)
    gone = weakref.ref(model)
    gc.disable()
    try:
        del model
        assert gone() is None
    finally:
        gc.enable()


def test_encoder_of_gives_the_result_of_a_full_training(model: DeepRetrieval, data: Interactions) -> None:
    again = DeepRetrieval(**SETTINGS, neighbours=0, threads=1).fit(data, encoder_of=model)
    np.testing.assert_array_equal(again.model_state.paths, model.model_state.paths)
    np.testing.assert_array_equal(again.item_vectors, model.item_vectors)
    assert again.recommend(HISTORY, n=5) == model.recommend(HISTORY, n=5)
