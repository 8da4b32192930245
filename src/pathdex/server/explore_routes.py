"""The routes of the explorer: read-only views of a model, all computed in the thread pool."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from pathdex.data.vocabulary import UNKNOWN
from pathdex.explorer.change_schemas import CompareQuery, ExploreCompare, ExploreReplay, ReplayQuery
from pathdex.explorer.compare import compare
from pathdex.explorer.explorer import Explorer
from pathdex.explorer.item_card import find_items, item_card
from pathdex.explorer.item_schemas import ExploreItems, ItemCard, ItemQuery, ItemsQuery
from pathdex.explorer.node_card import node_card
from pathdex.explorer.overview import overview, paths_under
from pathdex.explorer.overview_schemas import (
    ExploreNode,
    ExploreOverview,
    ExplorePaths,
    ExploreStatus,
    NodeQuery,
    PathCard,
    PathQuery,
    PathsQuery,
)
from pathdex.explorer.path_card import path_card
from pathdex.explorer.query_schemas import ExploreQuery, ExploreTrace, ExploreWhy, WhyQuery
from pathdex.explorer.query_view import query_view
from pathdex.explorer.replay import replay
from pathdex.explorer.search import MAX_INDEXED
from pathdex.explorer.why import why
from pathdex.server.asgi import Response
from pathdex.server.errors import invalid, unavailable
from pathdex.server.model_loader import ServedModel
from pathdex.server.route import RouteTable
from pathdex.server.worker_context import WorkerContext

EXPLORE_ROUTES = RouteTable()

SEARCH_SECONDS = 2.0
"""How long a search waits for the index, which is prepared when the explorer is first asked for."""

encode = msgspec.json.Encoder().encode


async def _answer(context: WorkerContext, served: ServedModel, view: Callable[[Explorer], Any]) -> Response:
    """Compute a view outside the event loop."""
    return Response(await context.in_thread(lambda: encode(view(context.explorers.of(served)))))


@EXPLORE_ROUTES.get("/v1/explore/status", ExploreStatus)
async def explore_status(context: WorkerContext, served: ServedModel, _: None) -> Response:
    """Tell which model is explored, and what is still being prepared."""

    def view(explorer: Explorer) -> ExploreStatus:
        doing = explorer.doing
        name, seconds = (None, None) if doing is None else (doing.name, doing.seconds)
        return ExploreStatus(explorer.version, explorer.is_live, name, seconds)

    return await _answer(context, served, view)


@EXPLORE_ROUTES.get("/v1/explore/overview", ExploreOverview)
async def explore_overview(context: WorkerContext, served: ServedModel, _: None) -> Response:
    """Show the index at a glance."""
    return await _answer(context, served, lambda explorer: overview(explorer, attributes=served.columns))


@EXPLORE_ROUTES.get("/v1/explore/paths", ExplorePaths, PathsQuery)
async def explore_paths(context: WorkerContext, served: ServedModel, query: PathsQuery) -> Response:
    """List the nodes and paths under a prefix."""
    return await _answer(context, served, lambda explorer: paths_under(explorer, query))


@EXPLORE_ROUTES.get("/v1/explore/paths/{path}", PathCard, PathQuery)
async def explore_path(context: WorkerContext, served: ServedModel, query: PathQuery) -> Response:
    """Show a path, written as 3-17-5."""
    return await _answer(context, served, lambda explorer: path_card(explorer, query))


@EXPLORE_ROUTES.get("/v1/explore/nodes/{node}", ExploreNode, NodeQuery)
async def explore_node(context: WorkerContext, served: ServedModel, query: NodeQuery) -> Response:
    """List the paths through a node of any layer."""
    return await _answer(context, served, lambda explorer: node_card(explorer, query))


@EXPLORE_ROUTES.get("/v1/explore/items", ExploreItems, ItemsQuery)
async def explore_items(context: WorkerContext, served: ServedModel, query: ItemsQuery) -> Response:
    """Search items by id or title."""

    def view(explorer: Explorer) -> ExploreItems:
        since = explorer.waits_for("search", SEARCH_SECONDS) if query.search else None
        if since is not None:
            count = min(MAX_INDEXED, len(explorer.model.items))
            rule = f"the search index of {count:,} items is being prepared, for {since:.0f} seconds so far"
            raise unavailable(rule, "try again in some seconds")
        return find_items(explorer, query)

    return await _answer(context, served, view)


@EXPLORE_ROUTES.get("/v1/explore/items/{id}", ItemCard, ItemQuery)
async def explore_item(context: WorkerContext, served: ServedModel, query: ItemQuery) -> Response:
    """Show an item and its paths."""

    def view(explorer: Explorer) -> ItemCard:
        code = explorer.model.items.code(query.id)
        if code == UNKNOWN:
            rule = f"is not in the catalogue of {explorer.model.items.num_ids:,} items"
            raise invalid("id", query.id, rule, "search for it with /v1/explore/items?search=", status=404)
        return item_card(explorer, code)

    return await _answer(context, served, view)


@EXPLORE_ROUTES.post(
    "/v1/explore/query", ExploreQuery, ExploreTrace, {"history": [260, 1196], "n": 10, "beam": 50, "deny": [1210]}
)
async def explore_query(context: WorkerContext, served: ServedModel, request: ExploreQuery) -> Response:
    """Follow a query step by step."""
    hidden = context.hidden.in_model(served)
    return await _answer(context, served, lambda explorer: query_view(explorer, request, hidden))


@EXPLORE_ROUTES.post("/v1/explore/why", WhyQuery, ExploreWhy, {"history": [260, 1196], "item": 1210, "n": 10})
async def explore_why(context: WorkerContext, served: ServedModel, request: WhyQuery) -> Response:
    """Show why an item is in the answer to a query, or why not."""
    hidden = context.hidden.in_model(served)
    return await _answer(context, served, lambda explorer: why(explorer, request, hidden))


@EXPLORE_ROUTES.get("/v1/explore/replay", ExploreReplay, ReplayQuery)
async def explore_replay(context: WorkerContext, served: ServedModel, query: ReplayQuery) -> Response:
    """Show how the index came to be."""
    return await _answer(context, served, lambda explorer: replay(explorer, query))


@EXPLORE_ROUTES.get("/v1/explore/compare", ExploreCompare, CompareQuery)
async def explore_compare(context: WorkerContext, served: ServedModel, query: CompareQuery) -> Response:
    """Show what changed from the other model to this one."""
    return await _answer(context, served, lambda explorer: compare(explorer, query))
