"""SIGTERM: no connection is reset, and every request that has begun is answered."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from pathdex.server import worker as worker_module
from tests.server.conftest import SLOW, Gate, Running, running
from tests.torture.stops import CLIENTS, HEAD, WHOLE, stop_often


def connect(server: Running) -> socket.socket:
    parts = urlsplit(server.url)
    return socket.create_connection((parts.hostname, parts.port), timeout=60)


def everything(connection: socket.socket) -> bytes:
    found = b""
    while part := connection.recv(65536):
        found += part
    return found


def slow_request() -> bytes:
    body = json.dumps(SLOW).encode()
    return HEAD % len(body) + body


def test_requests_that_have_begun_are_answered(popular: Path, gate: Gate) -> None:
    waiting, go = gate
    with ThreadPoolExecutor(1) as pool, running(popular) as server:
        begun, head, body, pipelined = (connect(server) for _ in range(4))
        begun.sendall(slow_request())
        assert waiting.wait(10)
        pipelined.sendall(slow_request() + WHOLE)
        head.sendall(WHOLE[:40])
        body.sendall(WHOLE[:-5])
        time.sleep(0.1)
        server.worker.drain(now=True)
        time.sleep(2 * worker_module.QUIET_SECONDS)
        with pytest.raises(ConnectionRefusedError):
            connect(server)
        head.sendall(WHOLE[40:])
        body.sendall(WHOLE[-5:])
        for connection in (head, body):
            answer = everything(connection)
            assert answer.startswith(b"HTTP/1.1 200 ")
            assert b"\r\nconnection: close\r\n" in answer
        answers = [pool.submit(everything, connection) for connection in (begun, pipelined)]
        go.set()
        assert answers[0].result().startswith(b"HTTP/1.1 200 ")
        assert answers[1].result().count(b"HTTP/1.1 200 ") == 2
        for connection in (begun, head, body, pipelined):
            connection.close()


def test_an_idle_connection_may_send_a_last_request_and_is_closed_without_a_reset(popular: Path) -> None:
    with running(popular) as server, connect(server) as busy, connect(server) as idle, connect(server) as fresh:
        for connection in (busy, idle):
            connection.sendall(WHOLE)
            assert connection.recv(65536).startswith(b"HTTP/1.1 200 ")
        server.worker.drain(now=True)
        while not server.worker._protocol.stopping:
            time.sleep(0.01)
        busy.sendall(WHOLE)
        answer = everything(busy)
        assert answer.startswith(b"HTTP/1.1 200 ")
        assert b"\r\nconnection: close\r\n" in answer
        for connection in (idle, fresh):
            assert connection.recv(1) == b""
            connection.sendall(WHOLE)  # Too late, but no reset.
            connection.shutdown(socket.SHUT_WR)
            assert connection.recv(1) == b""


def test_a_request_that_outlasts_the_limit_is_503(popular: Path, gate: Gate) -> None:
    waiting, go = gate
    with running(popular, {"grace": 0.3}) as server, connect(server) as connection:
        connection.sendall(slow_request())
        assert waiting.wait(10)
        server.worker.drain(now=True)
        answer = everything(connection)
        go.set()
    assert answer.startswith(b"HTTP/1.1 503 ")
    assert b"the server stopped before the response was ready, after 0.3 s; try again" in answer


@pytest.mark.parametrize("workers", [1, 2])
def test_a_signal_under_load_resets_nothing(numbered: Path, workers: int) -> None:
    report = stop_often(numbered, 3, workers)
    assert report["failures"] == []
    assert report["outcomes"].keys() == {"200", "refused"}
    assert report["outcomes"]["refused"] == 3 * CLIENTS


@pytest.mark.parametrize("workers", [1, 2])
def test_a_signal_during_the_start_ends_it_cleanly(numbered: Path, workers: int) -> None:
    """At several moments; a client that was connected gets a response and no reset."""
    for seconds in (0.0, 0.1, 0.3, 0.6, 1.0):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        arguments = ["serve", str(numbered), "--port", str(port), "--workers", str(workers)]
        process = subprocess.Popen(
            [sys.executable, "-m", "pathdex", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        connection = None
        while connection is None:
            assert process.poll() is None, process.communicate()
            try:
                connection = socket.create_connection(("127.0.0.1", port), timeout=60)
            except ConnectionRefusedError:
                time.sleep(0.005)
        with connection:
            connection.sendall(WHOLE)
            threading.Timer(seconds, process.terminate).start()
            answer = everything(connection)
        _, errors = process.communicate(timeout=60)
        assert re.match(rb"HTTP/1.1 (200|503) ", answer), answer
        assert (process.returncode, errors) == (0, "")


def test_a_killed_supervisor_leaves_nothing_behind(numbered: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pathdex", "serve", str(numbered), "--port", "0", "--workers", "2"]
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        address = re.search(r"127\.0\.0\.1:(\d+)", process.stdout.readline())
        assert address is not None
        process.kill()
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            socket.create_connection(("127.0.0.1", int(address[1])), timeout=60).close()
        except ConnectionRefusedError:
            break
        time.sleep(0.05)
    else:
        pytest.fail("the workers still accept connections")
    assert list(tmp_path.iterdir()) == []
