"""The supervisor. tests/cli/test_serve.py checks that it replaces dead workers."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pathdex.errors import ServerError
from pathdex.server import supervisor
from pathdex.server.options import ServerOptions
from pathdex.server.serving import listen
from pathdex.server.supervisor import Supervisor
from pathdex.storage.bundle import bundle_version
from tests.bundle_edits import sign_files


def test_a_worker_that_cannot_start_stops_the_supervisor(
    popular: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    broken = Path(shutil.copytree(popular, tmp_path / "broken"))
    (broken / "counts.npy").write_bytes((broken / "counts.npy").read_bytes()[:-1] + b"\xff")

    async def run(**options: Any) -> None:
        with listen("127.0.0.1", 0) as listening:
            await Supervisor(ServerOptions(model=broken, **options), listening).run()

    with pytest.raises(ServerError, match="worker 0 exited with code 1 before it was ready; see the log"):
        asyncio.run(run())
    assert "the checksum of counts.npy is wrong; copy it again" in capfd.readouterr().err


def test_a_worker_that_hangs_is_replaced(
    popular: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(supervisor, "HANG_SECONDS", 3.0)

    async def run() -> tuple[list[int], list[int]]:
        ready = asyncio.Event()
        with listen("127.0.0.1", 0) as listening:
            running = Supervisor(ServerOptions(model=popular), listening, lambda _: ready.set())
            task = asyncio.create_task(running.run())
            await asyncio.wait_for(ready.wait(), 60)
            first = running.pids
            os.kill(first[0], signal.SIGSTOP)
            for _ in range(600):
                if running.pids not in ([], first):
                    break
                await asyncio.sleep(0.1)
            second = running.pids
            running.stop()
            await asyncio.wait_for(task, 60)
            return first, second

    first, second = asyncio.run(run())
    assert len(first) == len(second) == 1
    assert first != second
    assert "worker 0 has not responded for 3 s; killing it" in caplog.text
    assert "worker 0 exited with code -9; restarting it" in caplog.text


def test_a_replacement_worker_serves_the_last_good_version(
    popular: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATHDEX_CACHE", str(tmp_path / "cache"))
    bundle = Path(shutil.copytree(popular, tmp_path / "bundle"))
    good = bundle_version(bundle)

    async def run() -> tuple[int, int, str]:
        ready = asyncio.Event()
        with listen("127.0.0.1", 0) as listening:
            running = Supervisor(ServerOptions(model=bundle, watch=0.0), listening, lambda _: ready.set())
            task = asyncio.create_task(running.run())
            await asyncio.wait_for(ready.wait(), 60)
            first = running.pids[0]
            bad = Path(shutil.copytree(bundle, tmp_path / "bad"))
            np.save(bad / "counts.npy", np.full(32, 10**17))
            sign_files(bad)
            shutil.rmtree(bundle)
            bad.rename(bundle)
            running._versions.clear()
            os.kill(first, signal.SIGKILL)
            for _ in range(600):
                if running._versions:
                    break
                await asyncio.sleep(0.1)
            second, version = running.pids[0], running._versions[0]
            running.stop()
            await asyncio.wait_for(task, 60)
            return first, second, version

    first, second, version = asyncio.run(run())
    assert first != second
    assert version == good
    message = f"counts: holds {10**17}, must hold no value above {2**53 - 1}"
    assert message in (err := capfd.readouterr().err)
    assert f"still serving model {good}" in err
