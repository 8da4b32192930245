"""SIGTERM under load, again and again: every request is answered, or its connection is refused."""

from __future__ import annotations

import asyncio
import re
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

BODY = b'{"history": []}'
HEAD = b"POST /v1/recommend HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
WHOLE = HEAD % len(BODY) + BODY
CLIENTS = 12
REQUESTS = 20
"""Requests per client before the signal, on average."""


def stop_often(model: Path, rounds: int, workers: int) -> dict[str, Any]:
    """Start and stop a server so often; returns the report."""
    total: Counter[str] = Counter()
    failures: list[dict[str, Any]] = []
    for number in range(rounds):
        outcomes, code, errors = asyncio.run(stop_under_load(model, workers))
        total += outcomes
        if code != 0 or errors or outcomes.keys() - {"200", "refused"}:
            failures.append({"round": number, "outcomes": dict(outcomes), "exit code": code, "errors": errors[-2000:]})
    return {"workers": workers, "rounds": rounds, "outcomes": dict(total), "failures": failures}


async def stop_under_load(model: Path, workers: int) -> tuple[Counter[str], int | None, str]:
    """Half of the clients use a connection for each request, the others keep theirs, until they are refused."""
    command = [sys.executable, "-m", "pathdex", "serve", str(model), "--port", "0", "--workers", str(workers)]
    process = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stderr is not None
    line = (await process.stdout.readline()).decode()
    found = re.search(r"http://127\.0\.0\.1:(\d+)", line)
    assert found is not None
    outcomes: Counter[str] = Counter()
    clients = [asyncio.create_task(client(int(found[1]), place % 2 == 0, outcomes)) for place in range(CLIENTS)]
    while outcomes["200"] < REQUESTS * CLIENTS:
        await asyncio.sleep(0.01)
    process.send_signal(signal.SIGTERM)
    await asyncio.gather(*clients)
    _, errors = await process.communicate()
    return outcomes, process.returncode, errors.decode()


async def client(port: int, keep: bool, outcomes: Counter[str]) -> None:
    while True:
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
        except ConnectionRefusedError:
            outcomes["refused"] += 1
            return
        try:
            closed = False
            while not closed:
                writer.write(WHOLE)
                head = await reader.readuntil(b"\r\n\r\n")
                length = re.search(rb"content-length: (\d+)", head)
                assert length is not None
                await reader.readexactly(int(length[1]))
                outcomes[head.split()[1].decode()] += 1
                closed = not keep or b"connection: close" in head
        except (OSError, asyncio.IncompleteReadError) as error:
            outcomes[type(error).__name__] += 1
        writer.close()
