"""A router and its shards in network namespaces with latency and loss: time-outs and retries behave.

Needs root and `ip`: `make netns` runs it.
"""

from __future__ import annotations

import http.client
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from pathdex.recommenders.sharding import write_shards
from tests.namespaces import Link, can_isolate, inside, namespace, remove_dead_namespaces
from tests.random_model import random_model
from tests.server.test_balancers import process

pytestmark = pytest.mark.slow
SHARDS = 2
QUERY: dict[str, Any] = {"history": [100, 107], "n": 12}
SERVE = (sys.executable, "-m", "pathdex", "serve")


def ask(space: str, host: str, path: str, body: Any = None) -> tuple[int, Any, float]:
    """What a client in a namespace gets: status, body and seconds."""

    def call() -> tuple[int, Any, float]:
        connection = http.client.HTTPConnection(host, 8000, timeout=60)
        started = time.monotonic()
        try:
            if body is None:
                connection.request("GET", path)
            else:
                connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read()), time.monotonic() - started
        finally:
            connection.close()

    return inside(space, call)


def wait_until_ready(server: subprocess.Popen[bytes], space: str, host: str) -> None:
    deadline = time.monotonic() + 120
    while True:
        try:
            if ask(space, host, "/health/ready")[0] == 200:
                return
        except OSError:
            assert server.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.1)


@dataclass
class Cluster:
    """Shards in namespaces of their own, each with a link to that of the routers."""

    space: str
    links: list[Link]
    expected: list[Any]
    """The whole model's answer to `QUERY`."""

    @contextmanager
    def router(self, *options: str) -> Iterator[Callable[[], tuple[int, Any, float]]]:
        """A router; sends it `QUERY`."""
        urls = ",".join(f"http://10.77.{number}.2:8000" for number in range(SHARDS))
        command = ["ip", "netns", "exec", self.space, *SERVE, "--shards", urls, *options]
        with process(*command) as server:
            wait_until_ready(server, self.space, "127.0.0.1")
            try:
                yield lambda: ask(self.space, "127.0.0.1", "/v1/recommend", QUERY)
            finally:
                for link in self.links:
                    link.shape()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    if not can_isolate():
        pytest.skip("needs root, ip and /dev/net/tun")
    remove_dead_namespaces()
    folder = tmp_path_factory.mktemp("network")
    model = random_model(60, neighbours=3)
    model.save(folder / "model")
    folders = write_shards(folder / "model", SHARDS, folder / "shards").folders
    with ExitStack() as stack:
        center = stack.enter_context(namespace(f"pathdex-r-{os.getpid()}"))
        spaces = [stack.enter_context(namespace(f"pathdex-s{number}-{os.getpid()}")) for number in range(SHARDS)]
        links, servers = [], []
        for number, (space, shard) in enumerate(zip(spaces, folders, strict=True)):
            links.append(Link(number, center, space))
            stack.callback(links[-1].close)
            command = [*SERVE, str(shard), "--host", f"10.77.{number}.2"]
            servers.append(stack.enter_context(process("ip", "netns", "exec", space, *command)))
        for number, (space, server) in enumerate(zip(spaces, servers, strict=True)):
            wait_until_ready(server, space, f"10.77.{number}.2")
        yield Cluster(center, links, [[one.id, one.score] for one in model.recommend(QUERY["history"], QUERY["n"])])


def pairs(body: Any) -> list[Any]:
    return [[one["id"], one["score"]] for one in body["items"]]


def test_latency_and_loss_change_no_answer(cluster: Cluster) -> None:
    options = ["--shard-timeout", "1", "--shard-retries", "9", "--timeout", "60"]
    with cluster.router(*options) as query:
        for delay, loss in ((20.0, 0.0), (5.0, 0.1), (5.0, 0.25)):
            for link in cluster.links:
                link.shape(delay, loss)
            for _ in range(5):
                status, body, _ = query()
                assert status == 200, (delay, loss, body)
                assert pairs(body) == cluster.expected


def test_a_shard_that_is_cut_off_is_an_error_in_bounded_time_and_comes_back(cluster: Cluster) -> None:
    options = ["--shard-timeout", "0.5", "--shard-retries", "1", "--hedge-after", "0", "--timeout", "60"]
    with cluster.router(*options) as query:
        cluster.links[1].shape(loss=1.0)
        status, body, seconds = query()
        assert status == 503
        # Whether the router had kept a connection decides what is late.
        late = "(no response within 0.5 s|no connection within 0.25 s)"
        assert re.match(rf"shard 2 of 2 does not answer \(http://10.77.1.2:8000: {late}\)", body["error"]["message"])
        # Two attempts of half a second each, not the minute of the request or the minutes of TCP.
        assert seconds < 30
        cluster.links[1].shape(delay=1.0)
        answered = until(query, lambda answer: answer[0] == 200)
        assert pairs(answered) == cluster.expected


def test_a_shard_that_is_cut_off_is_left_out_of_partial_answers(cluster: Cluster) -> None:
    options = ["--shard-timeout", "0.5", "--shard-retries", "0", "--hedge-after", "0", "--timeout", "60", "--partial"]
    with cluster.router(*options) as query:
        cluster.links[0].shape(loss=1.0)
        # On a busy machine the other shard may be late, too.
        body = until(query, lambda answer: answer[0] == 200 and answer[1].get("missing_shards") == [1])
        assert body["items"]
        assert all((one["id"] - 100) % 2 == 1 for one in body["items"])
        cluster.links[0].shape()
        assert (
            pairs(until(query, lambda answer: answer[0] == 200 and not answer[1].get("missing_shards")))
            == cluster.expected
        )


def until(query: Callable[[], tuple[int, Any, float]], is_reached: Callable[[tuple[int, Any, float]], bool]) -> Any:
    """The body of the first answer of that kind."""
    deadline = time.monotonic() + 60
    while not is_reached(answer := query()):
        assert time.monotonic() < deadline, answer
    return answer[1]
