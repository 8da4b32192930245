"""Metrics of one worker and of several."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from pathdex.server.metrics import BUCKETS, DURATION, HELP, PARTIAL, ROUTER_HELP, ServerMetrics, new_metrics_file
from tests.server.conftest import Running, running


def values(metrics: ServerMetrics) -> dict[str, float]:
    lines = metrics.render().decode().splitlines()
    return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines if not line.startswith("#")}


NAME = r"[a-z][a-z0-9_]*[a-z0-9]"
SAMPLE = re.compile(rf'^({NAME})(\{{{NAME}="[^"\n]*"(?:,{NAME}="[^"\n]*")*\}})? (-?[0-9.]+(?:e[+-]?[0-9]+)?)$')
PARTS = re.compile(r"_(bucket|sum|count)$")


def test_the_text_follows_the_exposition_format() -> None:
    """HELP and TYPE once per metric and before its samples; no sample twice; histograms are cumulative."""
    metrics = ServerMetrics()
    for route, spent in (("/v1/recommend", 700_000), ("/v1/recommend", 90_000_000_000), ("other", 5)):
        metrics.observe(route, 200, spent)
    metrics.set_model("0123456789ab", 32, 1_700_000_000.5)
    text = metrics.render().decode()
    assert text.endswith("\n")
    kinds: dict[str, str] = {}
    helped: list[str] = []
    samples: dict[str, float] = {}
    for line in text.splitlines():
        if line.startswith("# HELP "):
            _, _, name, words = line.split(" ", 3)
            assert name not in helped
            assert words.endswith(".")
            helped.append(name)
        elif line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert helped[-1] == name
            kinds[name] = kind
        else:
            found = SAMPLE.match(line)
            assert found, line
            family = found[1] if found[1] in kinds else PARTS.sub("", found[1])
            assert family == helped[-1], line
            assert line.rpartition(" ")[0] not in samples
            samples[line.rpartition(" ")[0]] = float(found[3])
    assert list(kinds) == helped
    assert set(HELP) == set(kinds)
    for route in ("/v1/recommend", "other"):
        buckets = [value for name, value in samples.items() if f'_bucket{{route="{route}"' in name]
        assert buckets == sorted(buckets)
        assert len(buckets) == len(BUCKETS) + 1
        assert buckets[-1] == samples[f'{DURATION}_count{{route="{route}"}}']
    assert samples['pathdex_model_info{version="0123456789ab"}'] == 1


def test_names_follow_the_conventions() -> None:
    kinds = dict(re.findall(r"# TYPE (\w+) (\w+)", ServerMetrics().render().decode()))
    for name, kind in kinds.items():
        assert name.startswith("pathdex_")
        assert name.endswith("_total") == (kind == "counter")
        assert kind != "histogram" or name.endswith("_seconds")
        assert not re.search(r"_(ms|milliseconds|minutes|kb|mb|percent)\b", name)


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


def test_bucket_bounds_are_inclusive() -> None:
    metrics = ServerMetrics()
    metrics.observe("other", 404, round(BUCKETS[0] * 1e9))
    assert values(metrics)['pathdex_http_request_duration_seconds_bucket{route="other",le="0.00025"}'] == 1


@pytest.fixture
def shared() -> Iterator[int]:
    handle = new_metrics_file(2)
    yield handle
    os.close(handle)


def test_workers_are_summed(shared: int) -> None:
    one, two = ServerMetrics(shared, 0, 2), ServerMetrics(shared, 1, 2)
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


def test_counters_survive_a_worker_restart(shared: int) -> None:
    first = ServerMetrics(shared, 0, 2)
    first.add("pathdex_queries_total", 3)
    first.add("pathdex_http_requests_in_flight", 2)
    first.set_model("aaaaaaaaaaaa", 10, 100)
    second = ServerMetrics(shared, 0, 2)
    found = values(second)
    assert (found["pathdex_queries_total"], found["pathdex_http_requests_in_flight"]) == (3, 0)
    assert not any(name.startswith("pathdex_model_workers") for name in found)


@pytest.fixture(scope="module")
def server(popular: Path) -> Iterator[Running]:
    with running(popular) as server:
        yield server


def test_metrics_of_a_server(server: Running) -> None:
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


def test_a_router_has_metrics_of_each_shard() -> None:
    handle = new_metrics_file(2, 2)
    one, two = ServerMetrics(handle, 0, 2, 2), ServerMetrics(handle, 1, 2, 2)
    one.add_shard("hedges", 1)
    two.add_shard("hedges", 1)
    two.observe_shard(0, 400_000)
    one.add_router(PARTIAL)
    found = values(two)
    assert found['pathdex_shard_hedges_total{shard="1"}'] == 0
    assert found['pathdex_shard_hedges_total{shard="2"}'] == 2
    assert found['pathdex_shard_duration_seconds_bucket{shard="1",le="0.00025"}'] == 0
    assert found['pathdex_shard_duration_seconds_bucket{shard="1",le="0.0005"}'] == 1
    assert found[PARTIAL] == 1
    text = one.render().decode()
    page = (Path(__file__).parents[2] / "docs" / "shards.md").read_text()
    assert all(f"# HELP {name} " in text and f"`{name}`" in page for name in ROUTER_HELP)
    os.close(handle)
