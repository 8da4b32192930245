"""The overview and the paths under a prefix."""

from __future__ import annotations

import msgspec
import pytest

from pathdex.explorer.explorer import Explorer
from pathdex.explorer.overview import choices, found_warnings, num_pages, overview, paths_under
from pathdex.explorer.overview_schemas import ExploreOverview, PathsQuery
from tests.random_model import random_model
from tests.recommender_contract import TEXT_IDS


def test_the_overview_agrees_with_the_model(explorer: Explorer) -> None:
    found, model = overview(explorer, attributes=["genre"]), explorer.model
    assert (found.items, found.depth, found.num_nodes, found.paths_per_item) == (len(TEXT_IDS), 2, 4, 2)
    assert found.health == model.health()
    assert found.used_paths == found.health.used_paths
    assert [sum(layer.items) for layer in found.layers] == [found.entries] * 2
    assert [layer.dead for layer in found.layers] == list(found.health.dead_nodes)
    assert len(found.rounds) == 2
    assert found.rounds[0].figures["used_paths"] > 0
    abilities = found.abilities
    assert (abilities.titles, abilities.rounds, abilities.histories, abilities.comparison) == (True, True, True, False)
    assert abilities.attributes == ["genre"]
    assert found.largest[0].items == found.health.top_size
    assert msgspec.json.decode(msgspec.json.encode(found), type=ExploreOverview).items == found.items


def test_a_model_without_titles_and_recording_says_so() -> None:
    found = overview(Explorer(random_model(), "v"))
    abilities = found.abilities
    assert (abilities.titles, abilities.rounds, abilities.histories) == (False, False, False)
    assert found.largest[0].label is None


def test_warnings_are_taken_apart() -> None:
    records = [
        {"objective": 1.0, "warnings": ["W102: a layer is uneven; lower num_nodes, or train for longer"]},
        {"objective": 2.0, "warnings": ["something else"]},
    ]
    [last, first] = found_warnings(records)
    assert (last.code, last.message, last.round) == ("", "something else", 2)
    assert (first.code, first.message) == ("W102", "a layer is uneven")
    assert (first.advice, first.docs) == ("lower num_nodes, or train for longer", "warnings.md#w102")


def test_choices_are_sentences() -> None:
    assert choices([{"choices": {"next_items": 4}, "reason": "best"}, {"comparison": {}, "reason": "0.9"}]) == [
        "next_items=4: best",
        "0.9",
    ]


@pytest.mark.parametrize("sort", ["items", "interactions", "path"])
def test_pages_of_paths_hold_every_path_once(explorer: Explorer, sort: str) -> None:
    pages = [paths_under(explorer, PathsQuery(sort=sort, page=page, size=5)) for page in range(1, 5)]  # type: ignore[arg-type]
    paths = [tuple(one.path) for page in pages for one in page.paths]
    assert len(paths) == len(set(paths)) == pages[0].num_paths == len(explorer.facts)
    assert pages[0].pages == num_pages(len(paths), 5)


def test_children_lead_on(explorer: Explorer) -> None:
    whole = paths_under(explorer, PathsQuery())
    assert sum(child.items for child in whole.children) == whole.items
    first = whole.children[0]
    below = paths_under(explorer, PathsQuery(prefix=str(first.node)))
    assert (below.items, below.num_paths) == (first.items, first.paths)
    path = "-".join(map(str, below.paths[0].path))
    assert paths_under(explorer, PathsQuery(prefix=path)).children == []


def test_an_unused_prefix_is_empty(explorer: Explorer) -> None:
    unused = (
        next(f"{a}-{b}" for a in range(4) for b in range(4) if not len(explorer.facts.range_of((a, b))))
        if len(explorer.facts) < 16
        else None
    )
    if unused is None:
        pytest.skip("every path is in use")
    found = paths_under(explorer, PathsQuery(prefix=unused))
    assert (found.items, found.paths, found.pages, found.label) == (0, [], 1, None)
