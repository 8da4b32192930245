"""`pathdex serve` as a process of its own, and what it takes of the machine."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

from typing_extensions import Self

START_SECONDS = 120
STOP_SECONDS = 60


class ServedModel:
    """A running server on a free port of the loopback."""

    def __init__(self, model: Path, *, workers: int, log: Path) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        self.url, self.workers = f"http://127.0.0.1:{port}", workers
        program = Path(sys.executable).with_name("pathdex")
        command = [str(program), "serve", str(model), "--port", str(port), "--workers", str(workers)]
        self._log = log
        with log.open("wb") as written:
            self._process = subprocess.Popen(command, stdout=written, stderr=subprocess.STDOUT)
        self._await_ready()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Let it finish what it has in hand."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()

    def get(self, path: str) -> str:
        with urllib.request.urlopen(self.url + path, timeout=10) as answer:
            text: str = answer.read().decode()
            return text

    def ask(self, body: bytes) -> dict[str, Any]:
        """The answer to one query."""
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
        pid = self._process.pid
        threads = Path(f"/proc/{pid}/task").iterdir()
        return [pid, *(int(child) for thread in threads for child in (thread / "children").read_text().split())]

    def memory(self) -> dict[str, float]:
        """MB of all processes: resident, and of these their own, not mapped from files."""
        total = {"VmRSS": 0.0, "RssAnon": 0.0}
        for pid in self.processes():
            try:
                status = Path(f"/proc/{pid}/status").read_text()
            except OSError:
                continue  # It ended between the two looks.
            for line in status.splitlines():
                name = line.split(":")[0]
                if name in total:
                    total[name] += int(line.split()[1]) / 1024
        return {"resident_mb": total["VmRSS"], "own_mb": total["RssAnon"]}

    def _await_ready(self) -> None:
        until = time.monotonic() + START_SECONDS
        while time.monotonic() < until:
            if self._process.poll() is not None:
                raise SystemExit(f"the server ended at its start:\n{self._log.read_text()}")
            try:
                self.get("/health/ready")
                return
            except OSError:
                time.sleep(0.2)
        self.stop()
        raise SystemExit(f"the server was not ready after {START_SECONDS} s:\n{self._log.read_text()}")


def put_in_place(link: Path, target: Path) -> None:
    """Let a link lead to another bundle, in one step."""
    new = link.with_name(f".{link.name}.new")
    new.unlink(missing_ok=True)
    os.symlink(target.resolve(), new)
    os.replace(new, link)
