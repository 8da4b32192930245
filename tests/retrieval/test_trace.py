"""A traced query gives the answer of the compiled one, and its parts are consistent."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pathdex.data.ragged import Ragged
from pathdex.retrieval.filters import NO_FILTERS, Filters
from pathdex.retrieval.trace import trace_beam, trace_query
from tests.random_model import random_model

MASK = np.random.default_rng(0).random(600) < 0.95


@pytest.mark.parametrize("neighbours", [0, 4])
@pytest.mark.parametrize(
    "filters",
    [NO_FILTERS, Filters(Ragged.from_rows([range(50)])), Filters(where=[MASK]), Filters(allow=[np.arange(0, 600, 7)])],
    ids=["none", "exclude", "where", "allow"],
)
@pytest.mark.parametrize("search", [{"beam": 2}, {"beam": 9, "candidates": 40}, {"beam": 1, "n": 50}], ids=str)
def test_the_answer_is_that_of_best_items(neighbours: int, filters: Filters, search: dict[str, Any]) -> None:
    retriever = random_model(600, num_nodes=12, depth=2, neighbours=neighbours).retriever
    state = retriever.encoder.encode(np.array([3, 5, 8], np.int32))
    given = {"n": 5, "candidates": None, **search}
    trace = trace_query(retriever, state, filters, **given)
    items, scores, count = retriever.best_items(state, filters, 0, **given)
    assert np.array_equal(trace.items[: given["n"]], items)
    assert np.array_equal(trace.scores[: given["n"]], scores)
    assert len(trace.items) == count
    parts = trace.parts
    total = parts.reranker + parts.bias + parts.path + parts.neighbours
    assert total == pytest.approx(trace.scores, abs=1e-4)
    assert (trace.beams is None) == (not trace.layers)


def test_the_layers_are_those_of_the_search() -> None:
    retriever = random_model(600, num_nodes=6, depth=3).retriever
    user = retriever.encoder.encode(np.array([1, 2], np.int32)).vector
    layers = trace_beam(retriever, user, 7)
    assert [len(layer.kept) for layer in layers] == [6, 7, 7]
    above = np.zeros(1, np.int64)
    for depth, layer in enumerate(layers, start=1):
        prefixes = retriever.postings.prefixes[depth]
        assert np.array_equal(layer.compared, prefixes[np.isin(prefixes // 6, above)])
        best = layer.compared[np.argsort(-layer.compared_log_probability, kind="stable")][: len(layer.kept)]
        assert set(best.tolist()) == set(layer.kept.tolist())
        place = np.searchsorted(layer.compared, layer.kept)
        assert layer.compared_log_probability[place] == pytest.approx(layer.log_probability, abs=1e-4)
        above = layer.kept
    paths, log_p = retriever.search_paths(user, 7)
    assert np.array_equal(layers[-1].kept, paths)
    assert np.array_equal(layers[-1].log_probability, log_p)
