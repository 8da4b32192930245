"""The routes: the declarations, and the responses of each over a real socket."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

import pathdex
from pathdex.server.limits import ServerLimits
from pathdex.server.routes import ROUTES, events, remove_items
from tests.recommender_contract import TEXT_IDS
from tests.server.conftest import Running, running


def test_paths_and_names_are_unique() -> None:
    places = {(route.method, route.path) for route in ROUTES}
    assert len(places) == len({route.name for route in ROUTES}) == len(ROUTES)


def test_every_example_is_valid() -> None:
    for route in [one for one in ROUTES if not one.internal]:
        assert (route.request is not None) == bool(route.example) == (route.method == "POST" or route is remove_items)
        if route.request is not None:
            route.parse(msgspec.json.encode(dict(route.example)), ServerLimits())


def test_only_events_must_not_be_repeated() -> None:
    assert [route for route in ROUTES if not route.safe_to_repeat] == [events]


@pytest.fixture(scope="module")
def server(deep: Path) -> Iterator[Running]:
    with running(deep) as server:
        yield server


@pytest.fixture(scope="module")
def model(deep: Path) -> pathdex.DeepRetrieval:
    return pathdex.DeepRetrieval.load(deep)


@pytest.fixture(scope="module")
def version(server: Running) -> str:
    assert server.worker.models.current is not None
    return server.worker.models.current.version


def items(answer: list[Any]) -> list[dict[str, Any]]:
    return [{"id": id, "score": score} for id, score in answer]


def test_recommend(server: Running, model: pathdex.DeepRetrieval, version: str) -> None:
    body = {"history": TEXT_IDS[:2], "n": 3, "beam": 8, "exclude_seen": False, "deny": TEXT_IDS[4:5], "explain": False}
    answer = server.post("/v1/recommend", body)
    assert (answer.status, answer.headers["content-type"]) == (200, "application/json")
    found = model.recommend(TEXT_IDS[:2], 3, beam=8, exclude_seen=False, deny=TEXT_IDS[4:5])
    assert answer.json == {"model": version, "items": items(found)}


def test_recommend_batch_with_options_per_query(server: Running, model: pathdex.DeepRetrieval, version: str) -> None:
    queries = [
        {"history": TEXT_IDS[:1], "n": 2},
        {"history": [], "n": 3, "candidates": 9},
        {"history": TEXT_IDS[8:10], "n": 2, "allow": TEXT_IDS[:20]},
    ]
    answer = server.post("/v1/recommend", {"queries": queries})
    wanted = [
        model.recommend(TEXT_IDS[:1], 2),
        model.recommend([], 3, candidates=9),
        model.recommend(TEXT_IDS[8:10], 2, allow=TEXT_IDS[:20]),
    ]
    assert answer.json == {"model": version, "results": [{"items": items(one)} for one in wanted]}


def test_null_means_default(server: Running) -> None:
    nulls = dict.fromkeys(("user", "beam", "candidates", "allow", "where"))
    plain = server.post("/v1/recommend", {"history": TEXT_IDS[:2]})
    assert server.post("/v1/recommend", {"history": TEXT_IDS[:2], **nulls}).json == plain.json


def test_unknown_history_items_are_counted(server: Running) -> None:
    known = server.post("/v1/recommend", {"history": TEXT_IDS[:1], "n": 2}).json
    mixed = server.post("/v1/recommend", {"history": ["x", TEXT_IDS[0], 7], "n": 2}).json
    assert mixed == {**known, "unknown": 2}


def test_recommend_with_explanations(server: Running, model: pathdex.DeepRetrieval) -> None:
    found = server.post("/v1/recommend", {"history": TEXT_IDS[:2], "n": 2, "explain": True}).json["items"]
    for item in found:
        wanted = model.explain(TEXT_IDS[:2], item["id"])
        assert [tuple(path["nodes"]) for path in item["explanation"]["paths"]] == [path.nodes for path in wanted.paths]
        assert item["explanation"]["score"] == pytest.approx(item["score"])


def test_item_and_path(server: Running, model: pathdex.DeepRetrieval, version: str) -> None:
    paths = model.item_paths(TEXT_IDS[3])
    answer = server.get("/v1/items/item%203")
    assert answer.json == {"model": version, "id": TEXT_IDS[3], "paths": [list(path) for path in paths]}
    written = "-".join(map(str, paths[0]))
    on_it = server.get(f"/v1/paths/{written}").json
    assert on_it == {"model": version, "path": list(paths[0]), "items": model.path_items(paths[0])}


@pytest.mark.parametrize("path", ["a", "1", "1-2-3", "0--1", "0-99", "-1-0", "1e3-0", "%F0-0", "9999999999-0"])
def test_an_invalid_path(server: Running, path: str) -> None:
    answer = server.get(f"/v1/paths/{path}")
    assert (answer.status, answer.json["error"]["field"]) == (422, "path")


def test_model(server: Running, model: pathdex.DeepRetrieval) -> None:
    info = server.get("/v1/model").json
    assert (info["estimator"], info["items"], info["ids"]) == ("deep-retrieval", 32, "str")
    assert info["config"] == model.config.to_dict()
    assert info["health"] == json.loads(json.dumps(model.health().to_dict()))
    assert info["attributes"] == []


def test_where_needs_a_catalogue_table(server: Running) -> None:
    answer = server.post("/v1/recommend", {"history": [], "where": {"colour": "red"}})
    assert (answer.status, answer.json["error"]["field"]) == (422, "where")


def test_where_uses_the_catalogue_table(popular: Path, tmp_path: Path) -> None:
    lines = ["item_id,colour", *(f"{one},{'red' if place < 3 else 'blue'}" for place, one in enumerate(TEXT_IDS))]
    (tmp_path / "shop.csv").write_text("\n".join(lines))
    with running(popular, catalogue=tmp_path / "shop.csv") as server:
        answer = server.post("/v1/recommend", {"history": [], "where": {"colour": ["red"]}}).json
        assert sorted(item["id"] for item in answer["items"]) == TEXT_IDS[:3]
        assert server.get("/v1/model").json["attributes"] == ["colour"]
        wrong = server.post("/v1/recommend", {"history": [], "where": {"color": ["red"]}})
        assert (wrong.status, wrong.json["error"]["type"]) == (422, "QueryError")


def test_similar(server: Running, model: pathdex.DeepRetrieval, version: str) -> None:
    found = server.post("/v1/similar", {"item": TEXT_IDS[3], "n": 4}).json
    assert found == {"model": version, "items": items(model.similar_items(TEXT_IDS[3], 4))}


def test_explain_and_why_not(server: Running, model: pathdex.DeepRetrieval) -> None:
    body = {"history": TEXT_IDS[:2], "item": TEXT_IDS[3], "beam": 4}
    explained = server.post("/v1/explain", body).json["explanation"]
    assert [path["probability"] for path in explained["paths"]] == pytest.approx(
        [path.probability for path in model.explain(TEXT_IDS[:2], TEXT_IDS[3], beam=4).paths]
    )
    found = server.post("/v1/why-not", {**body, "n": 2}).json["why_not"]
    wanted = model.why_not(TEXT_IDS[:2], TEXT_IDS[3], n=2, beam=4)
    assert (found["reason"], found["rank"], found["needed"]) == (wanted.reason, wanted.rank, wanted.needed)


def test_health_and_documents(server: Running, version: str) -> None:
    assert server.get("/health/live").json == {"status": "live", "model": version}
    assert server.get("/health/ready").json == {"status": "ready", "model": version}
    assert server.get("/openapi.json").json["openapi"] == "3.1.0"
    assert server.get("/docs").headers["content-type"] == "text/html; charset=utf-8"
    assert server.get("/metrics").headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
