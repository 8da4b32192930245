"""What a shard reports of a query; tests/server/test_routed_queries.py compares merged answers with the whole model."""

from __future__ import annotations

import numpy as np
import pytest

from pathdex.recommenders.deep_retrieval import DeepRetrieval
from pathdex.retrieval.part_search import PartQuery, find_part
from tests.random_model import random_model


@pytest.fixture(scope="module")
def model() -> DeepRetrieval:
    return random_model(60, neighbours=4)


def query(model: DeepRetrieval, beam: int = 4) -> PartQuery:
    user = model.retriever.encoder.encode(np.array([3])).vector
    paths, log_p = model.retriever.search_paths(user, beam)
    positions = np.searchsorted(model.postings.paths, paths)
    none = np.empty(0, np.int64)
    return PartQuery(user, positions, log_p, none, None, none, np.empty(0, np.float32), 1000, 0, 0, False)


def test_all_items_on_the_paths_are_found(model: DeepRetrieval) -> None:
    asked = query(model)
    found = find_part(model.retriever, model.retriever.weights, asked)
    on_paths = np.unique(model.postings.items_at(asked.positions))
    assert sorted(found.items) == on_paths.tolist()
    assert found.total == len(on_paths)
    assert found.least == found.log_probability.min()


def test_without_a_limit_only_the_best_n_are_reported_but_all_are_counted(model: DeepRetrieval) -> None:
    asked = query(model)
    whole = find_part(model.retriever, model.retriever.weights, asked)
    few = find_part(model.retriever, model.retriever.weights, asked._replace(n=3))
    scores = whole.base + np.float32(model.retriever.weights.path) * whole.log_probability
    best = whole.items[np.lexsort((whole.items, -scores))[:3]]
    assert set(few.items) == set(best)
    assert (few.total, few.least) == (whole.total, whole.least)


def test_a_limit_keeps_the_most_probable_and_the_most_similar(model: DeepRetrieval) -> None:
    whole = find_part(model.retriever, model.retriever.weights, query(model))
    last = whole.items[np.argmin(whole.log_probability)]
    outside = next(item for item in range(60) if item not in whole.items)
    similar = np.sort(np.array([last, outside]))
    asked = query(model)._replace(
        candidates=2, reserved=1, neighbours=True, similar=similar, similarity=np.ones(2, np.float32)
    )
    found = find_part(model.retriever, model.retriever.weights, asked)
    probable = whole.items[np.lexsort((whole.items, -whole.log_probability))[:3]]
    assert set(found.items) == {*probable.tolist(), last, outside}
    assert found.items[-1] == outside


def test_excluded_and_masked_items_are_left_out(model: DeepRetrieval) -> None:
    whole = find_part(model.retriever, model.retriever.weights, query(model))
    mask = np.ones(60, np.bool_)
    mask[whole.items[1]] = False
    asked = query(model)._replace(exclude=whole.items[:1], mask=mask)
    found = find_part(model.retriever, model.retriever.weights, asked)
    assert set(found.items) == set(whole.items[2:].tolist())


def test_listed_items_are_scored_on_their_own_paths(model: DeepRetrieval) -> None:
    mask = np.zeros(60, np.bool_)
    mask[[5, 40]] = True
    found = find_part(model.retriever, model.retriever.weights, query(model)._replace(mask=mask, listed=True))
    assert found.items.tolist() == [5, 40]
    expected = model.retriever.item_log_probabilities(query(model).user, np.array([5, 40]))
    assert found.log_probability.tobytes() == expected.tobytes()
