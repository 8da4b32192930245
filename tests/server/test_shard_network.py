"""A router and its shards in network namespaces with latency and loss: time-outs and retries behave.

Needs root and `ip`: `make netns` runs it.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

import pathdex
from pathdex.recommenders.sharding import write_shards
from tests.random_model import random_model
from tests.server.test_balancers import process

pytestmark = pytest.mark.slow
SHARDS = 2


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


class Net:
    """A namespace for the router and one for each shard, with a link between the router and each shard."""

    def __init__(self) -> None:
        self.router = f"pathdex-r-{os.getpid()}"
        self.shards = [f"pathdex-s{number}-{os.getpid()}" for number in range(SHARDS)]
        self._links: list[subprocess.Popen[str]] = []

    def __enter__(self) -> Net:
        for name in (self.router, *self.shards):
            run("ip", "netns", "add", name)
            run("ip", "-n", name, "link", "set", "lo", "up")
        for number, name in enumerate(self.shards):
            here, there = f"r{number}", "s0"
            command = [sys.executable, str(Path(__file__).with_name("tun_link.py")), self.router, here, name, there]
            link = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            self._links.append(link)
            assert link.stdout is not None
            assert link.stdout.readline() == "ok\n"
            for space, device, own, other in ((self.router, here, 1, 2), (name, there, 2, 1)):
                ends = f"10.77.{number}.{own}", "peer", f"10.77.{number}.{other}"
                run("ip", "-n", space, "addr", "add", *ends, "dev", device)
                run("ip", "-n", space, "link", "set", device, "up")
        return self

    def __exit__(self, *_: object) -> None:
        for link in self._links:
            link.communicate(timeout=30)
        for name in (self.router, *self.shards):
            subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)

    def shape(self, number: int, delay: float = 0.0, loss: float = 0.0) -> None:
        """The latency in milliseconds and the loss of packets, in both directions of the link to a shard."""
        link = self._links[number]
        assert link.stdin is not None
        assert link.stdout is not None
        link.stdin.write(f"{delay} {loss}\n")
        link.stdin.flush()
        assert link.stdout.readline() == "ok\n"

    def ask(self, path: str, body: Any = None) -> tuple[int, Any, float]:
        """What a client in the router's namespace gets: status, body and seconds."""
        script = (
            "import sys, urllib.request, urllib.error, time\n"
            "body = sys.argv[2].encode() or None\n"
            "request = urllib.request.Request(sys.argv[1], body, {'Content-Type': 'application/json'})\n"
            "start = time.monotonic()\n"
            "try:\n    answer = urllib.request.urlopen(request, timeout=60)\n"
            "except urllib.error.HTTPError as error:\n    answer = error\n"
            "text = answer.read().decode()\n"
            "print(answer.status, time.monotonic() - start)\nprint(text)\n"
        )
        sent = "" if body is None else json.dumps(body)
        url = f"http://127.0.0.1:8000{path}"
        found = run("ip", "netns", "exec", self.router, sys.executable, "-c", script, url, sent)
        head, text = found.split("\n", 1)
        status, seconds = head.split()
        return int(status), json.loads(text), float(seconds)

    def wait_until_ready(self, space: str, host: str) -> None:
        deadline = time.monotonic() + 120
        script = f"import urllib.request; urllib.request.urlopen('http://{host}:8000/health/ready', timeout=5)"
        while subprocess.run(
            ["ip", "netns", "exec", space, sys.executable, "-c", script], capture_output=True, check=False
        ).returncode:
            assert time.monotonic() < deadline
            time.sleep(0.1)


@contextmanager
def cluster(tmp_path: Path, *options: str) -> Iterator[Net]:
    random_model(60, neighbours=3).save(tmp_path / "model")
    folders = write_shards(tmp_path / "model", SHARDS, tmp_path / "shards").folders
    with ExitStack() as stack:
        net = stack.enter_context(Net())
        serve = [sys.executable, "-m", "pathdex", "serve"]
        for number, (space, folder) in enumerate(zip(net.shards, folders, strict=True)):
            stack.enter_context(
                process("ip", "netns", "exec", space, *serve, str(folder), "--host", f"10.77.{number}.2")
            )
            net.wait_until_ready(space, f"10.77.{number}.2")
        urls = ",".join(f"http://10.77.{number}.2:8000" for number in range(SHARDS))
        stack.enter_context(process("ip", "netns", "exec", net.router, *serve, "--shards", urls, *options))
        net.wait_until_ready(net.router, "127.0.0.1")
        yield net


QUERY = {"history": [100, 107], "n": 12}


def answer_of(tmp_path: Path) -> list[Any]:
    return [[one.id, one.score] for one in pathdex.load(tmp_path / "model").recommend([100, 107], 12)]


def pairs(body: Any) -> list[Any]:
    return [[one["id"], one["score"]] for one in body["items"]]


@pytest.mark.skipif(not can_isolate(), reason="needs root, ip and /dev/net/tun")
def test_latency_and_loss_change_no_answer(tmp_path: Path) -> None:
    with cluster(tmp_path, "--shard-timeout", "1", "--shard-retries", "5", "--timeout", "60") as net:
        for rule in ((20.0, 0.0), (5.0, 0.1), (5.0, 0.25)):
            for number in range(SHARDS):
                net.shape(number, *rule)
            for _ in range(5):
                status, body, _ = net.ask("/v1/recommend", QUERY)
                assert status == 200, (rule, body)
                assert pairs(body) == answer_of(tmp_path)


@pytest.mark.skipif(not can_isolate(), reason="needs root, ip and /dev/net/tun")
def test_a_shard_that_is_cut_off_is_an_error_in_bounded_time_and_comes_back(tmp_path: Path) -> None:
    options = ["--shard-timeout", "0.5", "--shard-retries", "1", "--hedge-after", "0", "--watch", "0.5"]
    with cluster(tmp_path, *options) as net:
        net.shape(1, loss=1.0)
        status, body, seconds = net.ask("/v1/recommend", QUERY)
        assert status == 503
        assert (
            "shard 2 of 2 does not answer (http://10.77.1.2:8000: no response within 0.5 s)" in body["error"]["message"]
        )
        # Two attempts of half a second each, not the ten seconds of the request or the minutes of TCP.
        assert seconds < 10
        net.shape(1, delay=1.0)
        deadline = time.monotonic() + 60
        while net.ask("/v1/recommend", QUERY)[0] != 200:
            assert time.monotonic() < deadline
        status, body, _ = net.ask("/v1/recommend", QUERY)
        assert pairs(body) == answer_of(tmp_path)


@pytest.mark.skipif(not can_isolate(), reason="needs root, ip and /dev/net/tun")
def test_a_shard_that_is_cut_off_is_left_out_of_partial_answers(tmp_path: Path) -> None:
    options = ["--shard-timeout", "0.5", "--shard-retries", "0", "--hedge-after", "0", "--partial"]
    with cluster(tmp_path, *options) as net:
        net.shape(0, loss=1.0)
        status, body, _ = net.ask("/v1/recommend", QUERY)
        assert (status, body["missing_shards"]) == (200, [1])
        assert all((one["id"] - 100) % 2 == 1 for one in body["items"])
