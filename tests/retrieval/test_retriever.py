"""The compiled query against torch and against filtering after an exhaustive search, on random models."""

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
from pathdex.kernels.candidates import ALL_ITEMS, NO_COMPACT, NO_ITEMS, gather_items
from pathdex.kernels.neighbours import Neighbours
from pathdex.model.beam import beam_search
from pathdex.model.structure import path_log_probabilities
from pathdex.recommenders.deep_retrieval import DeepRetrieval
from pathdex.retrieval import retriever as module
from pathdex.retrieval.filters import NO_FILTERS, Filters
from pathdex.retrieval.score_weights import ScoreWeights
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
    weights = ScoreWeights.from_config(model.config)
    scores: NDArray[np.float32] = (reranked + weights.path * index).float().numpy()
    if learned.neighbours is not None:
        similar = similarities(learned.neighbours, rows, model)
        scores += weights.neighbour * np.log(weights.smoothing + similar)
    return scores


def similarities(neighbours: Neighbours, rows: Ragged, model: DeepRetrieval) -> NDArray[np.float32]:
    """The similarity of every item to the distinct items that the encoder reads, weighted by recency: (query, item)."""
    sums, recency = np.zeros((len(rows), len(model.items)), np.float32), model.retriever.weights.recency
    for query, row in enumerate(rows):
        latest = row[-model.history_length :].tolist()
        for item, position in {item: position for position, item in enumerate(latest)}.items():
            own, weight = slice(*neighbours.offsets[item : item + 2]), (len(latest) - position) ** -recency
            np.add.at(sums[query], neighbours.items[own], weight * neighbours.similarities[own])
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
def test_any_beam_and_filter_give_exactly_n_eligible_items(
    listed: int, rows: list[list[int]], filters: Filters, n: int, beam: int, spare: int | None, near: int
) -> None:
    model = random_model(ITEMS, neighbours=near)
    limits = {"beam": beam} if spare is None else {"candidates": n + spare}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "LISTED_ITEMS", listed)
        ranking = model.rank(Ragged.from_rows(rows), n, filters, **limits)
        alone = model.rank(Ragged.from_rows(rows[:1]), n, filters.take(np.array([0])), **limits)
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
def test_a_narrow_beam_finds_the_items_of_the_model_beam(rows: list[list[int]], seed: int, beam: int) -> None:
    model = random_model(ITEMS, seed)
    users = model.network.user_vectors(Ragged.from_rows(rows))
    np.testing.assert_allclose(model.user_vectors(Ragged.from_rows(rows)), users.numpy(), rtol=1e-4, atol=1e-5)
    prefixes = [torch.from_numpy(one) for one in model.postings.prefixes[1:]]
    nodes, log_p = beam_search(model.network.structure, users, beam, prefixes)
    for row, paths, totals in zip(rows, nodes.numpy(), log_p.numpy(), strict=True):
        kept = np.isfinite(totals)
        positions = np.searchsorted(model.postings.paths, encode_paths(paths[kept], model.num_nodes))
        items, index = gather_items(model.retriever.on_paths, positions, totals[kept], NO_ITEMS, ALL_ITEMS, NO_COMPACT)
        found = model.retriever.find_candidates(
            model.retriever.encoder.encode(np.array(row)), NO_FILTERS, 0, beam=beam, min_candidates=0
        )
        order, expected = np.argsort(found.items), np.argsort(items)
        assert found.items[order].tolist() == items[expected].tolist()
        np.testing.assert_allclose(found.log_probability[order], index[expected], rtol=1e-3, atol=1e-3)


def test_a_limit_on_candidates_keeps_the_most_probable_items() -> None:
    model = random_model(ITEMS)
    state = model.state([101, 104])
    whole = model.retriever.find_candidates(state, NO_FILTERS, 0, beam=EVERY_PATH)
    kept = model.retriever.find_candidates(state, NO_FILTERS, 0, beam=EVERY_PATH, candidates=7)
    order = sorted(range(ITEMS), key=lambda position: (-whole.log_probability[position], whole.items[position]))
    assert sorted(kept.items.tolist()) == sorted(whole.items[order[:7]].tolist())


def test_a_fifth_of_the_candidates_are_the_most_similar_items() -> None:
    model = random_model(ITEMS, neighbours=8)
    assert model.model_state.neighbours is not None
    state = model.state([101, 104])
    whole = model.retriever.find_candidates(state, NO_FILTERS, 0, beam=EVERY_PATH)
    kept = model.retriever.find_candidates(state, NO_FILTERS, 0, beam=EVERY_PATH, candidates=10)
    order = sorted(range(ITEMS), key=lambda position: (-whole.log_probability[position], whole.items[position]))
    by_paths = whole.items[order[:8]].tolist()
    sums = similarities(model.model_state.neighbours, Ragged.from_rows([[1, 4]]), model)[0]
    others = sorted(set(range(ITEMS)) - set(by_paths), key=lambda item: (-sums[item], item))
    assert sorted(kept.items.tolist()) == sorted([*by_paths, *others[:2]])
    assert kept.similarity is not None
    np.testing.assert_allclose(kept.similarity, sums[kept.items], rtol=1e-5)


def test_an_item_that_the_beam_did_not_find_joins_with_the_lowest_probability() -> None:
    near, beam = random_model(ITEMS, neighbours=8), 4
    state = near.state([101, 104])
    by_paths = near.without_neighbours().retriever.find_candidates(state, NO_FILTERS, 0, beam=beam)
    found = near.retriever.find_candidates(state, NO_FILTERS, 0, beam=beam)
    joined = ~np.isin(found.items, by_paths.items)
    assert joined.sum() == len(by_paths.items) // 5 > 0
    assert (found.log_probability[joined] == by_paths.log_probability.min()).all()
    known = dict(zip(by_paths.items.tolist(), by_paths.log_probability.tolist(), strict=True))
    assert {item: known[item] for item in found.items[~joined].tolist()} == known


def test_without_similar_items_all_candidates_come_from_paths() -> None:
    near, alone = random_model(ITEMS, neighbours=8), random_model(ITEMS)
    limits = {"beam": EVERY_PATH, "candidates": 10}
    with_neighbours = near.retriever.find_candidates(near.state(), NO_FILTERS, 0, **limits)
    without = alone.retriever.find_candidates(alone.state(), NO_FILTERS, 0, **limits)
    assert sorted(with_neighbours.items.tolist()) == sorted(without.items.tolist())


def test_threads_give_the_same_answers() -> None:
    model = random_model(ITEMS)
    rows = Ragged.from_rows([[query % ITEMS, (7 * query) % ITEMS] for query in range(40)])
    model.options = model.options.__class__(threads=1)
    alone = model.rank(rows, 5)
    model.options = model.options.__class__(threads=3)
    together = model.rank(rows, 5)
    np.testing.assert_array_equal(alone.items, together.items)
    np.testing.assert_array_equal(alone.scores, together.scores)


@pytest.mark.parametrize("beam", [1, 5, EVERY_PATH])
def test_paths_come_best_first_with_their_probability(beam: int) -> None:
    model = random_model(ITEMS)
    user = model.state([101]).vector
    codes, log_p = model.retriever.search_paths(user, beam)
    assert len(codes) == min(beam, len(model.postings))
    assert (np.diff(log_p) <= 0).all()
    layers = model.retriever.path_log_probabilities(user, codes)
    np.testing.assert_allclose(layers.sum(axis=1), log_p, rtol=1e-4, atol=1e-4)


def test_an_item_on_all_of_its_paths_has_the_probability_that_a_full_beam_gives() -> None:
    model = random_model(ITEMS)
    state = model.state([101])
    found = model.retriever.find_candidates(state, NO_FILTERS, 0, beam=EVERY_PATH)
    exact = model.retriever.item_log_probabilities(state.vector, found.items)
    np.testing.assert_allclose(found.log_probability, exact, rtol=1e-3, atol=1e-3)
