"""The card of a path."""

from __future__ import annotations

import numpy as np
import pytest

from pathdex.explorer.explorer import Explorer
from pathdex.explorer.overview_schemas import PathQuery
from pathdex.explorer.path_card import near_paths, path_card
from tests.random_model import random_model


def largest(explorer: Explorer) -> tuple[int, ...]:
    return tuple(explorer.nodes_of(int(explorer.facts.paths[explorer.facts.by_size[0]])))


def text(nodes: tuple[int, ...]) -> str:
    return "-".join(map(str, nodes))


def test_a_card_has_the_items_of_the_path(explorer: Explorer) -> None:
    nodes = largest(explorer)
    card = path_card(explorer, PathQuery(text(nodes)))
    assert {one.id for one in card.items} == set(explorer.model.path_items(nodes))
    assert sum(one.share for one in card.items) == pytest.approx(1)
    counts = [one.interactions for one in card.items]
    assert counts == sorted(counts, reverse=True)
    assert sum(counts) == card.interactions
    assert all(one.title for one in card.items)


def test_pages_split_the_items(explorer: Explorer) -> None:
    nodes = text(largest(explorer))
    whole = path_card(explorer, PathQuery(nodes))
    pages = [path_card(explorer, PathQuery(nodes, page, 2)) for page in range(1, whole.num_items // 2 + 2)]
    assert [one.id for page in pages for one in page.items] == [one.id for one in whole.items]


def test_cohesion_is_the_mean_cosine_to_the_centre(explorer: Explorer) -> None:
    nodes = largest(explorer)
    card = path_card(explorer, PathQuery(text(nodes)))
    codes = [explorer.model.items.code(one.id) for one in card.items]
    vectors = explorer.model.item_vectors[codes]
    centre = vectors.mean(axis=0)
    expected = vectors @ centre / np.linalg.norm(vectors, axis=1) / np.linalg.norm(centre)
    assert card.cohesion is not None
    assert card.cohesion.similarity == pytest.approx(expected.mean(), rel=1e-5)
    assert [one.similarity for one in card.items] == pytest.approx(expected, rel=1e-5)


def test_neighbours_share_a_prefix(explorer: Explorer) -> None:
    nodes = largest(explorer)
    found = near_paths(explorer, nodes)
    assert found
    for one in found:
        assert tuple(one.path) != nodes
        assert tuple(one.path[: one.common]) == nodes[: one.common]
        assert one.path[one.common] != nodes[one.common]


def test_histories_that_lead_here_have_it_in_their_beam(explorer: Explorer) -> None:
    nodes = largest(explorer)
    card = path_card(explorer, PathQuery(text(nodes)))
    assert card.histories
    assert card.num_histories >= len(card.histories)
    for one in card.histories[:3]:
        history = [item.id for item in one.history]
        on_path = explorer.model.path_items(nodes)[0]
        [part] = [path for path in explorer.model.explain(history, on_path).paths if path.nodes == nodes]
        assert part.beam_rank == one.rank
        assert part.probability == pytest.approx(one.probability, rel=1e-3)


def test_rounds_count_those_who_come_and_go(explorer: Explorer) -> None:
    card = path_card(explorer, PathQuery(text(largest(explorer))))
    assert card.rounds is not None
    assert [one.number for one in card.rounds] == [0, 1, 2]
    for before, after in zip(card.rounds, card.rounds[1:], strict=False):
        assert after.items == before.items + after.entered - after.left
    assert card.rounds[-1].items == card.num_items
    assert card.round_sample == len(explorer.model.items)


def test_an_unused_path_is_empty() -> None:
    explorer = Explorer(random_model(4, num_nodes=9), "v")
    unused = next(node for node in range(9) if not len(explorer.facts.range_of((node, 0))))
    card = path_card(explorer, PathQuery(f"{unused}-0"))
    assert (card.items, card.num_items, card.cohesion, card.label) == ([], 0, None, None)
    assert (card.histories, card.rounds) == (None, None)
