"""Replicas behind nginx and HAProxy, with the files in `deploy/`: no request fails, whatever happens to a replica."""

from __future__ import annotations

import http.client
import json
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.server.test_model_manager import favourite

pytestmark = pytest.mark.slow
DEPLOY = Path(__file__).parents[2] / "deploy"
CONFIGS = {
    "nginx": ("nginx.conf", ["-g", "daemon off; pid {folder}/nginx.pid; error_log stderr;", "-c", "{config}"]),
    "haproxy": ("haproxy.cfg", ["-f", "{config}"]),
}


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as one:
        port: int = one.getsockname()[1]
        return port


def wait_for(rule: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 120
    while not rule():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def ask(port: int, method: str = "POST", path: str = "/v1/recommend", body: Any = None) -> tuple[int, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        sent = json.dumps(body or {"history": [], "n": 1}) if method == "POST" else None
        connection.request(method, path, sent, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    finally:
        connection.close()


def is_ready(port: int) -> bool:
    try:
        return ask(port, "GET", "/health/ready")[0] == 200
    except (OSError, ValueError, http.client.HTTPException):
        return False


def queries(port: int) -> int:
    """How many queries a replica has answered."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request("GET", "/metrics")
        lines = connection.getresponse().read().decode().splitlines()
    finally:
        connection.close()
    return int(next(line for line in lines if line.startswith("pathdex_queries_total ")).split()[1])


@contextmanager
def process(*command: str) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as running:
        try:
            yield running
        finally:
            running.terminate()
            try:
                running.wait(30)
            except subprocess.TimeoutExpired:
                running.kill()


def replica(model: Path, port: int) -> list[str]:
    return [sys.executable, "-m", "pathdex", "serve", str(model), "--port", str(port), "--watch", "0.1"]


@pytest.mark.parametrize("balancer", CONFIGS)
def test_no_request_fails(balancer: str, tmp_path: Path) -> None:
    command = shutil.which(balancer) or shutil.which(balancer, path="/usr/sbin")
    if command is None:
        pytest.skip(f"{balancer} is not installed")
    name, arguments = CONFIGS[balancer]
    front, *ports = free_port(), free_port(), free_port()
    text = (DEPLOY / name).read_text().replace("8001", str(ports[0])).replace("8002", str(ports[1]))
    text = text.replace("listen 8000", f"listen 127.0.0.1:{front}").replace("bind :8000", f"bind 127.0.0.1:{front}")
    config = tmp_path / name
    config.write_text(text)
    for version in (0, 1):
        favourite(version).save(tmp_path / f"model-{version}")
    model = tmp_path / "current"
    model.symlink_to("model-0")
    with ExitStack() as stack:
        servers = [stack.enter_context(process(*replica(model, port))) for port in ports]
        for port in ports:
            wait_for(lambda port=port: is_ready(port))  # type: ignore[misc]
        filled = [one.format(folder=tmp_path, config=config) for one in arguments]
        stack.enter_context(process(command, *filled))
        wait_for(lambda: is_ready(front))
        with Load(front) as load:
            load.wait_for_more(50)
            # A new model replaces the old one while requests arrive.
            (tmp_path / "next").symlink_to("model-1")
            (tmp_path / "next").rename(model)
            wait_for(lambda: all(ask(port)[1]["items"][0]["id"] == load.ids[1] for port in ports))
            load.wait_for_more(50)
            # A replica is killed, and comes back.
            servers[0].kill()
            servers[0].wait()
            load.wait_for_more(200)
            stack.enter_context(process(*replica(model, ports[0])))
            wait_for(lambda: is_ready(ports[0]))
            # nginx sends it requests again only after `fail_timeout`.
            wait_for(lambda: queries(ports[0]) > 20)
            # The other one is stopped as for an update.
            servers[1].send_signal(signal.SIGTERM)
            servers[1].wait(60)
            load.wait_for_more(200)
        assert load.failures == []
        answers = [answer["items"][0]["id"] for answer in load.answers]
        assert set(answers) == set(load.ids[:2])
        assert answers[-1] == load.ids[1]


class Load:
    """Sends queries from several threads and keeps every answer."""

    ids = ("a", "b")

    def __init__(self, port: int) -> None:
        from tests.recommender_contract import TEXT_IDS

        self.ids = (TEXT_IDS[0], TEXT_IDS[1])
        self.port, self.answers, self.failures = port, list[Any](), list[Any]()
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._run) for _ in range(3)]

    def __enter__(self) -> Load:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(60)

    def wait_for_more(self, count: int) -> None:
        wanted = len(self.answers) + len(self.failures) + count
        wait_for(lambda: len(self.answers) + len(self.failures) >= wanted)

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                status, answer = ask(self.port)
            except (OSError, ValueError, http.client.HTTPException) as error:
                self.failures.append(repr(error))
                continue
            if status == 200:
                self.answers.append(answer)
            else:
                self.failures.append((status, answer))
