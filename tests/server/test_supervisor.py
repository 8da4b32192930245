"""The supervisor. tests/cli/test_serve.py checks that it replaces dead workers."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from typing import Any

import pytest

from pathdex.errors import ServerError
from pathdex.server.options import ServerOptions
from pathdex.server.serving import listen
from pathdex.server.supervisor import Supervisor


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
    assert "the checksum of counts.npy is wrong; copy the bundle again" in capfd.readouterr().err
