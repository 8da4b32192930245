"""What all handlers of a worker share: limits, metrics, the user store, the stream, the thread pool."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

from pathdex.data.item_changes import ItemChange
from pathdex.data.vocabulary import Id
from pathdex.errors import StorageError
from pathdex.server.errors import invalid, is_full, unavailable
from pathdex.server.event_feed import EventFeed, event_records, no_stream
from pathdex.server.explorers import Explorers
from pathdex.server.hidden_items import HiddenItems
from pathdex.server.kept_shards import KeptShards
from pathdex.server.limits import ServerLimits
from pathdex.server.schemas import EventsRequest, ExplainRequest, QueryRequest, UserEvents
from pathdex.server.stores import UserStore

if TYPE_CHECKING:
    from pathdex.server.metrics import ServerMetrics

log = logging.getLogger("pathdex.server")

T = TypeVar("T")


class WorkerContext:
    """Shared state of the handlers. `openapi` is the encoded OpenAPI document."""

    def __init__(
        self,
        limits: ServerLimits,
        metrics: ServerMetrics,
        store: UserStore | None = None,
        openapi: bytes = b"{}",
        feed: EventFeed | None = None,
        explorers: Explorers | None = None,
    ) -> None:
        self.limits, self.metrics, self.store, self.openapi, self.feed = limits, metrics, store, openapi, feed
        self.hidden, self.kept = HiddenItems(), KeptShards()
        self.explorers = explorers or Explorers()
        self.draining = False
        self._threads = ThreadPoolExecutor(limits.threads, thread_name_prefix="query")

    async def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)
        if self.store is not None:
            await self.store.close()
        if self.feed is not None:
            await self.feed.close()

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

    async def append_events(self, users: Sequence[EventsRequest | UserEvents]) -> int:
        """Append to the stream, then to the histories of users; returns the number of events.

        In this order: if the second fails, the client sends both again, and the stream recognises duplicates by their
        time, while the store does not.
        """
        if self.feed is None and self.store is None:
            user, remedy = (users[0].user if users else None), "start it with --user-store or --events"
            raise invalid("user", user, "this server has neither a user store nor a stream of events", remedy)
        number = sum(len(one.items or []) for one in users)
        if self.feed is not None:
            await self.feed.append(event_records(users))
            self.metrics.add("pathdex_sink_events_total", number)
        if self.store is not None:
            await self._call_store(self.store.append([(str(one.user), one.items or []) for one in users]))
            self.metrics.add("pathdex_user_events_total", number)
        return number

    async def history_of(self, user: str) -> list[Id]:
        """The stored history of a user."""
        [found] = await self._call_store(self._require_store(user).histories([user]))
        return found

    async def forget(self, user: str) -> None:
        """Remove the stored history of a user. What a stream has learned from it stays learned."""
        await self._call_store(self._require_store(user).forget(user))

    async def change_items(self, changes: Sequence[ItemChange]) -> None:
        """Append item changes to the stream; this worker stops recommending removed items at once."""
        if self.feed is None:
            raise no_stream()
        await self.feed.append(changes)
        self.metrics.add("pathdex_sink_item_changes_total", len(changes))
        self.hidden.apply(changes)

    def _require_store(self, user: str | None) -> UserStore:
        if self.store is None:
            remedy = "send a history, or start the server with --user-store"
            raise invalid("user", user, "this server has no user store", remedy)
        return self.store

    async def _call_store(self, work: Awaitable[T]) -> T:
        try:
            return await asyncio.wait_for(work, self.limits.timeout)
        except StorageError as error:
            # The message names the file, which is no concern of the client.
            self.metrics.add("pathdex_user_store_errors_total")
            log.error("%s", error)
            rule = "the disk of the user store is full" if is_full(error) else "the user store is unavailable"
            raise unavailable(rule, "try again later") from error
