"""The shards of a model in this process: calls pass through JSON, but not through HTTP."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import msgspec

import pathdex
from pathdex.errors import PathdexError
from pathdex.recommenders.deep_retrieval import DeepRetrieval
from pathdex.recommenders.shard import DeepRetrievalShard
from pathdex.recommenders.sharding import split_model
from pathdex.server import service, shard_service
from pathdex.server.errors import RequestError, from_library
from pathdex.server.limits import ServerLimits
from pathdex.server.model_loader import ServedModel
from pathdex.server.route import Route
from pathdex.server.routed_model import RoutedModel
from pathdex.server.schemas import QueryRequest, QueryResult
from pathdex.server.shard_client import AskedShards, Replica, ShardDownError, ShardPlace

T = TypeVar("T")
VERSION = "0123456789ab"
WORK: dict[str, Callable[[DeepRetrievalShard, Any], Any]] = {
    f"shard_{name}": getattr(shard_service, name) for name in ("resolve", "find", "describe", "item", "near", "on_path")
}


@dataclass
class LocalClient:
    """Calls shards in this process; those in `down` do not answer."""

    shards: list[DeepRetrievalShard]
    down: frozenset[int] = frozenset()
    asked: list[str] = field(default_factory=list)
    """The routes of all calls."""

    async def ask(
        self, place: ShardPlace, route: Route[Any, Any], request: Any, *, turn: int = 0, timeout: float | None = None
    ) -> Any:
        self.asked.append(route.name)
        if place.index in self.down:
            raise ShardDownError(place.index, place.count, "it is down")
        parsed = route.parse(msgspec.json.encode(request), ServerLimits())
        return route.parse_response(msgspec.json.encode(WORK[route.name](self.shards[place.index], parsed)))


class LocalShards:
    """A model, its shards, and what a router knows of them."""

    def __init__(self, model: DeepRetrieval, count: int, known_items: int = 0) -> None:
        self.model = model
        self.served = ServedModel(model, VERSION, 0.0, 0.0, ())
        with tempfile.TemporaryDirectory() as folder:
            saved = [shard.save(Path(folder) / str(shard.facts.index)) for shard in split_model(model, count, VERSION)]
            loaded = [pathdex.load(path) for path in saved]
        self.shards = [one for one in loaded if isinstance(one, DeepRetrievalShard)]
        for shard in self.shards:
            shard.attach_details()
        parts = shard_service.shared_parts(self.shards[0], self.shards[0].attach_details())
        decoded = msgspec.json.decode(msgspec.json.encode(parts), type=type(parts))
        self.routed = RoutedModel.from_parts(decoded, known_items)

    def asked(self, down: frozenset[int] = frozenset(), *, partial: bool = False) -> AskedShards:
        count = len(self.shards)
        places = [ShardPlace(index, count, [Replica(f"local-{index}")]) for index in range(count)]
        client: Any = LocalClient(self.shards, down)
        return AskedShards(client, places, partial=partial)


def run(work: Awaitable[T]) -> T:
    async def wait() -> T:
        return await work

    return asyncio.run(wait())


def outcome(work: Callable[[], Any]) -> Any:
    """What a call returns as JSON, or the error that a client would see."""
    try:
        found = work()
        if isinstance(found, Coroutine):
            found = run(found)
    except RequestError as error:
        return error.status, str(error)
    except PathdexError as error:
        whole = from_library(error)
        return whole.status, str(whole)
    return msgspec.json.encode(found)


def unsharded(shards: LocalShards, queries: list[QueryRequest]) -> list[QueryResult]:
    return service.recommend(shards.served, queries, [query.history or [] for query in queries])
