"""The routes of a shard, which only a router calls. They are not part of the documented API."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from pathdex.recommenders.shard import DeepRetrievalShard
from pathdex.server import shard_service as service
from pathdex.server.asgi import Response
from pathdex.server.kept_shards import shard_of
from pathdex.server.model_loader import ServedModel
from pathdex.server.route import RouteTable
from pathdex.server.shard_messages import (
    DescribeAnswer,
    DescribeCall,
    FindAnswer,
    FindCall,
    ItemAnswer,
    ItemCall,
    NearAnswer,
    NearCall,
    OnPathAnswer,
    OnPathCall,
    ResolveAnswer,
    ResolveCall,
    ShardCall,
    ShardStatus,
    SharedParts,
)
from pathdex.server.worker_context import WorkerContext

CallT = TypeVar("CallT", bound=ShardCall)

SHARD_ROUTES = RouteTable()
PREFIX = "/v1/shard"
INLINE_QUERIES = 1
"""Calls with more queries run in a thread, as do those with lists or conditions."""

encode = msgspec.json.Encoder().encode


@SHARD_ROUTES.get(PREFIX, ShardStatus, internal=True)
async def shard_status(context: WorkerContext, served: ServedModel, _: None) -> Response:
    """Get the place of the shard and the versions it has."""
    return _status(context, served)


@SHARD_ROUTES.post(f"{PREFIX}/keep", ShardCall, ShardStatus, {}, internal=True)
async def shard_keep(context: WorkerContext, served: ServedModel, request: ShardCall) -> Response:
    """Keep a version, and get the status."""
    context.kept.find(served, request.key)
    return _status(context, served)


def _status(context: WorkerContext, served: ServedModel) -> Response:
    facts = shard_of(served).facts
    return Response(encode(ShardStatus(facts.index, facts.count, context.kept.versions(served))))


@SHARD_ROUTES.post(f"{PREFIX}/parts", ShardCall, SharedParts, {}, internal=True)
async def shard_parts(context: WorkerContext, served: ServedModel, request: ShardCall) -> Response:
    """Get what all shards share."""
    found = context.kept.find(served, request.key)
    return Response(await context.in_thread(lambda: encode(service.shared_parts(shard_of(found), found.columns))))


async def _answer(
    context: WorkerContext,
    served: ServedModel,
    request: CallT,
    work: Callable[[DeepRetrievalShard, CallT], Any],
    *,
    inline: bool = False,
) -> Response:
    shard = shard_of(context.kept.find(served, request.key))
    if inline:
        return Response(encode(work(shard, request)))
    return Response(await context.in_thread(lambda: encode(work(shard, request))))


def _is_cheap(query: Any) -> bool:
    return query.allow is None and query.where is None and not getattr(query, "listed", False)


@SHARD_ROUTES.post(f"{PREFIX}/resolve", ResolveCall, ResolveAnswer, {}, internal=True)
async def shard_resolve(context: WorkerContext, served: ServedModel, request: ResolveCall) -> Response:
    """Find the items of histories."""
    inline = len(request.queries) <= INLINE_QUERIES and all(map(_is_cheap, request.queries))
    return await _answer(context, served, request, service.resolve, inline=inline)


@SHARD_ROUTES.post(f"{PREFIX}/find", FindCall, FindAnswer, {}, internal=True)
async def shard_find(context: WorkerContext, served: ServedModel, request: FindCall) -> Response:
    """Find candidates."""
    inline = served.is_fast and len(request.queries) <= INLINE_QUERIES and all(map(_is_cheap, request.queries))
    return await _answer(context, served, request, service.find, inline=inline)


@SHARD_ROUTES.post(f"{PREFIX}/describe", DescribeCall, DescribeAnswer, {}, internal=True)
async def shard_describe(context: WorkerContext, served: ServedModel, request: DescribeCall) -> Response:
    """Get titles and details."""
    return await _answer(context, served, request, service.describe, inline=True)


@SHARD_ROUTES.post(f"{PREFIX}/item", ItemCall, ItemAnswer, {}, internal=True)
async def shard_item(context: WorkerContext, served: ServedModel, request: ItemCall) -> Response:
    """Find an item."""
    return await _answer(context, served, request, service.item, inline=True)


@SHARD_ROUTES.post(f"{PREFIX}/near", NearCall, NearAnswer, {}, internal=True)
async def shard_near(context: WorkerContext, served: ServedModel, request: NearCall) -> Response:
    """Find similar items."""
    return await _answer(context, served, request, service.near)


@SHARD_ROUTES.post(f"{PREFIX}/on-path", OnPathCall, OnPathAnswer, {}, internal=True)
async def shard_on_path(context: WorkerContext, served: ServedModel, request: OnPathCall) -> Response:
    """List the items on a path."""
    return await _answer(context, served, request, service.on_path)
