"""Figures of one worker and of several."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from pathdex.server.metrics import BUCKETS, COUNTERS, GAUGES, ServerMetrics
from tests.server.conftest import Running, running

SAMPLE = re.compile(r'^[a-z_]+(\{[a-z]+="[^"]*"(,[a-z]+="[^"]*")*\})? -?[0-9.]+$')


def values(metrics: ServerMetrics) -> dict[str, float]:
    lines = metrics.render().decode().splitlines()
    return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines if not line.startswith("#")}


def test_the_text_is_that_of_prometheus() -> None:
    metrics = ServerMetrics()
    metrics.observe("/v1/recommend", 200, 700_000)
    metrics.set_model("0123456789ab", 32, 1_700_000_000.5)
    text = metrics.render().decode()
    assert text.endswith("\n")
    described = set()
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            described.add(line.split()[2])
        elif not line.startswith("# HELP "):
            assert SAMPLE.match(line), line
            family = re.sub(r"_(bucket|sum|count)$", "", re.split(r"[{ ]", line)[0])
            assert family in described
    assert {*COUNTERS, *GAUGES} <= described


def test_requests_are_counted_by_route_and_status() -> None:
    metrics = ServerMetrics()
    for status, spent in ((200, 300_000), (200, 20_000_000), (422, 100_000)):
        metrics.observe("/v1/recommend", status, spent)
    found = values(metrics)
    assert found['pathdex_http_requests_total{route="/v1/recommend",status="200"}'] == 2
    assert found['pathdex_http_requests_total{route="/v1/recommend",status="422"}'] == 1
    bucket = 'pathdex_http_request_duration_seconds_bucket{route="/v1/recommend",le="%s"}'
    assert [found[bucket % bound] for bound in (0.00025, 0.0005, 0.01, 0.025, "+Inf")] == [1, 2, 2, 3, 3]
    assert found['pathdex_http_request_duration_seconds_sum{route="/v1/recommend"}'] == pytest.approx(0.0204)
    assert found['pathdex_http_request_duration_seconds_count{route="/v1/recommend"}'] == 3


def test_a_time_on_a_bound_belongs_below_it() -> None:
    metrics = ServerMetrics()
    metrics.observe("other", 404, round(BUCKETS[0] * 1e9))
    assert values(metrics)['pathdex_http_request_duration_seconds_bucket{route="other",le="0.00025"}'] == 1


def test_workers_are_summed(tmp_path: Path) -> None:
    one, two = ServerMetrics(tmp_path, 0), ServerMetrics(tmp_path, 1)
    one.add("pathdex_queries_total", 3)
    two.add("pathdex_queries_total", 4)
    one.set("pathdex_workers_ready", 1)
    two.set("pathdex_workers_ready", 1)
    one.set_model("aaaaaaaaaaaa", 10, 100)
    two.set_model("0000000000bb", 20, 200)
    for metrics in (one, two):
        found = values(metrics)
        assert (found["pathdex_queries_total"], found["pathdex_workers_ready"]) == (7, 2)
        assert found['pathdex_model_workers{version="aaaaaaaaaaaa"}'] == 1
        assert found['pathdex_model_workers{version="0000000000bb"}'] == 1
        assert (found["pathdex_model_items"], found["pathdex_model_loaded_timestamp_seconds"]) == (20, 200)


def test_a_worker_that_replaces_another_goes_on_with_its_counters(tmp_path: Path) -> None:
    first = ServerMetrics(tmp_path, 0)
    first.add("pathdex_queries_total", 3)
    first.add("pathdex_http_requests_in_flight", 2)
    first.set_model("aaaaaaaaaaaa", 10, 100)
    second = ServerMetrics(tmp_path, 0)
    found = values(second)
    assert (found["pathdex_queries_total"], found["pathdex_http_requests_in_flight"]) == (3, 0)
    assert not any(name.startswith("pathdex_model_workers") for name in found)


@pytest.fixture(scope="module")
def server(popular: Path) -> Iterator[Running]:
    with running(popular) as server:
        yield server


def test_the_server_counts(server: Running) -> None:
    server.post("/v1/recommend", {"queries": [{"history": ["x", "item 1"]}, {"history": []}]})
    server.post("/v1/recommend", {"history": [], "n": 0})
    server.get("/nowhere")
    answer = server.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    found = answer.body.decode()
    for line in (
        "pathdex_queries_total 2",
        "pathdex_unknown_history_items_total 1",
        "pathdex_workers_ready 1",
        "pathdex_http_requests_in_flight 1",
        "pathdex_model_items 32",
        'pathdex_http_requests_total{route="/v1/recommend",status="200"} 1',
        'pathdex_http_requests_total{route="/v1/recommend",status="422"} 1',
        'pathdex_http_requests_total{route="other",status="404"} 1',
    ):
        assert line in found.splitlines()
    assert server.metric("pathdex_workers_resident_memory_bytes") > 1_000_000
