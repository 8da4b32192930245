"""Worker processes: start, drain, stop."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import pathdex
from pathdex.errors import BundleError, ServerError
from pathdex.server.metrics import new_metrics_file
from pathdex.server.options import ServerOptions
from pathdex.server.serving import address_of, listen
from pathdex.server.worker import Worker
from tests.server.conftest import SLOW, Gate, running


@pytest.fixture
def bundle(tmp_path: Path, popular: Path) -> Path:
    return Path(shutil.copytree(popular, tmp_path / "bundle"))


def test_draining_finishes_requests_in_flight(popular: Path, gate: Gate) -> None:
    waiting, go = gate
    with ThreadPoolExecutor(1) as pool:
        with running(popular, {"drain": 0.5}) as server:
            first = pool.submit(server.post, "/v1/recommend", SLOW)
            assert waiting.wait(10)
            server.worker.drain()
            draining = server.get("/health/ready")
            assert (draining.status, draining.json["status"]) == (503, "draining")
            assert server.get("/health/live").status == 200
            go.set()
        assert first.result().status == 200


def test_a_model_that_fails_stops_the_worker(bundle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("pathdex.server.model_loader.probe_model", fail)
    with (
        listen("127.0.0.1", 0) as listening,
        pytest.raises(ServerError, match=r"cannot be loaded \(ZeroDivisionError\); see the log"),
    ):
        Worker(ServerOptions(model=bundle)).serve_on(listening)


def test_a_damaged_model_stops_the_worker(bundle: Path) -> None:
    content = bytearray((bundle / "counts.npy").read_bytes())
    content[-1] ^= 1
    (bundle / "counts.npy").write_bytes(content)
    with listen("127.0.0.1", 0) as listening, pytest.raises(BundleError, match=r"the checksum of counts.npy is wrong"):
        Worker(ServerOptions(model=bundle)).serve_on(listening)


@contextmanager
def starting_worker(model: Path) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """A worker process that has just received its options, and its address."""
    metrics = new_metrics_file(1)
    with listen("127.0.0.1", 0) as listening:
        worker = subprocess.Popen(
            [sys.executable, "-m", "pathdex.server.worker", str(listening.fileno()), "0", str(metrics)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=[listening.fileno(), metrics],
        )
        os.close(metrics)
        assert worker.stdin is not None
        worker.stdin.write(ServerOptions(model=model).to_json() + b"\n")
        worker.stdin.flush()
        yield worker, address_of(listening)
        # Closes the pipe, as the death of the parent would.
        _, errors = worker.communicate(timeout=30)
        assert (worker.returncode, errors) == (0, b"")


def test_a_worker_exits_with_its_parent(popular: Path) -> None:
    with starting_worker(popular) as (worker, url), pathdex.Client(url) as client:
        assert worker.stdout is not None
        assert worker.stdout.readline().startswith(b"ready ")
        assert client.recommend([], 1)


def test_a_worker_accepts_no_connection_before_its_model_is_loaded(popular: Path) -> None:
    with starting_worker(popular) as (_, url), pathdex.Client(url, timeout=60) as client:
        assert client.recommend([], 1)  # Waits in the socket's queue, where another worker could accept it.
