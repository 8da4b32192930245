"""Lists of items and the card of an item."""

from __future__ import annotations

import pytest

from pathdex.explorer.explorer import Explorer
from pathdex.explorer.item_card import find_items, item_card
from pathdex.explorer.item_schemas import ItemsQuery
from pathdex.explorer.rounds import item_rounds
from tests.random_model import random_model
from tests.recommender_contract import TEXT_IDS


def test_all_items_come_by_popularity(explorer: Explorer) -> None:
    pages = [find_items(explorer, ItemsQuery(page=page, size=10)) for page in range(1, 5)]
    found = [one for page in pages for one in page.items]
    assert sorted(str(one.id) for one in found) == sorted(TEXT_IDS)
    counts = [one.interactions for one in found]
    assert counts == sorted(counts, reverse=True)


def test_titles_are_searched(explorer: Explorer) -> None:
    found = find_items(explorer, ItemsQuery("HAMM ste"))
    assert found.total == len(TEXT_IDS) // 2
    assert all("hammer" in str(one.title) for one in found.items)
    assert found.searched == len(TEXT_IDS)


def test_an_exact_id_comes_first(explorer: Explorer) -> None:
    assert find_items(explorer, ItemsQuery(TEXT_IDS[7])).items[0].id == TEXT_IDS[7]


def test_models_without_titles_are_searched_by_id() -> None:
    explorer = Explorer(random_model(30), "v")
    found = find_items(explorer, ItemsQuery("10"))
    assert {one.id for one in found.items} == set(range(100, 110))


def test_a_card_shows_the_paths_side_by_side(explorer: Explorer) -> None:
    code = explorer.code_of(TEXT_IDS[0])
    card = item_card(explorer, code)
    assert [tuple(one.path) for one in card.paths] == explorer.model.item_paths(TEXT_IDS[0])
    for one in card.paths:
        items = explorer.model.path_items(one.path)
        assert one.items == len(items)
        assert {other.id for other in one.neighbours} <= set(items) - {TEXT_IDS[0]}
    similar = explorer.model.similar_items(TEXT_IDS[0], len(card.similar))
    assert [(one.id, one.similarity) for one in card.similar] == [(one.id, pytest.approx(one.score)) for one in similar]
    order = explorer.by_popularity.tolist()
    assert card.popularity_rank == order.index(code) + 1


def test_histories_have_the_item_in_their_answer(explorer: Explorer) -> None:
    answered = next(card for code in range(9) if (card := item_card(explorer, code)).histories)
    assert answered.histories is not None
    one = answered.histories[0]
    found = explorer.model.recommend([item.id for item in one.history], 50)
    assert found[one.rank - 1].id == answered.id
    assert found[one.rank - 1].score == pytest.approx(one.score)


def test_rounds_end_with_the_paths_of_the_model(explorer: Explorer) -> None:
    rounds, sample = item_rounds(explorer, 3)
    assert rounds is not None
    assert sample == len(explorer.model.items)
    assert [tuple(path) for path in rounds[-1].paths] == explorer.model.item_paths(TEXT_IDS[3])


def test_nothing_was_recorded() -> None:
    card = item_card(Explorer(random_model(), "v"), 0)
    assert (card.histories, card.rounds, card.title, card.details) == (None, None, None, None)
