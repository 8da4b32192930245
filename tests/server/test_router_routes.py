"""A router over HTTP: shards that are down, partial answers, health, metrics."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from pathdex.recommenders.sharding import write_shards
from pathdex.server.limits import RouterLimits
from tests.random_model import random_model
from tests.server.conftest import Running, running
from tests.server.test_routed_model import PATIENT, serving, wait_for

QUICK = RouterLimits(shard_timeout=60.0, shard_retries=1, hedge_after=0.0)
QUERY = {"history": [100, 104], "n": 8}


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    root = tmp_path_factory.mktemp("routes")
    random_model(60, neighbours=3).save(root / "model")
    return write_shards(root / "model", 3, root / "shards").folders


@pytest.fixture
def shards(folders: list[Path]) -> Iterator[list[Running]]:
    with serving(folders) as servers:
        yield servers


def test_without_a_shard_there_is_an_error_that_names_it(shards: list[Running]) -> None:
    urls = tuple(server.url for server in shards)
    with running(Path(), shards=urls, router=QUICK, watch=0.05) as router:
        assert router.post("/v1/recommend", QUERY).status == 200
        assert router.get("/health/ready").json == {"status": "ready", "model": router.worker.models.current.version}  # type: ignore[union-attr]
        shards[1].stop()
        answer = router.post("/v1/recommend", QUERY)
        assert answer.status == 503
        assert f"shard 2 of 3 does not answer ({shards[1].url}: " in answer.message
        assert "start the router with --partial" in answer.message
        wait_for(lambda: router.get("/health/ready").status == 503)
        ready = router.get("/health/ready").json
        assert (ready["status"], ready["missing_shards"]) == ("shards missing", [2])
        metrics = router.get("/metrics").body.decode()
        assert 'pathdex_shard_failures_total{shard="2"} 1\n' in metrics
        assert 'pathdex_shard_retries_total{shard="2"} 1\n' in metrics
        assert 'pathdex_shard_failures_total{shard="1"} 0\n' in metrics
        assert 'pathdex_shard_duration_seconds_count{shard="1"}' in metrics


def test_a_partial_answer_says_what_it_lacks(shards: list[Running]) -> None:
    urls = tuple(server.url for server in shards)
    with running(Path(), shards=urls, router=QUICK, partial=True, watch=0.05) as router:
        whole = router.post("/v1/recommend", QUERY)
        assert "missing_shards" not in whole.json
        assert "x-pathdex-missing-shards" not in whole.headers
        shards[1].stop()
        for path, body in (
            ("/v1/recommend", QUERY),
            ("/v1/recommend", {"queries": [QUERY]}),
            ("/v1/similar", {"item": 100}),
        ):
            answer = router.post(path, body)
            assert answer.status == 200
            assert answer.json["missing_shards"] == [2]
            assert answer.headers["x-pathdex-missing-shards"] == "2"
        assert "pathdex_router_partial_answers_total 3\n" in router.get("/metrics").body.decode()
        wait_for(lambda: "missing_shards" in router.get("/health/ready").json)
        assert router.get("/health/ready").status == 200
        # What only the missing shard can know is an error, not an answer that is wrong.
        assert router.get("/v1/items/101").status == 503
        assert router.get("/v1/paths/0-0").status == 503


def test_neither_a_router_nor_a_shard_explores_a_part_of_a_model(shards: list[Running]) -> None:
    with running(Path(), shards=tuple(server.url for server in shards), router=PATIENT) as router:
        for answer in (
            router.get("/v1/explore/overview"),
            router.get("/v1/explore/paths/0-0-0"),
            router.post("/v1/explore/query", QUERY),
        ):
            assert answer.status == 404
            assert "a router has no explorer" in answer.message
        assert router.get("/explore/").status == 200
    answer = shards[1].get("/v1/explore/overview")
    assert answer.status == 422
    assert "shard 2 of 3 has only a part of the items" in answer.message
    assert "explore the model that was sharded" in answer.message


def test_a_router_has_no_routes_of_shards(shards: list[Running]) -> None:
    with running(Path(), shards=tuple(server.url for server in shards), router=PATIENT) as router:
        assert router.get("/v1/shard").status == 404
        paths = router.get("/openapi.json").json["paths"]
        assert "/v1/shard" not in paths
        example = paths["/v1/recommend"]["post"]["requestBody"]["content"]["application/json"]["example"]
        assert router.post("/v1/recommend", example).status == 200
        [parameter] = paths["/v1/paths/{path}"]["get"]["parameters"]
        assert router.get(f"/v1/paths/{parameter['example']}").json["items"]
        assert "/v1/shard" not in shards[0].get("/openapi.json").json["paths"]
        assert router.get("/v1/model").json["estimator"] == "deep-retrieval"


def test_errors_are_those_of_a_server(shards: list[Running], folders: list[Path]) -> None:
    bodies = [
        {"history": [1]},
        {"history": [100], "n": 0},
        {"history": [100], "where": {"a": 1}},
        {"history": [100], "n": 5, "candidates": 3},
        {"history": "x"},
        {},
    ]
    with (
        running(folders[0].parent.parent / "model") as whole,
        running(Path(), shards=tuple(server.url for server in shards), router=PATIENT) as router,
    ):
        for body in bodies:
            expected, found = whole.post("/v1/recommend", body), router.post("/v1/recommend", body)
            assert (found.status, found.json) == (expected.status, expected.json)
