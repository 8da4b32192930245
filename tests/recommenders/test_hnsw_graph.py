"""Graphs of usearch are checked node by node before they are loaded."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pathdex.recommenders.hnsw_graph import HEAD, graph_kinds, graph_problem

index = pytest.importorskip("usearch.index")
ITEMS, DIM, NEAR = 300, 3, 4
HEADER = 8 + ITEMS * DIM * 4
BODY = HEADER + HEAD
LEVELS = BODY + 40


def new_graph(count: int) -> Any:
    graph = index.Index(ndim=DIM, metric="l2sq", dtype="f32", connectivity=NEAR)
    if count:
        graph.add(np.arange(count), np.random.default_rng(0).random((count, DIM), np.float32), threads=1)
    return np.frombuffer(graph.save(), np.uint8).copy()


@pytest.fixture(scope="module")
def saved() -> Any:
    return new_graph(ITEMS)


def problem(graph: Any, items: int = ITEMS, dim: int = DIM, near: int = NEAR) -> str | None:
    return graph_problem(graph, items, dim, near, graph_kinds(new_graph(0)))


@pytest.mark.parametrize("count", [1, 2, 50, 700])
def test_what_usearch_saves_is_valid(count: int) -> None:
    assert problem(new_graph(count), count) is None


def test_the_sizes_are_those_of_the_model(saved: Any) -> None:
    assert problem(saved, ITEMS - 1) == "must hold the vectors of 299 items with 3 dimensions"
    assert problem(saved, ITEMS, 2) == "must hold the vectors of 300 items with 2 dimensions"
    assert problem(saved, ITEMS, DIM, 5) == "must have 300 nodes with 5 neighbours, 10 on the base level"
    assert problem(saved[:200]) == "is too short for its items"
    assert problem(saved[:-1]) == f"has {len(saved) - 1} bytes, must have {len(saved)}"


def changed(saved: Any, place: int, value: int, size: int = 4) -> Any:
    graph = saved.copy()
    graph[place : place + size] = np.frombuffer(value.to_bytes(size, "little"), np.uint8)
    return graph


def test_each_problem_is_named(saved: Any) -> None:
    first = LEVELS + 2 * ITEMS
    level_of_first = int(saved[LEVELS])
    assert problem(changed(saved, HEADER, 0)) == "has another head than usearch writes for these items"
    assert problem(changed(saved, BODY + 32, ITEMS, 8)) == "must begin its search at a node of the top level"
    assert problem(changed(saved, 8, 0x7FC00000)) == "has a vector with a number that is not finite or above 100000.0"
    assert problem(changed(saved, first, ITEMS, 8)) == "has a key that is no item"
    assert problem(changed(saved, first, 5, 8)) == "must have every item once"
    rule = "has a node whose level differs from its entry in the levels"
    assert problem(changed(saved, first + 8, level_of_first + 1, 2)) == rule
    rule = "has a node with too many neighbours, or with one that is no node"
    assert problem(changed(saved, first + 10, 1000)) == rule
    assert problem(changed(saved, first + 14, ITEMS)) == rule


def test_a_neighbour_must_be_on_the_level(saved: Any) -> None:
    levels = saved[LEVELS : LEVELS + 2 * ITEMS].view(np.int16)
    upper, low = int(np.flatnonzero(levels > 0)[0]), int(np.flatnonzero(levels == 0)[0])
    place = LEVELS + 2 * ITEMS + sum(10 + 4 * (1 + 2 * NEAR) + int(one) * 4 * (1 + NEAR) for one in levels[:upper])
    place += 10 + 4 * (1 + 2 * NEAR)
    assert int(saved[place]) >= 1
    assert problem(changed(saved, place + 4, low)) == "has a neighbour on level 1 that is not there"


def test_any_changed_byte_is_refused_or_harmless(saved: Any) -> None:
    random = np.random.default_rng(1)
    for place in random.integers(0, len(saved), 300):
        graph = saved.copy()
        graph[place] ^= 1 << random.integers(8)
        if problem(graph) is None:
            loaded = index.Index(ndim=DIM, metric="l2sq", dtype="f32", connectivity=NEAR)
            try:
                loaded.load(graph.tobytes())
            except RuntimeError:
                continue  # Another version.
            keys = loaded.search(np.ones((1, DIM), np.float32), 20, threads=1).keys
            assert np.all(np.asarray(keys) < ITEMS)
