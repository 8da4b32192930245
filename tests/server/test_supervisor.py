"""Worker processes: how they begin and end. That a dead one is replaced is shown in tests/cli/test_serve.py."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import pathdex
from pathdex.errors import ServerError
from pathdex.server.options import ServerOptions
from pathdex.server.serving import address_of, listen
from pathdex.server.supervisor import Supervisor


@contextmanager
def starting_worker(model: Path, folder: Path) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """A worker process that has only just been told what to do, and its address."""
    with listen("127.0.0.1", 0) as listening:
        worker = subprocess.Popen(
            [sys.executable, "-m", "pathdex.server.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=[listening.fileno()],
        )
        assert worker.stdin is not None
        options = ServerOptions(model=model).to_dict()
        given = {"options": options, "socket": listening.fileno(), "slot": 0, "metrics": str(folder)}
        worker.stdin.write(json.dumps(given).encode() + b"\n")
        worker.stdin.flush()
        yield worker, address_of(listening)
        # A parent that is killed leaves the pipe closed.
        _, errors = worker.communicate(timeout=30)
        assert (worker.returncode, errors) == (0, b"")


def test_a_worker_ends_with_its_parent(popular: Path, tmp_path: Path) -> None:
    with starting_worker(popular, tmp_path) as (worker, url), pathdex.Client(url) as client:
        assert worker.stdout is not None
        assert worker.stdout.readline().startswith(b"ready ")
        assert client.recommend([], 1)


def test_one_of_several_workers_takes_no_connection_before_its_model_is_loaded(popular: Path, tmp_path: Path) -> None:
    with starting_worker(popular, tmp_path) as (_, url), pathdex.Client(url, timeout=60) as client:
        assert client.recommend([], 1)  # It waits in the socket's queue, where other workers would find it.


def test_workers_that_cannot_start_end_the_supervisor(
    popular: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    broken = Path(shutil.copytree(popular, tmp_path / "broken"))
    (broken / "counts.npy").write_bytes((broken / "counts.npy").read_bytes()[:-1] + b"\xff")

    async def run(**options: Any) -> None:
        with listen("127.0.0.1", 0) as listening:
            await Supervisor(ServerOptions(model=broken, **options), listening).run()

    with pytest.raises(ServerError, match="worker 0 ended with code 1 before it was ready"):
        asyncio.run(run())
    assert "the checksum of counts.npy is wrong; copy the bundle again" in capfd.readouterr().err
