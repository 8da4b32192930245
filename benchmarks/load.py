"""Load on a server: wrk if it is installed, or else a Python client, which uses more CPU."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
import sys
import time
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np

SCRIPT = Path(__file__).with_name("wrk.lua")


@dataclass(frozen=True)
class Load:
    """The outcome of a load. Latencies in microseconds."""

    requests: int
    seconds: float
    p50: float
    p99: float
    p999: float
    failed: dict[str, int]

    @property
    def per_second(self) -> float:
        return self.requests / self.seconds

    @property
    def failures(self) -> int:
        return sum(self.failed.values())

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "requests_per_second": self.per_second, "failures": self.failures}


def tool() -> str:
    """The load generator."""
    return "wrk" if shutil.which("wrk") else "python"


class RunningLoad:
    """A load in another process; `result` waits for it. With `rate`, the Python client sends so many per second."""

    def __init__(self, url: str, bodies: Path, seconds: float, connections: int, *, rate: float | None = None) -> None:
        if shutil.which("wrk") and rate is None:
            seconds = max(1, round(seconds))
            shape = ["--threads", "1", "--connections", str(connections), "--duration", f"{seconds}s"]
            command = ["wrk", *shape, "--timeout", "10s", "--script", str(SCRIPT), url, "--", str(bodies)]
        else:
            command = [sys.executable, "-m", "benchmarks.load", url, str(bodies)]
            command += [str(seconds), str(connections), str(rate or 0)]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

    def running(self) -> bool:
        return self._process.poll() is None

    def stop(self) -> None:
        if self.running():
            self._process.terminate()
            self._process.wait()

    def result(self) -> Load:
        written, _ = self._process.communicate()
        if self._process.returncode:
            raise SystemExit(f"the load generator exited with code {self._process.returncode}: {written}")
        return Load(**json.loads(written.strip().splitlines()[-1]))


async def _load(url: str, bodies: list[bytes], seconds: float, connections: int, rate: float = 0.0) -> dict[str, Any]:
    place = urlsplit(url)
    assert place.hostname is not None
    until = time.perf_counter() + seconds
    latencies: list[float] = []
    failed = Counter({"connect": 0, "read": 0, "write": 0, "timeout": 0, "status": 0})

    async def connection(number: int) -> None:
        head = f"POST /v1/recommend HTTP/1.1\r\nHost: {place.netloc}\r\nContent-Type: application/json\r\n"
        turn = number * len(bodies) // connections
        reader, writer = await asyncio.open_connection(place.hostname, place.port)
        while time.perf_counter() < until:
            turn = (turn + 1) % len(bodies)
            begin = time.perf_counter()
            writer.write(f"{head}Content-Length: {len(bodies[turn])}\r\n\r\n".encode() + bodies[turn])
            try:
                status = await asyncio.wait_for(_answer(reader), 10)
            except asyncio.TimeoutError:
                failed["timeout"] += 1
                return
            except (OSError, asyncio.IncompleteReadError):
                failed["read"] += 1
                return
            failed["status"] += status != 200
            latencies.append(time.perf_counter() - begin)
            if rate:
                await asyncio.sleep(max(0.0, begin + connections / rate - time.perf_counter()))
        writer.close()

    started = time.perf_counter()
    await asyncio.gather(*(connection(number) for number in range(connections)))
    spent = time.perf_counter() - started
    p50, p99, p999 = 1e6 * np.percentile(latencies, (50, 99, 99.9))
    figures = {"requests": len(latencies), "seconds": spent, "p50": p50, "p99": p99, "p999": p999}
    return {**figures, "failed": dict(failed)}


async def _answer(reader: asyncio.StreamReader) -> int:
    """Read one response and return its status."""
    head = await reader.readuntil(b"\r\n\r\n")
    length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
    await reader.readexactly(int(length.split(b":")[1]))
    return int(head.split(b" ", 2)[1])


if __name__ == "__main__":
    _, url, file, seconds, connections, rate = sys.argv
    lines = Path(file).read_bytes().splitlines()
    print(json.dumps(asyncio.run(_load(url, lines, float(seconds), int(connections), float(rate)))))
