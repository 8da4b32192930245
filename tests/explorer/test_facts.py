"""Sums over the index, against plain Python on the paths of a random model."""

from __future__ import annotations

from collections import Counter, defaultdict

import numpy as np
import pytest

from pathdex.explorer import facts as module
from pathdex.explorer.facts import IndexFacts
from pathdex.index.paths import decode_paths
from tests.random_model import random_model

MODEL = random_model(60, num_nodes=5, depth=3)
COUNTS = MODEL.model_state.counts
PATHS = {item: [tuple(path) for path in decode_paths(MODEL.paths[item], 5, 3).tolist()] for item in range(60)}
SIZES = Counter(path for paths in PATHS.values() for path in paths)


@pytest.fixture
def facts(monkeypatch: pytest.MonkeyPatch) -> IndexFacts:
    monkeypatch.setattr(module, "BLOCK", 7)
    return IndexFacts.of(MODEL.postings, COUNTS)


def test_every_path_has_its_size_and_interactions(facts: IndexFacts) -> None:
    interactions: dict[tuple[int, ...], int] = defaultdict(int)
    for item, paths in PATHS.items():
        for path in paths:
            interactions[path] += int(COUNTS[item])
    nodes = [tuple(path) for path in decode_paths(facts.paths, 5, 3).tolist()]
    assert dict(zip(nodes, facts.sizes.tolist(), strict=True)) == SIZES
    assert dict(zip(nodes, facts.interactions.tolist(), strict=True)) == interactions
    assert facts.num_entries == 120


def test_loads_count_items_and_paths_per_node(facts: IndexFacts) -> None:
    for layer, load in enumerate(facts.loads):
        assert load.items.tolist() == [sum(n for p, n in SIZES.items() if p[layer] == node) for node in range(5)]
        assert load.paths.tolist() == [sum(p[layer] == node for p in SIZES) for node in range(5)]


def test_many_nodes_share_cells(facts: IndexFacts, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_CELLS", 2)
    [first, *_] = facts.loads
    assert (first.nodes_per_cell, len(first.items), int(first.items.sum())) == (3, 2, 120)


@pytest.mark.parametrize("prefix", [(), (2,), (2, 1), (4, 4)])
def test_a_prefix_has_the_sum_of_its_paths(facts: IndexFacts, prefix: tuple[int, ...]) -> None:
    under = {path: size for path, size in SIZES.items() if path[: len(prefix)] == prefix}
    part = facts.range_of(prefix)
    assert (len(part), facts.totals(part)[0]) == (len(under), sum(under.values()))
    children = facts.children(prefix)
    expected = Counter[int]()
    for path, size in under.items():
        expected[path[len(prefix)]] += size
    assert dict(zip(children.nodes.tolist(), children.items.tolist(), strict=True)) == expected
    assert children.items.tolist() == sorted(children.items.tolist(), reverse=True)


@pytest.mark.parametrize("prefix", [(), (2,)])
def test_pages_are_parts_of_the_whole_order(facts: IndexFacts, prefix: tuple[int, ...]) -> None:
    part = facts.range_of(prefix)
    for sort, values in (("items", facts.sizes), ("interactions", facts.interactions)):
        pages = [facts.ordered(part, sort, first, 4) for first in range(0, len(part) + 4, 4)]
        whole = np.concatenate(pages)
        assert sorted(whole.tolist()) == list(part)
        assert (np.diff(values[whole]) <= 0).all()
    assert facts.ordered(part, "path", 1, 2).tolist() == list(part)[1:3]


def test_flows_lead_from_parents_to_children(facts: IndexFacts) -> None:
    found = {prefix: items for prefix, items, _ in facts.flows}
    for prefix, items in found.items():
        assert len(prefix) == 1 or found[prefix[:-1]] >= items
        assert items == facts.totals(facts.range_of(prefix))[0]


def test_size_classes_cover_all_paths(facts: IndexFacts) -> None:
    classes = facts.size_classes
    assert sum(paths for *_, paths, _ in classes) == len(facts)
    assert sum(items for *_, items in classes) == facts.num_entries
    assert all(high == 2 * low - 1 for low, high, *_ in classes)
