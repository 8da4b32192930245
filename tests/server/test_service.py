"""Answers of the library for requests, without HTTP."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

import pathdex
from pathdex.errors import QueryError
from pathdex.server import service
from pathdex.server.model_loader import ModelLoader, ServedModel
from pathdex.server.schemas import QueryRequest, SimilarRequest
from tests.recommender_contract import TEXT_IDS


@pytest.fixture(scope="module")
def served(deep: Path) -> ServedModel:
    return ModelLoader(deep).load()


def test_queries_with_different_options_are_grouped(served: ServedModel) -> None:
    queries = [QueryRequest(history=[one], n=n) for one, n in zip(TEXT_IDS[:4], (3, 5, 3, 5), strict=True)]
    results = service.recommend(served, queries, [query.history or [] for query in queries])
    model = served.recommender
    assert [[item.id for item in result.items] for result in results] == [
        [item.id for item in model.recommend(query.history or [], query.n)] for query in queries
    ]


def test_titles_and_details(deep: Path, tmp_path: Path) -> None:
    table = pl.DataFrame({"item": TEXT_IDS[:4], "title": ["A", "B", "C", "D"], "year": [1, 2, 3, None]})
    model = pathdex.load(deep).describe_items(table)
    served = ModelLoader(model.save(tmp_path / "model")).load()
    assert served.info.attributes == ["title", "year"]
    query = QueryRequest(history=[TEXT_IDS[0]], n=40, where={"year": {"min": 2}}, explain=True)
    [result] = service.recommend(served, [query], [[TEXT_IDS[0]]])
    assert {(one.id, one.title, str(one.details)) for one in result.items} == {
        (TEXT_IDS[1], "B", "{'year': 2}"),
        (TEXT_IDS[2], "C", "{'year': 3}"),
    }
    assert {one.explanation.title for one in result.items if one.explanation is not None} == {"B", "C"}
    similar = service.similar(served, SimilarRequest(TEXT_IDS[0], 40)).items
    assert {one.id: (one.title, one.details) for one in similar}[TEXT_IDS[3]] == ("D", None)
    info = service.item_info(served, TEXT_IDS[1])
    assert (info.title, info.details) == ("B", {"year": 2})
    path = service.path_info(served, "-".join(map(str, (info.paths or [])[0])))
    assert dict(zip(path.items, path.titles or [], strict=True))[TEXT_IDS[1]] == "B"


def test_unknown_items(served: ServedModel) -> None:
    model = served.recommender
    assert service.known_items(model, ["x", TEXT_IDS[0]]) == [TEXT_IDS[0]]
    assert service.known_items(model, ["x"], lenient=True) == []
    with pytest.raises(QueryError, match=r"history 2 \('x'\) has no item of the catalogue"):
        service.known_items(model, ["x"], 2)


@pytest.mark.parametrize(
    "options",
    [{"n": 101}, {"beam": 1}, {"candidates": 9}, {"allow": []}, {"deny": [1] * 101}, {"where": {}}, {"explain": True}],
)
def test_expensive_queries_do_not_run_in_the_event_loop(options: dict[str, Any]) -> None:
    assert service.is_cheap(QueryRequest(history=[]))
    assert not service.is_cheap(QueryRequest(history=[], **options))


def test_a_model_that_cannot_explain(popular: Path) -> None:
    with pytest.raises(QueryError, match="a popularity model cannot explain its answers"):
        service.recommend(ModelLoader(popular).load(), [QueryRequest(history=[], explain=True)], [[]])


def test_a_model_without_paths(popular: Path) -> None:
    served = ModelLoader(popular).load()
    assert service.item_info(served, TEXT_IDS[0]).paths is None
    with pytest.raises(QueryError, match="a popularity model has no paths"):
        service.path_info(served, "0-0")


def test_integer_ids_are_found_by_their_text(numbered: Path) -> None:
    served = ModelLoader(numbered).load()
    first = served.recommender.items.id(0)
    assert isinstance(first, int)
    assert service.item_info(served, str(first)).id == first
