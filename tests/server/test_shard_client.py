"""Time-outs, retries and hedged requests, against servers that fail in chosen ways."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from pathdex.server.errors import RequestError
from pathdex.server.limits import RouterLimits
from pathdex.server.metrics import ServerMetrics
from pathdex.server.shard_client import Replica, ShardClient, ShardDownError, ShardPlace, VersionGoneError
from pathdex.server.shard_messages import ItemCall, ShardCall, ShardStatus
from pathdex.server.shard_routes import shard_keep

pytest.importorskip("aiohttp")
GOOD = (200, b'{"index": 0, "count": 1, "versions": ["a"]}')
CALL = ShardCall("a")
ERROR = b'{"error": {"type": "%s", "message": "%s"}}'
Behaviour = Callable[[int], Awaitable[tuple[int, bytes] | None]]


class FakeShard:
    """A server that answers its n-th request as a function says; None closes the connection."""

    def __init__(self, behaviour: Behaviour) -> None:
        self.behaviour, self.requests = behaviour, 0
        self.url, self._tasks = "", list[asyncio.Task[Any]]()
        self._server: asyncio.Server | None = None

    async def __aenter__(self) -> FakeShard:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.append(task)
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length"))
            await reader.readexactly(int(length.split(b":")[1]))
            self.requests += 1
            answer = await self.behaviour(self.requests)
            if answer is not None:
                status, body = answer
                writer.write(b"HTTP/1.1 %d X\r\nconnection: close\r\ncontent-length: %d\r\n\r\n" % (status, len(body)))
                writer.write(body)
                await writer.drain()
        except (asyncio.CancelledError, asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


def always(*answer: Any) -> Behaviour:
    async def behave(_: int) -> tuple[int, bytes] | None:
        return answer[0] if answer else None

    return behave


async def never(_: int) -> tuple[int, bytes] | None:
    await asyncio.Event().wait()
    return None


def ask(*behaviours: Behaviour, **limits: Any) -> tuple[Any, list[int], dict[str, int], list[bool]]:
    """The outcome of one call, the requests of each replica, the counters, and which replicas are up."""
    metrics = ServerMetrics(shards=1)

    async def work() -> Any:
        shards = [FakeShard(behaviour) for behaviour in behaviours]
        for shard in shards:
            await shard.__aenter__()
        place = ShardPlace(0, 1, [Replica(shard.url) for shard in shards])
        given = {"shard_timeout": 30.0, "hedge_after": 0.0, **limits}
        client = ShardClient(RouterLimits(**given), None, metrics)
        client.open()
        try:
            found: Any = await client.ask(place, shard_keep, CALL)
        except (ShardDownError, VersionGoneError, RequestError) as error:
            found = error
        finally:
            await client.close()
            for shard in shards:
                await shard.__aexit__()
        return found, [shard.requests for shard in shards], [replica.is_up for replica in place.replicas]

    found, requests, up = asyncio.run(work())
    lines = metrics.render().decode().splitlines()
    counters = {}
    for name in ("requests", "failures", "retries", "hedges"):
        start = f'pathdex_shard_{name}_total{{shard="1"}} '
        counters[name] = next(int(line.removeprefix(start)) for line in lines if line.startswith(start))
    return found, requests, counters, up


def test_an_answer() -> None:
    found, requests, counters, up = ask(always(GOOD))
    assert found == ShardStatus(0, 1, ["a"])
    assert (requests, up) == ([1], [True])
    assert counters == {"requests": 1, "failures": 0, "retries": 0, "hedges": 0}


@pytest.mark.parametrize(
    "failing", [always(), always((503, ERROR % (b"ServerError", b"busy"))), always((502, b"<html>"))]
)
def test_a_failed_call_is_repeated_on_another_replica(failing: Behaviour) -> None:
    found, requests, counters, up = ask(failing, always(GOOD))
    assert found == ShardStatus(0, 1, ["a"])
    assert (requests, up) == ([1, 1], [False, True])
    assert counters == {"requests": 1, "failures": 0, "retries": 1, "hedges": 0}


def test_a_single_replica_is_asked_again() -> None:
    async def second(number: int) -> tuple[int, bytes] | None:
        return GOOD if number > 1 else None

    found, requests, _, up = ask(second)
    assert found == ShardStatus(0, 1, ["a"])
    assert (requests, up) == ([2], [True])


def test_after_all_retries_the_shard_is_down() -> None:
    found, requests, counters, up = ask(always(), shard_retries=2)
    assert isinstance(found, ShardDownError)
    assert "shard 1 of 1 does not answer (http://127.0.0.1:" in str(found)
    assert (requests, up) == ([3], [False])
    assert counters == {"requests": 1, "failures": 1, "retries": 2, "hedges": 0}


def test_a_replica_that_hangs_is_left_after_the_time_out() -> None:
    found, _, _, up = ask(never, always(GOOD), shard_timeout=0.2)
    assert found == ShardStatus(0, 1, ["a"])
    assert up[0] is False
    found, _, _, _ = ask(never, shard_timeout=0.2, shard_retries=1)
    assert "no response within 0.2 s" in str(found)


def test_a_slow_call_is_hedged() -> None:
    """The first replica never answers, and its time-out is far away."""
    found, requests, counters, up = ask(never, always(GOOD), hedge_after=0.05)
    assert found == ShardStatus(0, 1, ["a"])
    assert requests == [1, 1]
    assert counters == {"requests": 1, "failures": 0, "retries": 0, "hedges": 1}
    assert up == [True, True]


def test_what_the_client_did_wrong_is_not_repeated() -> None:
    found, requests, _, _ = ask(always((422, ERROR % (b"QueryError", b"no"))), always(GOOD))
    assert isinstance(found, RequestError)
    assert found.status == 422
    assert requests == [1, 0]


def test_a_version_that_is_gone() -> None:
    found, requests, _, _ = ask(always((409, ERROR % (b"ServerError", b"gone"))))
    assert isinstance(found, VersionGoneError)
    assert requests == [1]


def test_a_server_of_another_shard_does_not_count() -> None:
    other = always((421, ERROR % (b"ServerError", b"this is shard 1 of 3")))
    found, requests, counters, up = ask(other, always(GOOD))
    assert found == ShardStatus(0, 1, ["a"])
    assert (requests, up) == ([1, 1], [False, True])
    assert counters == {"requests": 1, "failures": 0, "retries": 1, "hedges": 0}
    found, _, _, up = ask(other, shard_retries=0)
    assert isinstance(found, ShardDownError)
    assert "this is shard 1 of 3" in str(found)
    assert up == [False]


def test_a_call_names_the_shard_that_it_is_for() -> None:
    call = ShardPlace(1, 3).call(ItemCall("a", 7))
    assert (call.version, call.id, call.key) == ("a", 7, ("a", 1, 3))


def test_something_else_than_a_shard() -> None:
    found, _, _, _ = ask(always((200, b"<html>hello")), shard_retries=0)
    assert "not the answer of a shard; is it one?" in str(found)
    found, _, _, _ = ask(always((404, ERROR % (b"ServerError", b"no route"))), shard_retries=0)
    assert "no route" in str(found)


def test_replicas_that_are_down_come_last() -> None:
    replicas = [Replica("a"), Replica("b", is_up=False), Replica("c")]
    place = ShardPlace(0, 1, replicas)
    assert [[one.url for one in place.order(turn)] for turn in range(3)] == [
        ["a", "c", "b"],
        ["c", "a", "b"],
        ["c", "a", "b"],
    ]
