"""The server on a Ray cluster. The tests with a cluster are slow: `make test-all` runs them where Ray is installed."""

from __future__ import annotations

import http.client
import importlib.util
import json
import pickle
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pathdex.errors import BundleError, ConfigError, MissingExtraError
from pathdex.recommenders.sharding import write_shards
from pathdex.server.limits import ServerLimits
from pathdex.server.options import ServerOptions
from pathdex.server.ray_serve import ReplicaApp, build, cluster_options, ray_application
from tests.random_model import random_model
from tests.server.conftest import HTTPAnswer, Running, running

HAS_RAY = importlib.util.find_spec("ray") is not None
needs_ray = pytest.mark.skipif(not HAS_RAY, reason="needs the extra ray")


def test_options_of_one_machine_are_refused() -> None:
    options = ServerOptions(model=Path("x"), workers=2, user_store="users.sqlite", events="events.jsonl")
    with pytest.raises(ConfigError) as found:
        cluster_options(options, 0)
    text = str(found.value)
    for name in ("replicas=0", "workers=2", "user_store='users.sqlite'", "events='events.jsonl'"):
        assert name in text


def test_replicas_find_the_model_from_any_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    options = cluster_options(ServerOptions(model=Path("model"), catalogue=Path("items.csv")), 1)
    assert (options.model, options.catalogue) == (tmp_path / "model", tmp_path / "items.csv")
    assert options.hosts is None


def test_without_ray_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch, popular: Path) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'pathdex\[ray\]'"):
        ray_application(ServerOptions(model=popular))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"model": "x", "replica": 2}, "replica=2: is not an option of a server on Ray; did you mean 'replicas'?"),
        ({"model": "x", "port": 1}, "port=1: is not an option"),
        ({"model": "x", "watch": "often"}, "do not fit"),
        ({"model": "x", "replicas": "few"}, "do not fit"),
    ],
)
def test_arguments_are_checked(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as found:
        build(arguments)
    assert message in str(found.value)


def test_only_the_options_travel_to_a_replica(popular: Path) -> None:
    options = ServerOptions(model=popular)
    assert pickle.loads(pickle.dumps(ReplicaApp(options))).options == options


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


class Cluster:
    """A local Ray, and what a client of its proxy gets."""

    def __init__(self) -> None:
        import ray
        from ray import serve

        self.port = free_port()
        ray.init(address="local", num_cpus=4, include_dashboard=False, log_to_driver=False)
        serve.start(http_options={"host": "127.0.0.1", "port": self.port})

    def run(self, application: Any) -> None:
        from ray import serve

        serve.run(application, name="pathdex", route_prefix="/")

    def request(self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None) -> HTTPAnswer:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            kind = {} if body is None else {"Content-Type": "application/json"}
            sent = None if body is None else json.dumps(body)
            connection.request(method, path, sent, {**kind, **(headers or {})})
            answer = connection.getresponse()
            return HTTPAnswer(answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read())
        finally:
            connection.close()


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    import ray
    from ray import serve

    try:
        yield Cluster()
    finally:
        serve.shutdown()
        ray.shutdown()


REQUESTS: list[tuple[str, str, Any]] = [
    ("POST", "/v1/recommend", {"history": [100, 107], "n": 12}),
    ("POST", "/v1/recommend", {"queries": [{"history": [101], "allow": [100, 105]}, {"history": [102, 103], "n": 3}]}),
    ("POST", "/v1/recommend", {"history": [9999]}),
    ("POST", "/v1/recommend", {"history": [100], "n": 0}),
    ("POST", "/v1/recommend", {"histories": [100]}),
    ("POST", "/v1/similar", {"item": 100, "n": 5}),
    ("POST", "/v1/explain", {"history": [100, 107], "item": 110}),
    ("POST", "/v1/why-not", {"history": [100, 107], "item": 110}),
    ("POST", "/v1/events", {"user": "ada", "items": [100]}),
    ("GET", "/v1/items/100", None),
    ("GET", "/v1/items/1%2F2", None),
    ("GET", "/v1/nothing", None),
    ("GET", "/v1/recommend", None),
    ("GET", "/health/live", None),
    ("GET", "/health/ready", None),
]


def assert_same(cluster: Cluster, server: Running) -> None:
    """Routes, statuses, answers, errors and the version of the model are those of `pathdex serve`."""
    for method, path, body in REQUESTS:
        here, there = cluster.request(method, path, body), server.request(method, path, body)
        assert (here.status, here.json) == (there.status, there.json), (method, path, body)
        for name in ("x-pathdex-model", "content-type", "allow"):
            assert here.headers.get(name) == there.headers.get(name), (method, path, name)
    documents = [one.request("GET", "/openapi.json").json for one in (cluster, server)]
    assert documents[0]["paths"].keys() == documents[1]["paths"].keys()


@pytest.mark.slow
@needs_ray
@pytest.mark.filterwarnings("ignore")
def test_a_cluster_answers_as_pathdex_serve_does(cluster: Cluster, tmp_path: Path) -> None:
    model = random_model(60, neighbours=3).save(tmp_path / "model")
    with running(model) as server:
        cluster.run(build({"model": str(model), "replicas": "2", "watch": "0"}))
        assert_same(cluster, server)
        assert b"pathdex_workers_ready 1" in cluster.request("GET", "/metrics").body


@pytest.mark.slow
@needs_ray
@pytest.mark.filterwarnings("ignore")
def test_a_cluster_can_hold_the_router(cluster: Cluster, tmp_path: Path) -> None:
    model = random_model(60, neighbours=3).save(tmp_path / "model")
    first, second = write_shards(model, 2, tmp_path / "shards").folders
    token = {"Authorization": "Bearer secret"}
    with running(first, token="secret") as one, running(second, token="secret") as two:
        options = ServerOptions(shards=(one.url, two.url), token="secret", watch=0.0)
        with running(Path(), shards=options.shards, token="secret") as router:
            cluster.run(ray_application(options))
            assert cluster.request("POST", "/v1/recommend", {"history": [100]}).status == 401
            for method, path, body in REQUESTS:
                here = cluster.request(method, path, body, token)
                there = router.request(method, path, body, token)
                assert (here.status, here.json) == (there.status, there.json), (method, path, body)


@pytest.mark.slow
@needs_ray
@pytest.mark.filterwarnings("ignore")
def test_requests_beyond_the_queue_get_status_429(cluster: Cluster, tmp_path: Path) -> None:
    from concurrent.futures import ThreadPoolExecutor

    model = random_model(60, neighbours=3).save(tmp_path / "model")
    cluster.run(ray_application(ServerOptions(model=model, watch=0.0, limits=ServerLimits(queue=1, threads=1))))
    body = {"queries": [{"history": [100, 107], "explain": True} for _ in range(10)]}
    with ThreadPoolExecutor(16) as pool:
        statuses = {one.status for one in pool.map(lambda _: cluster.request("POST", "/v1/recommend", body), range(64))}
    assert 200 in statuses
    assert 429 in statuses
    assert statuses <= {200, 429, 503}


def test_a_model_that_cannot_be_served_is_an_error_before_anything_is_deployed(tmp_path: Path) -> None:
    with pytest.raises(BundleError):
        ray_application(ServerOptions(model=tmp_path / "missing"))
