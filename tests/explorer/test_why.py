"""Why and why not: every reason, and the layer that lost an item."""

from __future__ import annotations

from typing import Any

import pytest

from pathdex.errors import QueryError
from pathdex.explorer.explorer import Explorer
from pathdex.explorer.query_schemas import WhyQuery
from pathdex.explorer.why import why
from tests.random_model import random_model
from tests.recommender_contract import TEXT_IDS


@pytest.mark.parametrize(
    ("reason", "options"),
    [
        ("seen", {"history": TEXT_IDS[:1]}),
        ("denied", {"deny": TEXT_IDS[:1]}),
        ("not allowed", {"allow": TEXT_IDS[1:]}),
        ("where", {"where": {"year": {"min": 1995}}}),
    ],
)
def test_filters_are_named(explorer: Explorer, reason: str, options: dict[str, Any]) -> None:
    found = why(explorer, WhyQuery(**{"history": [], **options}, item=TEXT_IDS[0]))
    assert found.reason == reason
    assert found.title == "Ripe apple 0"


def test_recommended_items_have_their_rank(explorer: Explorer) -> None:
    best = explorer.model.recommend(TEXT_IDS[:2], 3)
    for rank, one in enumerate(best, start=1):
        found = why(explorer, WhyQuery(TEXT_IDS[:2], n=3, item=one.id))
        assert (found.reason, found.rank, found.score) == ("recommended", rank, one.score)
        assert found.text == f"It is recommended at rank {rank}."


def test_lower_scores_are_compared_with_the_last(explorer: Explorer) -> None:
    ranking = explorer.model.recommend(TEXT_IDS[:2], 10, beam=16)
    found = why(explorer, WhyQuery(TEXT_IDS[:2], n=3, beam=16, item=ranking[7].id))
    assert (found.reason, found.rank, found.score, found.needed) == ("score", 8, ranking[7].score, ranking[2].score)
    assert found.parts is not None
    assert found.needed_parts is not None


def test_a_lost_item_has_its_layer_and_a_beam_that_finds_it(explorer: Explorer) -> None:
    history = TEXT_IDS[:2]
    lost = [why(explorer, WhyQuery(history, n=1, beam=1, item=one)) for one in TEXT_IDS[2:]]
    lost = [one for one in lost if one.reason == "beam"]
    assert lost
    for one in lost:
        expected = explorer.model.why_not(history, one.item, n=1, beam=1)
        assert (one.layer, one.smallest_beam) == (expected.layer, expected.smallest_beam)
        for path in one.paths:
            assert path.rank is None
            [first_lost] = [layer.layer for layer in path.layers if not layer.kept][:1]
            assert path.lost_at == first_lost
        again = why(explorer, WhyQuery(history, n=1, beam=one.smallest_beam, item=one.item))
        assert again.reason in ("recommended", "score")


def test_a_candidate_limit_is_named() -> None:
    explorer = Explorer(random_model(300, num_nodes=4), "v")
    items = [100 + code for code in range(300)]
    reasons = {why(explorer, WhyQuery([], n=1, candidates=5, item=one)).reason for one in items}
    assert "candidates" in reasons


def test_an_unknown_item_is_an_error(explorer: Explorer) -> None:
    with pytest.raises(QueryError, match="item='nope': is not in the catalogue"):
        why(explorer, WhyQuery([], item="nope"))
