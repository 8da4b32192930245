"""Clients of a server under torture. Each answer is compared with that of the model that the response names."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import re
import socket
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

ANSWER_SECONDS = 120.0
"""How long to wait for a response: replacing all workers takes a while on a busy machine."""
LAG_SECONDS = 60.0
"""How long a worker may answer from a model after another good one was put in its place."""
TOLERANCE = 1e-5


class LostError(Exception):
    """A connection that ended before the response."""


class ReopenError(Exception):
    """The connection is no longer of use."""


@dataclass
class Ledger:
    """What happened, and what was allowed to happen."""

    expected: dict[str, list[list[tuple[Any, float]]]]
    """The answer to each query, by model version."""
    queries: list[dict[str, Any]]
    placed: dict[str, float] = field(default_factory=dict)
    """When each good version was put in place for the first time."""
    replaced: dict[str, float] = field(default_factory=dict)
    """When each good version was replaced by another good one; absent while it is in place."""
    connections: dict[int, Connection] = field(default_factory=dict)
    """The newest connection of each local port."""
    counts: Counter[str] = field(default_factory=Counter)
    versions: Counter[str] = field(default_factory=Counter)
    failures: list[dict[str, Any]] = field(default_factory=list)
    stored: dict[str, list[int]] = field(default_factory=dict)
    """Acknowledged events of each user."""
    doubtful: dict[str, set[int]] = field(default_factory=dict)
    """Events whose response was lost: they may be stored."""
    slowest: float = 0.0
    """Seconds of the slowest answer."""

    def mark_killed(self, ports: set[int]) -> None:
        """Note that the connections of these local ports end with their worker.

        Connections, not ports: a client may notice the end after the kernel has given its port to a new connection.
        """
        for port in ports & self.connections.keys():
            self.connections[port].was_killed = True

    def fail(self, kind: str, detail: str) -> None:
        self.counts[f"failed: {kind}"] += 1
        if len(self.failures) < 200:
            self.failures.append({"kind": kind, "detail": detail[:500], "time": round(time.time(), 2)})

    def check_version(self, version: str, began: float) -> None:
        self.versions[version] += 1
        self.slowest = max(self.slowest, time.monotonic() - began)
        until = self.replaced.get(version)
        if version not in self.placed:
            self.fail("unknown model", version)
        elif until is not None and began - until > LAG_SECONDS:
            self.fail("old model", f"{version} was replaced {began - until:.1f} s before the request")

    def check_answer(self, number: int, version: str, items: list[dict[str, Any]]) -> None:
        wanted = self.expected.get(version, [[] for _ in self.queries])[number]
        same = [one["id"] for one in items] == [item for item, _ in wanted] and all(
            abs(one["score"] - score) <= TOLERANCE * max(1.0, abs(score))
            for one, (_, score) in zip(items, wanted, strict=True)
        )
        if not same:
            self.fail("wrong answer", f"query {number} of {version}: {items[:3]} instead of {wanted[:3]}")


class Connection:
    """One connection to the server. `LostError` if it ends early."""

    def __init__(self, ledger: Ledger, port: int) -> None:
        self._ledger, self._port = ledger, port
        self._writer: asyncio.StreamWriter | None = None
        self.was_killed = False
        """Whether the worker at the other end was killed."""

    async def open(self, receive_buffer: int | None = None) -> None:
        opened = socket.socket()
        opened.setblocking(False)
        if receive_buffer is not None:
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        address = ("127.0.0.1", self._port)
        # Started here, so that the local port is known before a worker can accept the connection and be killed.
        is_pending = opened.connect_ex(address) != 0
        self._ledger.connections[opened.getsockname()[1]] = self
        try:
            if is_pending:
                await asyncio.wait_for(asyncio.get_running_loop().sock_connect(opened, address), 60)
        except (OSError, asyncio.TimeoutError) as error:
            opened.close()
            raise LostError(f"connect: {error!r}") from None
        self._reader, self._writer = await asyncio.open_connection(sock=opened)

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()

    async def send(self, data: bytes, *, pieces: int = 1, pause: float = 0.0) -> None:
        size = -(-len(data) // pieces)
        for place in range(0, len(data), size):
            self._writer.write(data[place : place + size])
            if pause:
                await asyncio.sleep(pause)

    async def answer(self, *, block: int | None = None, pause: float = 0.0) -> tuple[int, dict[bytes, bytes], bytes]:
        try:
            return await asyncio.wait_for(self._answer(block, pause), ANSWER_SECONDS)
        except asyncio.TimeoutError:
            raise LostError(f"no response within {ANSWER_SECONDS:g} s") from None
        except (OSError, asyncio.IncompleteReadError) as error:
            raise LostError(repr(error)) from None

    async def _answer(self, block: int | None, pause: float) -> tuple[int, dict[bytes, bytes], bytes]:
        lines = (await self._reader.readuntil(b"\r\n\r\n")).split(b"\r\n")
        headers = dict(line.split(b": ", 1) for line in lines[1:] if line)
        left, body = int(headers[b"content-length"]), b""
        while left:
            part = await self._reader.readexactly(min(left, block or left))
            body, left = body + part, left - len(part)
            await asyncio.sleep(pause)
        return int(lines[0].split()[1]), headers, body

    async def wait_closed(self, seconds: float) -> None:
        with contextlib.suppress(OSError, asyncio.TimeoutError):
            while await asyncio.wait_for(self._reader.read(65536), seconds):
                pass


def request(path: str, body: Any = None, method: str | None = None) -> bytes:
    sent = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
    kind = "" if body is None else "Content-Type: application/json\r\n"
    verb = method or ("GET" if body is None else "POST")
    head = f"{verb} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n{kind}Content-Length: {len(sent)}\r\n\r\n"
    return head.encode() + sent


class Client:
    """Sends requests of one kind until it is cancelled. Lost connections to killed workers are expected."""

    def __init__(self, ledger: Ledger, port: int, seed: int, kind: str) -> None:
        self.ledger, self.port, self.kind = ledger, port, kind
        self.random = random.Random(f"{seed} {kind}")
        self._numbers = iter(range(10**9))

    async def run(self) -> None:
        while True:
            connection = Connection(self.ledger, self.port)
            try:
                await connection.open(4096 if self.kind == "slow reader" else None)
                for _ in range(1 if self.kind == "new connection" else self.random.randint(1, 200)):
                    await getattr(self, self.kind.replace(" ", "_"))(connection)
                    self.ledger.counts[self.kind] += 1
                    await asyncio.sleep(self.random.random() * 0.02)
            except ReopenError:
                self.ledger.counts[self.kind] += 1
            except LostError as error:
                if connection.was_killed:
                    self.ledger.counts["lost with a killed worker"] += 1
                else:
                    self.ledger.fail("lost request", f"{self.kind}: {error}")
                    await asyncio.sleep(0.5)
            finally:
                connection.close()

    async def query(self, connection: Connection, **sending: Any) -> None:
        number, began = self.random.randrange(len(self.ledger.queries)), time.monotonic()
        await connection.send(request("/v1/recommend", self.ledger.queries[number]), **sending)
        found = self._success(*await connection.answer(), began)
        if found is not None:
            self.ledger.check_answer(number, found["model"], found["items"])

    new_connection = query

    async def slow_writer(self, connection: Connection) -> None:
        await self.query(connection, pieces=10, pause=0.1)

    async def batch(self, connection: Connection) -> None:
        numbers, began = self.random.sample(range(len(self.ledger.queries)), 5), time.monotonic()
        body = {"queries": [self.ledger.queries[number] for number in numbers]}
        await connection.send(request("/v1/recommend", body))
        found = self._success(*await connection.answer(), began)
        for number, result in zip(numbers, (found or {}).get("results", ()), strict=False):
            self.ledger.check_answer(number, found["model"], result["items"])

    async def slow_reader(self, connection: Connection) -> None:
        await connection.send(request("/openapi.json"))
        status, _, body = await connection.answer(block=2048, pause=0.02)
        if status != 200 or "paths" not in json.loads(body):
            self.ledger.fail("status", f"{status} for /openapi.json")

    async def silent_reader(self, connection: Connection) -> None:
        await connection.send(request("/openapi.json") * 300)
        await asyncio.sleep(8)
        raise ReopenError

    async def invalid(self, connection: Connection) -> None:
        bodies = [b"{", b'{"history": 5}', b'{"history": [], "n": 0}', b"\xff", b'{"history": ["none"]}', b"[" * 5000]
        await connection.send(request("/v1/recommend", self.random.choice(bodies)))
        status, _, body = await connection.answer()
        if status not in (400, 422) or "error" not in json.loads(body):
            self.ledger.fail("status", f"{status} for an invalid body: {body[:200]!r}")

    async def events(self, connection: Connection) -> None:
        user, number, began = f"user {id(self)}", next(self._numbers), time.monotonic()
        self.ledger.doubtful.setdefault(user, set()).add(number)
        await connection.send(request("/v1/events", {"user": user, "items": [number]}))
        if self._success(*await connection.answer(), began) is not None:
            self.ledger.doubtful[user].discard(number)
            self.ledger.stored.setdefault(user, []).append(number)
        await connection.send(request("/v1/recommend", {"user": user, "n": 3}))
        self._success(*await connection.answer(), began)

    def _success(self, status: int, headers: dict[bytes, bytes], body: bytes, began: float) -> Any:
        """The decoded body, or None after recording a failure."""
        if status != 200:
            self.ledger.fail("status", f"{status} for {self.kind}: {body[:300]!r}")
            return None
        found = json.loads(body)
        if headers[b"x-pathdex-model"].decode() != found["model"] or not re.fullmatch("[0-9a-f]{12}", found["model"]):
            self.ledger.fail("wrong answer", f"the header and the body name two models: {headers} {body[:200]!r}")
        self.ledger.check_version(found["model"], began)
        return found


async def stay_idle(ledger: Ledger, port: int, *, after_request: bool) -> None:
    """Keep a connection open without using it; open it again when the server closes it."""
    while True:
        connection = Connection(ledger, port)
        with contextlib.suppress(LostError):
            await connection.open()
            if after_request:
                await connection.send(request("/health/live"))
                await connection.answer()
            ledger.counts["idle connections opened"] += 1
            await connection.wait_closed(600)
        connection.close()
        await asyncio.sleep(0.1)
