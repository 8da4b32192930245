"""What all handlers of a worker share: limits, metrics, the user store, the thread pool."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

from pathdex.data.vocabulary import Id
from pathdex.errors import StorageError
from pathdex.server.errors import invalid, unavailable
from pathdex.server.limits import ServerLimits
from pathdex.server.schemas import ExplainRequest, QueryRequest
from pathdex.server.stores import UserStore

if TYPE_CHECKING:
    from pathdex.server.metrics import ServerMetrics

T = TypeVar("T")


class WorkerContext:
    """Shared state of the handlers. `openapi` is the encoded OpenAPI document."""

    def __init__(
        self, limits: ServerLimits, metrics: ServerMetrics, store: UserStore | None = None, openapi: bytes = b"{}"
    ) -> None:
        self.limits, self.metrics, self.store, self.openapi = limits, metrics, store, openapi
        self.draining = False
        self._threads = ThreadPoolExecutor(limits.threads, thread_name_prefix="query")

    async def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)
        if self.store is not None:
            await self.store.close()

    async def in_thread(self, work: Callable[[], T]) -> T:
        """Run a function in the thread pool; `TimeoutError` after the limit `timeout`."""
        found = asyncio.get_running_loop().run_in_executor(self._threads, work)
        return await asyncio.wait_for(found, self.limits.timeout)

    async def histories(self, requests: Sequence[QueryRequest | ExplainRequest]) -> list[list[Id]]:
        """The history of each request: its own, or its user's."""
        users = [str(request.user) for request in requests if request.user is not None]
        if not users:
            return [request.history or [] for request in requests]
        stored = iter(await self._call_store(self._require_store(users[0]).histories(users)))
        return [(request.history or []) if request.user is None else next(stored) for request in requests]

    async def append_events(self, events: Sequence[tuple[str, Sequence[Id]]]) -> None:
        """Append to the histories of users."""
        await self._call_store(self._require_store(events[0][0] if events else None).append(events))

    def _require_store(self, user: str | None) -> UserStore:
        if self.store is None:
            remedy = "send a history, or start the server with --user-store"
            raise invalid("user", user, "this server has no user store", remedy)
        return self.store

    async def _call_store(self, work: Awaitable[T]) -> T:
        try:
            return await asyncio.wait_for(work, self.limits.timeout)
        except StorageError as error:
            self.metrics.add("pathdex_user_store_errors_total")
            raise unavailable(str(error)) from error
