"""Candidates: exact under filters, never more than the budget, the same for one query and for many."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from pathdex.data.ragged import Ragged
from pathdex.index.paths import decode_paths
from pathdex.index.postings import Postings
from pathdex.index.start import random_paths
from pathdex.model.structure import MLPStructure, path_log_probabilities
from pathdex.retrieval.contract import NO_FILTERS, Filters
from pathdex.retrieval.retriever import Retriever

ITEMS, NODES, DEPTH = 30, 4, 2


@pytest.fixture(scope="module")
def retriever() -> Retriever:
    torch.manual_seed(0)
    postings = Postings.from_paths(random_paths(ITEMS, 2, NODES, DEPTH, seed=0), NODES, DEPTH)
    return Retriever(MLPStructure(5, NODES, DEPTH, 8, 3), postings, np.arange(ITEMS))


def users(number: int) -> torch.Tensor:
    return torch.randn(number, 5, generator=torch.Generator().manual_seed(1))


def test_an_items_probability_is_the_sum_over_its_paths_of_its_share_of_each(retriever: Retriever) -> None:
    found = retriever.candidates(users(3), NO_FILTERS, beam=NODES**DEPTH)
    codes = random_paths(ITEMS, 2, NODES, DEPTH, seed=0)
    paths = decode_paths(codes, NODES, DEPTH)

    def weight_on(path: int) -> int:
        return sum(item + 1 for item in range(ITEMS) if path in codes[item])

    for user, one in zip(users(3), found, strict=True):
        assert sorted(one.items) == list(range(ITEMS))
        share = (np.arange(ITEMS) + 1)[:, None] / np.array([[weight_on(path) for path in own] for own in codes])
        each = path_log_probabilities(retriever.structure, user.expand(ITEMS, -1), torch.from_numpy(paths))
        each = (each + torch.from_numpy(share).log()).logsumexp(dim=1)
        np.testing.assert_allclose(one.log_probability, each.detach().numpy()[one.items], rtol=1e-4, atol=1e-5)


def test_a_narrow_beam_returns_the_items_of_its_paths(retriever: Retriever) -> None:
    codes, _ = retriever.paths(users(4), 2)
    for path, one in zip(codes, retriever.candidates(users(4), NO_FILTERS, beam=2), strict=True):
        expected = {int(item) for code in path for item in retriever.postings.items_on(int(code))}
        assert set(one.items.tolist()) == expected
        assert len(one.items) == len(expected)


@settings(max_examples=40, deadline=None)
@given(
    exclude=st.lists(st.sets(st.integers(0, ITEMS - 1)), min_size=3, max_size=3),
    allow=st.none() | st.sets(st.integers(0, ITEMS - 1), min_size=1),
    least=st.integers(1, ITEMS + 3),
    beam=st.integers(1, 20),
    spare=st.none() | st.integers(0, 10),
)
def test_filters_are_exact_and_the_beam_widens_until_there_are_enough(
    retriever: Retriever,
    exclude: list[set[int]],
    allow: set[int] | None,
    least: int,
    beam: int,
    spare: int | None,
) -> None:
    filters = Filters(
        Ragged.from_rows(sorted(one) for one in exclude), None if allow is None else [np.array(sorted(allow))] * 3
    )
    budget = None if spare is None else least + spare
    found = retriever.candidates(users(3), filters, beam=beam, budget=budget, least=least)
    for query, one in enumerate(found):
        eligible = set(np.flatnonzero(filters.eligible(query, ITEMS)).tolist())
        assert set(one.items.tolist()) <= eligible
        assert len(set(one.items.tolist())) == len(one.items) >= min(least, len(eligible))
        assert budget is None or len(one.items) <= budget
    alone = retriever.candidates(users(3)[:1], filters, beam=beam, budget=budget, least=least)
    assert alone[0].items.tolist() == found[0].items.tolist()


def test_a_budget_keeps_the_most_probable_items(retriever: Retriever) -> None:
    whole = retriever.candidates(users(1), NO_FILTERS, beam=16)[0]
    kept = retriever.candidates(users(1), NO_FILTERS, beam=16, budget=7)[0]
    order = sorted(range(ITEMS), key=lambda place: (-whole.log_probability[place], whole.items[place]))
    assert kept.items.tolist() == whole.items[order[:7]].tolist()
