"""The paths through a node of any layer."""

from __future__ import annotations

import numpy as np
import pytest

from pathdex.errors import QueryError
from pathdex.explorer.explorer import Explorer
from pathdex.explorer.node_card import node_card
from pathdex.explorer.overview_schemas import NodeQuery
from pathdex.index.paths import decode_paths
from tests.random_model import random_model


@pytest.mark.parametrize("layer", [1, 2])
def test_all_paths_through_a_node_are_listed(explorer: Explorer, layer: int) -> None:
    facts = explorer.facts
    nodes = decode_paths(facts.paths, explorer.num_nodes, explorer.depth)
    for node in range(explorer.num_nodes):
        found = node_card(explorer, NodeQuery(node, layer))
        expected = np.flatnonzero(nodes[:, layer - 1] == node)
        assert sorted(one.path for one in found.paths) == sorted(nodes[expected].tolist())
        assert (found.num_paths, found.items) == (len(expected), facts.sizes[expected].sum())
        assert found.interactions == facts.interactions[expected].sum()
        counts = [one.interactions for one in found.paths]
        assert counts == sorted(counts, reverse=True)


def test_the_other_layers_add_up(explorer: Explorer) -> None:
    found = node_card(explorer, NodeQuery(1, 2))
    [other] = found.others
    assert other.layer == 1
    assert other.num_nodes == len(other.nodes)
    assert sum(one.items for one in other.nodes) == found.items
    assert sum(one.paths for one in other.nodes) == found.num_paths
    assert sum(one.interactions for one in other.nodes) == found.interactions


def test_consecutive_nodes_are_taken_together(explorer: Explorer) -> None:
    each = [node_card(explorer, NodeQuery(node, 2)) for node in (1, 2)]
    both = node_card(explorer, NodeQuery(1, 2, last=2))
    assert (both.first, both.last) == (1, 2)
    assert both.items == sum(one.items for one in each)
    assert both.num_paths == sum(one.num_paths for one in each)


def test_pages_split_the_paths(explorer: Explorer) -> None:
    whole = node_card(explorer, NodeQuery(1, 2))
    pages = [node_card(explorer, NodeQuery(1, 2, page=page, size=1)) for page in range(1, whole.num_paths + 1)]
    assert [one.path for page in pages for one in page.paths] == [one.path for one in whole.paths]
    assert {page.pages for page in pages} == {whole.num_paths}


def test_a_node_of_no_path_has_none() -> None:
    explorer = Explorer(random_model(4, num_nodes=9), "v")
    used = decode_paths(explorer.facts.paths, 9, explorer.depth)[:, 1]
    found = node_card(explorer, NodeQuery(next(node for node in range(9) if node not in used), 2))
    assert (found.num_paths, found.items, found.label, found.others, found.pages) == (0, 0, None, [], 1)


@pytest.mark.parametrize(
    ("query", "message"),
    [
        (NodeQuery(4, 2), "node=4: must be between 0 and 3"),
        (NodeQuery(0, 3), "layer=3: must be at most 2, the layers of this model"),
        (NodeQuery(2, 2, last=1), "last=1: must be between 2 and 3"),
        (NodeQuery(2, 2, last=4), "last=4: must be between 2 and 3"),
    ],
)
def test_a_node_is_checked(explorer: Explorer, query: NodeQuery, message: str) -> None:
    with pytest.raises(QueryError, match=message):
        node_card(explorer, query)
