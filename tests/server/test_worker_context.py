"""What handlers share: the thread pool, the user store."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from typing import Any

import pytest

from pathdex.errors import StorageError
from pathdex.server.errors import RequestError
from pathdex.server.limits import ServerLimits
from pathdex.server.metrics import ServerMetrics
from pathdex.server.schemas import QueryRequest, UserEvents
from pathdex.server.worker_context import WorkerContext


class MemoryStore:
    """A user store in memory that can fail."""

    def __init__(self) -> None:
        self.users: dict[str, list[Any]] = {}
        self.fails = self.closed = False

    async def append(self, events: Sequence[tuple[str, Sequence[Any]]]) -> None:
        if self.fails:
            raise StorageError("the disk is full")
        for user, items in events:
            self.users.setdefault(user, []).extend(items)

    async def histories(self, users: Sequence[str]) -> list[list[Any]]:
        return [self.users.get(user, []) for user in users]

    async def close(self) -> None:
        self.closed = True


def context(store: MemoryStore | None = None, **limits: Any) -> WorkerContext:
    return WorkerContext(ServerLimits(**limits), ServerMetrics(), store)


def test_histories_come_from_requests_and_users() -> None:
    store = MemoryStore()

    async def run() -> Any:
        shared = context(store)
        await shared.append_events([UserEvents("ada", [1, 2])])
        found = await shared.histories([QueryRequest(history=[3]), QueryRequest(user="ada"), QueryRequest(user=7)])
        await shared.close()
        return found

    assert asyncio.run(run()) == [[3], [1, 2], []]
    assert store.closed


def test_a_user_without_a_store_is_an_error() -> None:
    with pytest.raises(RequestError) as caught:
        asyncio.run(context().histories([QueryRequest(user="ada")]))
    assert (caught.value.status, str(caught.value)) == (
        422,
        "user='ada': this server has no user store; send a history, or start the server with --user-store",
    )


def test_a_store_that_fails_is_503() -> None:
    store = MemoryStore()
    store.fails = True
    shared = context(store)
    with pytest.raises(RequestError, match="the disk of the user store is full; try again later") as caught:
        asyncio.run(shared.append_events([UserEvents("ada", [1])]))
    assert caught.value.status == 503
    assert "pathdex_user_store_errors_total 1" in shared.metrics.render().decode().splitlines()


def test_work_in_threads_has_a_time_limit() -> None:
    release = threading.Event()

    async def run() -> None:
        shared = context(timeout=0.01)
        assert await context().in_thread(lambda: 3) == 3
        try:
            await shared.in_thread(lambda: release.wait(20))
        finally:
            release.set()
            await shared.close()

    with pytest.raises(asyncio.TimeoutError):
        asyncio.run(run())
