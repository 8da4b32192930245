"""The compiled query against torch, and filters against filter-after-exhaustive, on random models."""

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from pathdex.data.ragged import Ragged
from pathdex.index.paths import decode_paths, encode_paths
from pathdex.kernels.neighbours import Neighbours
from pathdex.model.beam import beam_search
from pathdex.model.structure import path_log_probabilities
from pathdex.recommenders.deep_retrieval import DeepRetrieval
from pathdex.retrieval import retriever as module
from pathdex.retrieval.filters import NO_FILTERS, Filters
from tests.random_model import SMALL, random_model

ITEMS, QUERIES = 30, 3
EVERY_PATH = SMALL["num_nodes"] ** SMALL["depth"]
codes = st.integers(0, ITEMS - 1)
histories = st.lists(st.lists(codes, max_size=8), min_size=QUERIES, max_size=QUERIES)


@st.composite
def filter_sets(draw: Any) -> Filters:
    exclude = draw(st.none() | st.lists(st.lists(codes, max_size=ITEMS), min_size=QUERIES, max_size=QUERIES))
    allow = draw(st.none() | st.lists(st.none() | st.sets(codes), min_size=QUERIES, max_size=QUERIES))
    where = draw(st.none() | st.lists(st.none() | arrays(np.bool_, ITEMS), min_size=QUERIES, max_size=QUERIES))
    return Filters(
        None if exclude is None else Ragged.from_rows(exclude),
        None if allow is None else [None if one is None else np.array(sorted(one), np.int64) for one in allow],
        where,
    )


@torch.no_grad()
def exhaustive_scores(model: DeepRetrieval, rows: Ragged) -> NDArray[np.float32]:
    """The final score of every item over all of its paths: (query, item)."""
    network, learned = model.network, model.model_state
    users = network.user_vectors(rows)
    nodes = torch.from_numpy(decode_paths(learned.paths, model.num_nodes, model.config.depth)).flatten(0, 1)
    log_p = path_log_probabilities(network.structure, users, nodes.expand(len(users), -1, -1))
    weight = learned.counts + 1.0
    on_path = {path: weight[model.postings.items_on(path)].sum() for path in model.postings.paths.tolist()}
    share = weight[:, None] / np.array([[on_path[path] for path in own] for own in learned.paths.tolist()])
    index = (log_p.unflatten(1, learned.paths.shape) + torch.from_numpy(share).log()).logsumexp(dim=2)
    table = network.items
    reranked = users @ table.outputs(table.rows).T + table.bias(table.rows)
    scores: NDArray[np.float32] = (reranked + model.config.path_weight * index).float().numpy()
    if learned.neighbours is not None:
        scores += model.config.neighbour_weight * np.log(0.02 + similarities(learned.neighbours, rows, model))
    return scores


def similarities(neighbours: Neighbours, rows: Ragged, model: DeepRetrieval) -> NDArray[np.float32]:
    """The summed similarity of every item to the distinct items that the encoder reads: (query, item)."""
    sums = np.zeros((len(rows), len(model.items)), np.float32)
    for query, row in enumerate(rows):
        for item in set(row[-model.history_length :].tolist()):
            own = slice(neighbours.offsets[item], neighbours.offsets[item + 1])
            np.add.at(sums[query], neighbours.items[own], neighbours.similarities[own])
    return sums


def check_answer(
    items: NDArray[np.int64], scores: NDArray[np.float32], expected: NDArray[np.float32], n: int, ok: NDArray[np.bool_]
) -> None:
    """The answer is the best n of the eligible items; items may change places where their scores are equal."""
    best = np.sort(expected[ok])[::-1][:n]
    found = items[items >= 0]
    assert len(found) == len(set(found.tolist())) == len(best)
    assert ok[found].all()
    np.testing.assert_allclose(scores[: len(found)], best, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(expected[found], best, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("encoder", ["gru", "pooled", "attention"])
@pytest.mark.parametrize("structure", ["mlp", "recurrent"])
@pytest.mark.parametrize("listed", [0, 10, 512])
@settings(max_examples=15, deadline=None)
@given(
    rows=histories,
    filters=filter_sets(),
    n=st.integers(1, 40),
    seed=st.integers(0, 5),
    shared=st.booleans(),
    near=st.sampled_from([0, 6]),
)
def test_a_beam_of_all_paths_is_filter_after_exhaustive(
    encoder: str,
    structure: str,
    listed: int,
    rows: list[list[int]],
    filters: Filters,
    n: int,
    seed: int,
    shared: bool,
    near: int,
) -> None:
    model = random_model(ITEMS, seed, encoder=encoder, structure=structure, shared_items=shared, neighbours=near)
    expected = exhaustive_scores(model, Ragged.from_rows(rows))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "LISTED_ITEMS", listed)
        ranking = model.rank(Ragged.from_rows(rows), n, filters, beam=EVERY_PATH)
    for query in range(QUERIES):
        check_answer(ranking.items[query], ranking.scores[query], expected[query], n, filters.eligible(query, ITEMS))


@pytest.mark.parametrize("listed", [0, 10])
@settings(max_examples=60, deadline=None)
@given(
    rows=histories,
    filters=filter_sets(),
    n=st.integers(1, 40),
    beam=st.integers(1, 20),
    spare=st.none() | st.integers(0, 10),
    near=st.sampled_from([0, 6]),
)
def test_any_beam_and_filter_give_exactly_the_items_asked_for(
    listed: int, rows: list[list[int]], filters: Filters, n: int, beam: int, spare: int | None, near: int
) -> None:
    model = random_model(ITEMS, neighbours=near)
    width = {"beam": beam} if spare is None else {"candidates": n + spare}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "LISTED_ITEMS", listed)
        ranking = model.rank(Ragged.from_rows(rows), n, filters, **width)
        alone = model.rank(Ragged.from_rows(rows[:1]), n, filters.take(np.array([0])), **width)
    assert alone.items[0].tolist() == ranking.items[0].tolist()
    for query in range(QUERIES):
        eligible = filters.eligible(query, ITEMS)
        found = ranking.items[query][ranking.items[query] >= 0]
        assert len(set(found.tolist())) == len(found) == min(n, eligible.sum())
        assert eligible[found].all()
        assert (np.diff(ranking.scores[query][: len(found)]) <= 0).all()
        assert spare is None or ranking.candidates[query] <= n + spare


@settings(max_examples=40, deadline=None)
@given(rows=histories, seed=st.integers(0, 20), beam=st.integers(1, EVERY_PATH))
def test_a_narrow_beam_finds_the_items_of_the_models_beam(rows: list[list[int]], seed: int, beam: int) -> None:
    model = random_model(ITEMS, seed)
    users = model.network.user_vectors(Ragged.from_rows(rows))
    np.testing.assert_allclose(model.user_vectors(Ragged.from_rows(rows)), users.numpy(), rtol=1e-4, atol=1e-5)
    prefixes = [torch.from_numpy(one) for one in model.postings.prefixes[1:]]
    nodes, log_p = beam_search(model.network.structure, users, beam, prefixes)
    for row, paths, totals in zip(rows, nodes.numpy(), log_p.numpy(), strict=True):
        kept = np.isfinite(totals)
        items, index = model.postings.gather(
            encode_paths(paths[kept], model.num_nodes), totals[kept], model.model_state.log_shares
        )
        found = model.retriever.candidates(model.retriever.read(np.array(row)), NO_FILTERS, 0, beam=beam, least=0)
        order, expected = np.argsort(found.items), np.argsort(items)
        assert found.items[order].tolist() == items[expected].tolist()
        np.testing.assert_allclose(found.log_probability[order], index[expected], rtol=1e-3, atol=1e-3)


def test_a_budget_keeps_the_most_probable_items() -> None:
    model = random_model(ITEMS)
    state = model.state([101, 104])
    whole = model.retriever.candidates(state, NO_FILTERS, 0, beam=EVERY_PATH)
    kept = model.retriever.candidates(state, NO_FILTERS, 0, beam=EVERY_PATH, candidates=7)
    order = sorted(range(ITEMS), key=lambda place: (-whole.log_probability[place], whole.items[place]))
    assert sorted(kept.items.tolist()) == sorted(whole.items[order[:7]].tolist())


def test_a_fifth_of_a_budget_goes_to_the_most_similar_items() -> None:
    model = random_model(ITEMS, neighbours=8)
    assert model.model_state.neighbours is not None
    state = model.state([101, 104])
    whole = model.retriever.candidates(state, NO_FILTERS, 0, beam=EVERY_PATH)
    kept = model.retriever.candidates(state, NO_FILTERS, 0, beam=EVERY_PATH, candidates=10)
    order = sorted(range(ITEMS), key=lambda place: (-whole.log_probability[place], whole.items[place]))
    by_paths = whole.items[order[:8]].tolist()
    sums = similarities(model.model_state.neighbours, Ragged.from_rows([[1, 4]]), model)[0]
    others = sorted(set(range(ITEMS)) - set(by_paths), key=lambda item: (-sums[item], item))
    assert sorted(kept.items.tolist()) == sorted([*by_paths, *others[:2]])
    assert kept.similarity is not None
    np.testing.assert_allclose(kept.similarity, sums[kept.items], rtol=1e-5)


def test_an_item_that_the_beam_has_not_found_joins_with_the_lowest_probability() -> None:
    near, beam = random_model(ITEMS, neighbours=8), 4
    state = near.state([101, 104])
    by_paths = near.without_neighbours().retriever.candidates(state, NO_FILTERS, 0, beam=beam)
    found = near.retriever.candidates(state, NO_FILTERS, 0, beam=beam)
    joined = ~np.isin(found.items, by_paths.items)
    assert joined.sum() == len(by_paths.items) // 5 > 0
    assert (found.log_probability[joined] == by_paths.log_probability.min()).all()
    known = dict(zip(by_paths.items.tolist(), by_paths.log_probability.tolist(), strict=True))
    assert {item: known[item] for item in found.items[~joined].tolist()} == known


def test_without_similar_items_the_whole_budget_is_left_to_the_paths() -> None:
    near, alone = random_model(ITEMS, neighbours=8), random_model(ITEMS)
    width = {"beam": EVERY_PATH, "candidates": 10}
    with_neighbours = near.retriever.candidates(near.state(), NO_FILTERS, 0, **width)
    without = alone.retriever.candidates(alone.state(), NO_FILTERS, 0, **width)
    assert sorted(with_neighbours.items.tolist()) == sorted(without.items.tolist())


def test_equal_probabilities_in_a_budget_go_by_item() -> None:
    items, kept = module.most_probable(np.array([5, 3, 9, 1]), np.array([-1, -2, -2, -2], np.float32), 3)
    assert sorted(items.tolist()) == [1, 3, 5]
    assert sorted(kept.tolist()) == [-2.0, -2.0, -1.0]


@pytest.mark.parametrize("encoder", ["gru", "pooled", "attention"])
def test_a_state_goes_on_as_if_the_whole_history_were_read(encoder: str) -> None:
    model = random_model(ITEMS, encoder=encoder)
    state = model.state()
    for length in range(1, 9):  # Past the five items that the encoder reads.
        before = state.vector.copy()
        state_after = model.advance(state, 100 + 3 * length)
        np.testing.assert_array_equal(state.vector, before)
        state = state_after
        history = [100 + 3 * place for place in range(1, length + 1)]
        np.testing.assert_allclose(state.vector, model.state(history).vector, rtol=1e-4, atol=1e-5)
        answer, whole = model.recommend_next(state, 5, deny=[129]), model.recommend(history, 5, deny=[129])
        assert [item for item, _ in answer] == [item for item, _ in whole]


def test_an_encoder_without_a_compiled_twin_is_run_by_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = random_model(ITEMS).recommend([[101, 104], []], 5)
    monkeypatch.delitem(module.ENCODERS, "gru")
    model = random_model(ITEMS)
    found = model.recommend([[101, 104], []], 5)
    assert [[item for item, _ in one] for one in found] == [[item for item, _ in one] for one in compiled]
    state = model.advance(model.advance(model.state(), 101), 104)
    np.testing.assert_allclose(state.vector, model.state([101, 104]).vector, rtol=1e-5)


def test_threads_give_the_same_answers() -> None:
    model = random_model(ITEMS)
    rows = Ragged.from_rows([[query % ITEMS, (7 * query) % ITEMS] for query in range(40)])
    model.options = model.options.__class__(threads=1)
    alone = model.rank(rows, 5)
    model.options = model.options.__class__(threads=3)
    together = model.rank(rows, 5)
    np.testing.assert_array_equal(alone.items, together.items)
    np.testing.assert_array_equal(alone.scores, together.scores)
