"""What each operation service.

A query of a fraction of a millisecond is answered in the event loop: handing it to a thread costs about as much, and
the thread then competes with the loop for the interpreter. What may take longer (batches, filters by list or attribute,
explanations, any query of a slow model) goes to one of a few threads, and has a time limit.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TypeVar

import msgspec
from msgspec.structs import astuple

from pathdex.data.vocabulary import Id
from pathdex.errors import StorageError
from pathdex.server import parsing, service
from pathdex.server.errors import RequestError, busy
from pathdex.server.http import HTML, TEXT, Reply
from pathdex.server.metrics import Metrics
from pathdex.server.model_loader import ServedModel
from pathdex.server.openapi import describe, docs_page
from pathdex.server.options import ServerOptions
from pathdex.server.schemas import (
    Answer,
    Answers,
    Explained,
    ExplainRequest,
    Health,
    Query,
    Stored,
    WhyNotAnswer,
)
from pathdex.server.stores import UserStore

T = TypeVar("T")
encode = msgspec.json.Encoder().encode


@dataclass(frozen=True)
class Call:
    """A request as an operation sees it."""

    argument: str
    """What the path ends in, where the route has an argument."""
    body: bytes
    served: ServedModel | None
    """The model that answers it, from the beginning to the end."""

    def model(self) -> ServedModel:
        if self.served is None:
            raise busy("the model is still being loaded; wait until /health/ready answers 200", 503)
        return self.served

    @property
    def version(self) -> str | None:
        return None if self.served is None else self.served.version


class Endpoints:
    """One method per operation of `routes.ROUTES`."""

    def __init__(self, options: ServerOptions, metrics: Metrics, store: UserStore | None) -> None:
        self.options, self.limits = options, options.limits
        self.counters, self.store = metrics, store
        self.leaving = False
        self._threads = ThreadPoolExecutor(options.limits.threads, thread_name_prefix="query")
        self._facts: tuple[ServedModel, bytes] | None = None

    async def answer(self, operation: str, call: Call) -> Reply:
        method: Callable[[Call], Awaitable[Reply]] = getattr(self, operation)
        return await method(call)

    async def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)
        if self.store is not None:
            await self.store.close()

    async def recommend(self, call: Call) -> Reply:
        served = call.model()
        queries, many = parsing.read_queries(call.body, self.limits)
        histories = await self._histories(queries)

        def work() -> tuple[bytes, int]:
            results = service.recommend(served, queries, histories)
            answer = Answers(served.version, results) if many else Answer(served.version, *astuple(results[0]))
            return encode(answer), sum(result.unknown for result in results)

        small = not many and served.quick and service.is_small(queries[0])
        body, unknown = work() if small else await self._in_thread(work)
        self.counters.add("pathdex_queries_total", len(queries))
        if unknown:
            self.counters.add("pathdex_unknown_items_total", unknown)
        return Reply(body)

    async def similar(self, call: Call) -> Reply:
        served = call.model()
        request = parsing.read_similar(call.body, self.limits)
        items = await self._in_thread(partial(service.similar, served, request))
        return Reply(encode(Answer(served.version, items)))

    async def explain(self, call: Call) -> Reply:
        served = call.model()
        request = parsing.read_explain(call.body, self.limits)
        [history] = await self._histories([request])
        found = await self._in_thread(partial(service.explain, served, request, history))
        return Reply(encode(Explained(served.version, found)))

    async def why_not(self, call: Call) -> Reply:
        served = call.model()
        request = parsing.read_why_not(call.body, self.limits)
        [history] = await self._histories([request])
        found = await self._in_thread(partial(service.why_not, served, request, history))
        return Reply(encode(WhyNotAnswer(served.version, found)))

    async def events(self, call: Call) -> Reply:
        served = call.model()
        events = parsing.read_events(call.body, self.limits)
        await self._stored(self._store().append([(str(event.user), event.items) for event in events]))
        number = sum(len(event.items) for event in events)
        self.counters.add("pathdex_events_total", number)
        return Reply(encode(Stored(served.version, number)))

    async def item(self, call: Call) -> Reply:
        return Reply(encode(service.item_facts(call.model(), call.argument)))

    async def path(self, call: Call) -> Reply:
        return Reply(encode(service.path_facts(call.model(), call.argument)))

    async def model(self, call: Call) -> Reply:
        served = call.model()
        if self._facts is None or self._facts[0] is not served:
            # The figures of a large index take a while, and never change.
            self._facts = served, encode(await self._in_thread(partial(service.model_facts, served)))
        return Reply(self._facts[1])

    async def live(self, call: Call) -> Reply:
        return Reply(encode(Health("live", call.version)))

    async def ready(self, call: Call) -> Reply:
        if self.leaving:
            return Reply(encode(Health("leaving", call.version)), 503)
        if call.served is None:
            return Reply(encode(Health("loading")), 503)
        return Reply(encode(Health("ready", call.version)))

    async def metrics(self, _: Call) -> Reply:
        return Reply(self.counters.render(), kind=TEXT)

    async def openapi(self, _: Call) -> Reply:
        return Reply(self._description)

    async def docs(self, _: Call) -> Reply:
        return Reply(docs_page(), kind=HTML)

    @cached_property
    def _description(self) -> bytes:
        return encode(describe(self.limits, token=self.options.token is not None))

    def _store(self) -> UserStore:
        if self.store is None:
            rule = "needs a user store, and this server has none; send histories, or start it with --user-store"
            raise RequestError(422, f"user: {rule}", field="user", rule=rule)
        return self.store

    async def _histories(self, requests: Sequence[Query | ExplainRequest]) -> list[list[Id]]:
        """The history of each request: its own, or that of its user."""
        users = [str(request.user) for request in requests if request.user is not None]
        if not users:
            return [request.history or [] for request in requests]
        kept = iter(await self._stored(self._store().histories(users)))
        return [(request.history or []) if request.user is None else next(kept) for request in requests]

    async def _stored(self, work: Awaitable[T]) -> T:
        try:
            return await asyncio.wait_for(work, self.limits.timeout)
        except StorageError as error:
            self.counters.add("pathdex_store_errors_total")
            raise busy(str(error), 503) from error

    async def _in_thread(self, work: Callable[[], T]) -> T:
        found = asyncio.get_running_loop().run_in_executor(self._threads, work)
        return await asyncio.wait_for(found, self.limits.timeout)
