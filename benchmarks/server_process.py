"""`pathdex serve` as a process, and its memory."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from typing_extensions import Self

START_SECONDS = 120
STOP_SECONDS = 60


class ServerProcess:
    """A running server on a free port."""

    def __init__(self, model: Path | None, *, workers: int, log: Path, options: Sequence[str] = ()) -> None:
        """`model` is None for a router."""
        port = free_port()
        self.url, self.workers = f"http://127.0.0.1:{port}", workers
        command = [sys.executable, "-m", "pathdex", "serve", *([] if model is None else [str(model)])]
        command += ["--port", str(port), "--workers", str(workers), *options]
        with log.open("wb") as written:
            self.process = subprocess.Popen(command, stdout=written, stderr=subprocess.STDOUT)
        try:
            await_ready(self.url, self.process)
        except SystemExit as error:
            raise SystemExit(f"{error}:\n{log.read_text()}") from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Let it finish its requests and exit."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()

    def get(self, path: str) -> str:
        with urllib.request.urlopen(self.url + path, timeout=10) as answer:
            text: str = answer.read().decode()
            return text

    def ask(self, body: bytes) -> dict[str, Any]:
        """The response to one query."""
        request = urllib.request.Request(
            f"{self.url}/v1/recommend", body, {"Content-Type": "application/json"}, method="POST"
        )
        with urllib.request.urlopen(request, timeout=10) as answer:
            found: dict[str, Any] = json.loads(answer.read())
            return found

    def counter(self, name: str) -> float:
        """The sum of a counter over all workers and labels."""
        lines = self.get("/metrics").splitlines()
        return sum(float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith((f"{name} ", f"{name}{{")))

    def processes(self) -> list[int]:
        """The server and its workers."""
        return [self.process.pid, *children(self.process.pid)]

    def memory(self) -> dict[str, float]:
        """MB of all processes: resident, and the part of it that is not mapped from files."""
        total = {"VmRSS": 0.0, "RssAnon": 0.0}
        for pid in self.processes():
            try:
                status = Path(f"/proc/{pid}/status").read_text()
            except OSError:
                continue  # It has exited meanwhile.
            for line in status.splitlines():
                name = line.split(":")[0]
                if name in total:
                    total[name] += int(line.split()[1]) / 1024
        return {"resident_mb": total["VmRSS"], "own_mb": total["RssAnon"]}


def free_port() -> int:
    """A port of the loopback that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def await_ready(url: str, process: subprocess.Popen[bytes]) -> None:
    """Wait until /health/ready returns 200; stop the process and raise if it does not."""
    until = time.monotonic() + START_SECONDS
    while time.monotonic() < until:
        if process.poll() is not None:
            raise SystemExit("the server exited at its start")
        try:
            urllib.request.urlopen(f"{url}/health/ready", timeout=10).close()
            return
        except OSError:
            time.sleep(0.2)
    process.kill()
    process.wait()
    raise SystemExit(f"the server was not ready after {START_SECONDS} s")


def children(pid: int) -> list[int]:
    """The child processes of a process; none if it has exited."""
    try:
        threads = list(Path(f"/proc/{pid}/task").iterdir())
        return [int(child) for thread in threads for child in (thread / "children").read_text().split()]
    except OSError:
        return []


def put_in_place(link: Path, target: Path) -> None:
    """Point a link at another bundle, atomically."""
    new = link.with_name(f".{link.name}.new")
    new.unlink(missing_ok=True)
    os.symlink(target.resolve(), new)
    os.replace(new, link)
