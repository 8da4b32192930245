"""The explorer over HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec
import pytest

import pathdex
from pathdex.explorer.explorer import Explorer
from pathdex.server.explore_routes import EXPLORE_ROUTES
from tests.recommender_contract import TEXT_IDS
from tests.server.conftest import Running, running

ROUTES = {route.name: route for route in EXPLORE_ROUTES}


@pytest.fixture(scope="module")
def server(run_folder: Path) -> Iterator[Running]:
    with running(run_folder, compare=run_folder) as server:
        yield server


@pytest.fixture(scope="module")
def path(trained: pathdex.DeepRetrieval) -> str:
    return "-".join(map(str, trained.item_paths(TEXT_IDS[0])[0]))


def test_every_view_fits_its_schema(server: Running, path: str) -> None:
    for name, url in {
        "explore_overview": "overview",
        "explore_paths": "paths?prefix=1&sort=interactions",
        "explore_path": f"paths/{path}?size=2",
        "explore_node": "nodes/1?layer=2&size=2",
        "explore_status": "status",
        "explore_items": "items?search=hammer",
        "explore_item": f"items/{quote(TEXT_IDS[0])}",
        "explore_replay": "replay?items=3",
        "explore_compare": "compare?sort=paths",
    }.items():
        answer = server.get(f"/v1/explore/{url}")
        assert answer.status == 200, answer.body
        found = ROUTES[name].parse_response(answer.body)
        assert found.model == answer.headers["x-pathdex-model"]


@pytest.mark.parametrize(
    "more",
    [{}, {"n": 3, "beam": 2}, {"candidates": 9, "n": 4}, {"deny": TEXT_IDS[5:9], "exclude_seen": False}],
    ids=str,
)
def test_a_query_is_answered_as_by_recommend(server: Running, more: dict[str, Any]) -> None:
    body = {"history": TEXT_IDS[:3], **more}
    traced = server.post("/v1/explore/query", body).json
    answer = server.post("/v1/recommend", body).json
    assert [(one["id"], one["score"]) for one in traced["items"] if one["recommended"]] == [
        (one["id"], one["score"]) for one in answer["items"]
    ]
    assert traced["model"] == answer["model"]


def test_why_names_the_item(server: Running) -> None:
    found = server.post("/v1/explore/why", {"history": TEXT_IDS[:2], "item": TEXT_IDS[0]}).json
    assert (found["item"], found["reason"]) == (TEXT_IDS[0], "seen")


@pytest.mark.parametrize(
    ("url", "status", "message"),
    [
        ("items/nope", 404, "id='nope': is not in the catalogue of"),
        ("paths/9-9", 422, "path='9-9': must have 2 nodes between 0 and 3"),
        ("paths?prefix=1-2-3", 422, "prefix='1-2-3': must have at most 2 nodes"),
        ("items?page=0", 422, "page=0: does not fit"),
        ("overviews", 404, "no route for /v1/explore/overviews"),
    ],
)
def test_errors_name_the_field(server: Running, url: str, status: int, message: str) -> None:
    answer = server.get(f"/v1/explore/{url}")
    assert (answer.status, message in answer.message) == (status, True), answer.message


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({}, "is required"),
        ({"history": [], "n": 0}, "n=0: must be a whole number of at least 1"),
        ({"history": [], "beam": 10**9}, "must be at most 10000"),
        ({"history": ["nope"]}, "has no item of the catalogue"),
        ({"history": [], "candidates": 2}, "must be at least n=10"),
        ({"history": [], "user": "ada"}, "user='ada': is not a field of this request"),
    ],
)
def test_queries_are_checked_like_those_of_recommend(server: Running, body: dict[str, Any], message: str) -> None:
    answer = server.post("/v1/explore/query", body)
    assert (answer.status, message in answer.message) == (422, True), answer.message


def test_a_model_without_an_index_is_refused(popular: Path) -> None:
    with running(popular) as server:
        answer = server.get("/v1/explore/overview")
        assert (answer.status, answer.message) == (422, "a popularity model has no paths; use a deep-retrieval model")


def test_a_search_waits_only_for_a_moment(server: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Explorer, "waits_for", lambda *_: 7.4)
    answer = server.get("/v1/explore/items?search=a")
    assert (answer.status, answer.headers["retry-after"]) == (503, "1")
    assert "is being prepared, for 7 seconds so far" in answer.message
    assert server.get("/v1/explore/items").status == 200


def test_answers_are_plain_json(server: Running) -> None:
    answer = server.get("/v1/explore/overview")
    assert answer.headers["content-type"] == "application/json"
    assert msgspec.json.decode(answer.body)["abilities"]["comparison"] is True
