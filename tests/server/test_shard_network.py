"""A router and its shards in network namespaces with latency and loss: time-outs and retries behave.

Needs root and `ip`: `make netns` runs it.
"""

from __future__ import annotations

import http.client
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pytest

from pathdex.recommenders.sharding import write_shards
from tests.random_model import random_model
from tests.server.test_balancers import process
from tests.server.tun_link import enter

pytestmark = pytest.mark.slow
SHARDS = 2
QUERY: dict[str, Any] = {"history": [100, 107], "n": 12}
SERVE = (sys.executable, "-m", "pathdex", "serve")
T = TypeVar("T")


def run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, f"{command}: {done.stderr}"
    return done.stdout


def can_isolate() -> bool:
    if os.geteuid() != 0 or not shutil.which("ip") or not Path("/dev/net/tun").exists():
        return False
    name = f"pathdex-try-{os.getpid()}"
    made = subprocess.run(["ip", "netns", "add", name], capture_output=True, check=False).returncode == 0
    if made:
        subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)
    return made


def dead_namespaces() -> list[str]:
    """Those of runs of this file that were killed."""
    names = [line.split()[0] for line in run("ip", "netns", "list").splitlines() if line.startswith("pathdex-")]
    return [name for name in names if not Path(f"/proc/{name.rsplit('-', 1)[1]}").exists()]


@contextmanager
def namespace(name: str) -> Iterator[str]:
    """A network namespace; what runs in it must end first."""
    run("ip", "netns", "add", name)
    try:
        run("ip", "-n", name, "link", "set", "lo", "up")
        yield name
    finally:
        subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)


def inside(space: str, work: Callable[[], T]) -> T:
    """What a function returns in a namespace: a thread of this process enters it."""

    def call() -> T:
        enter(space)
        return work()

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(call).result()


class Link:
    """A link between two namespaces, whose ends have the addresses 10.77.NUMBER.1 and 10.77.NUMBER.2."""

    def __init__(self, number: int, here: str, there: str) -> None:
        ends = ((here, f"r{number}", 1, 2), (there, "s0", 2, 1))
        script = str(Path(__file__).with_name("tun_link.py"))
        command = [sys.executable, script, *(word for space, device, *_ in ends for word in (space, device))]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        try:
            self._await_ok()
            for space, device, own, other in ends:
                addresses = f"10.77.{number}.{own}", "peer", f"10.77.{number}.{other}"
                run("ip", "-n", space, "addr", "add", *addresses, "dev", device)
                run("ip", "-n", space, "link", "set", device, "up")
        except BaseException:
            self.close()
            raise

    def shape(self, delay: float = 0.0, loss: float = 0.0) -> None:
        """The latency in milliseconds and the loss of packets, in both directions."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{delay} {loss}\n")
        self._process.stdin.flush()
        self._await_ok()

    def _await_ok(self) -> None:
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == "ok\n"

    def close(self) -> None:
        with self._process as process:
            assert process.stdin is not None
            process.stdin.close()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()


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
    for name in dead_namespaces():
        run("ip", "netns", "del", name)
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
