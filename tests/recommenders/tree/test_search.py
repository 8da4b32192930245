"""Beam search against exhaustive and greedy search."""

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from pathdex.data.ragged import Ragged
from pathdex.model.network import pad_histories
from pathdex.recommenders.tree.network import Histories, TreeNetwork
from pathdex.recommenders.tree.search import beam_search, search
from pathdex.retrieval.filters import NO_FILTERS, Filters
from tests.recommenders.tree.tiny import tiny_network

HISTORIES = Ragged.from_rows([[3, 1, 4, 1, 5], [9], []])


@torch.no_grad()
def all_scores(network: TreeNetwork, level: int) -> np.ndarray:
    """(query, node)."""
    items, last = pad_histories(HISTORIES, network.settings.history_length)
    histories = Histories(network, items, np.arange(3), last)
    return histories.logits(level, np.tile(np.arange(network.tree.size(level)), (3, 1)))


@settings(deadline=None, max_examples=10)
@given(seed=st.integers(0, 100), hierarchical=st.booleans())
def test_beam_of_the_whole_tree_is_exhaustive(seed: int, hierarchical: bool) -> None:
    network = tiny_network(13, seed=seed, hierarchical=hierarchical)
    ranking = search(network, HISTORIES, 13, NO_FILTERS, beam=8)
    scores = all_scores(network, network.tree.depth)
    np.testing.assert_allclose(ranking.scores, np.take_along_axis(scores, ranking.items, axis=1), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(ranking.scores, -np.sort(-scores, axis=1), rtol=1e-4, atol=1e-5)
    assert ranking.candidates.tolist() == [13, 13, 13]


def test_beam_of_one_is_greedy() -> None:
    network = tiny_network(13)
    tree = network.tree
    found = beam_search(network, HISTORIES, beam=1)
    for query in range(3):
        nodes = np.arange(2)
        for level in range(1, tree.depth):
            best = nodes[np.argmax(all_scores(network, level)[query, nodes])]
            nodes = tree.children(level, np.array([best]))
        assert found.items[query].tolist() == nodes.tolist()


@settings(deadline=None, max_examples=20)
@given(
    excluded=st.lists(st.lists(st.integers(0, 12), max_size=13), min_size=3, max_size=3),
    n=st.integers(1, 14),
    beam=st.integers(1, 9),
)
def test_filters_never_drop_an_eligible_item(excluded: list[list[int]], n: int, beam: int) -> None:
    network = tiny_network(13)
    ranking = search(network, HISTORIES, n, Filters(exclude=Ragged.from_rows(excluded)), beam)
    for query in range(3):
        eligible = set(range(13)) - set(excluded[query])
        found = [item for item in ranking.items[query].tolist() if item >= 0]
        assert len(found) == len(set(found)) == min(n, len(eligible))
        assert set(found) <= eligible


def test_wide_filtered_beam_equals_filtering_afterwards() -> None:
    network = tiny_network(13)
    allow = np.array([2, 7, 11])
    ranking = search(network, HISTORIES, 3, Filters(allow=[allow] * 3), beam=1)
    scores = all_scores(network, network.tree.depth)[:, allow]
    wide = search(network, HISTORIES, 3, Filters(allow=[allow] * 3), beam=8)
    assert ranking.items.tolist() == wide.items.tolist() == allow[np.argsort(-scores, axis=1)].tolist()
