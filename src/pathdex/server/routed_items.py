"""Requests about one item or path, answered through the shards: similar items, explanations, look-ups."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pathdex.data.vocabulary import Id
from pathdex.index.paths import decode_paths
from pathdex.kernels.types import Ints
from pathdex.recommenders.arguments import check_n, unknown_item
from pathdex.recommenders.deep_retrieval import path_code
from pathdex.retrieval.explain import Explanation, WhyNot, explain_paths, give_reason
from pathdex.server.errors import invalid
from pathdex.server.routed_model import RoutedModel
from pathdex.server.routed_queries import Resolved, add_details, check_known, find, new_query, ranked, resolve
from pathdex.server.schemas import (
    ItemInfo,
    PathInfo,
    QueryRequest,
    RecommendedItem,
    SimilarRequest,
    WhyNotRequest,
)
from pathdex.server.service import path_nodes
from pathdex.server.shard_client import AskedShards, down
from pathdex.server.shard_messages import ItemAnswer, ItemCall, NearCall, OnPathCall, ResolveQuery, floats, longs
from pathdex.server.shard_routes import shard_item, shard_near, shard_on_path


async def find_item(asked: AskedShards, model: RoutedModel, id: Id) -> ItemAnswer | None:
    """The item, wherever it is; None if no shard has it. Status 503 if a shard that may have it is down."""
    found = await asked.ask_all(shard_item, ItemCall(model.version, id))
    answer = next((one for one in found.values() if one.code >= 0), None)
    if answer is None and asked.missing:
        raise down(f"shard {min(asked.missing) + 1} of {len(asked.places)} does not answer, and may have this item")
    return answer


async def known_item(asked: AskedShards, model: RoutedModel, id: Id) -> ItemAnswer:
    """The item; an error if it is not in the catalogue."""
    found = await find_item(asked, model, id)
    if found is None:
        raise unknown_item("item", id, model.whole.facts.num_ids)
    return found


async def similar(asked: AskedShards, model: RoutedModel, request: SimilarRequest) -> list[RecommendedItem]:
    """The most similar items, best first."""
    n = check_n(request.n, model.whole.facts.num_codes)
    item = await known_item(asked, model, request.item)
    if not item.paths:
        return []
    for depth in range(model.whole.config.depth, -1, -1):
        call = NearCall(model.version, item.paths, item.vector, depth, item.code, n)
        found = (await asked.ask_all(shard_near, call)).values()
        if sum(one.total for one in found) >= n:
            break
    codes = np.concatenate([longs(one.codes) for one in found])
    cosines, ids = np.concatenate([floats(one.cosines) for one in found]), [id for one in found for id in one.ids]
    best = np.lexsort((codes, -cosines))[:n]
    items = [RecommendedItem(ids[place], float(cosines[place])) for place in best]
    await add_details(asked, model, [(items, codes[best])])
    return items


async def explain(
    asked: AskedShards, model: RoutedModel, history: list[Id], item: Id, beam: int | None, *, lenient: bool = False
) -> Explanation:
    """Which paths lead from a history to an item."""
    resolved = await _history(asked, model, history, lenient=lenient)
    return await _explain(asked, model, resolved, await known_item(asked, model, item), beam)


async def why_not(asked: AskedShards, model: RoutedModel, history: list[Id], request: WhyNotRequest) -> WhyNot:
    """What keeps an item out of the best n."""
    whole = model.whole
    resolved = await _history(asked, model, history, lenient=request.user is not None)
    n = check_n(request.n, whole.facts.num_codes)
    beam, _ = whole.beam_of(1, request.beam, None)
    item = await known_item(asked, model, request.item)
    query = QueryRequest(history=[], exclude_seen=request.exclude_seen)
    scores, rank = await _ranking(asked, model, resolved, query, item.code, n, beam)
    explanation = await _explain(asked, model, resolved, item, request.beam)
    return give_reason(
        whole.retriever,
        whole.encode(resolved.history),
        explanation,
        longs(item.paths),
        scores,
        rank,
        seen=request.exclude_seen and bool((resolved.history.codes == item.code).any()),
        n=n,
        beam=beam,
    )


async def _history(asked: AskedShards, model: RoutedModel, history: list[Id], *, lenient: bool) -> Resolved:
    [resolved] = await resolve(asked, model, [ResolveQuery(history)])
    check_known(asked, model, history, resolved, lenient=lenient)
    return resolved


async def _explain(
    asked: AskedShards, model: RoutedModel, resolved: Resolved, item: ItemAnswer, beam: int | None
) -> Explanation:
    whole, paths = model.whole, longs(item.paths)
    width, _ = whole.beam_of(1, beam, None)
    scores, rank = await _ranking(
        asked, model, resolved, QueryRequest(history=[], exclude_seen=False), item.code, 0, width
    )
    score = None if rank is None else scores[rank - 1]
    user = whole.encode(resolved.history)
    found = explain_paths(whole.retriever, user, item.id, paths, whole.sizes_of(paths), score, beam=width)
    return found if item.title is None else replace(found, title=item.title)


async def _ranking(
    asked: AskedShards, model: RoutedModel, resolved: Resolved, query: QueryRequest, code: int, n: int, beam: int
) -> tuple[list[float], int | None]:
    """The scores of all candidates of a beam, best first, and the rank of an item among them, from 1."""
    search = new_query(model, query, resolved, n, beam, 0)
    [answer] = await find(asked, model, [search], everything=True)
    items, scores = ranked(model, answer, len(answer.chosen.items))
    places = np.flatnonzero(items == code)
    return scores.tolist(), int(places[0]) + 1 if len(places) else None


async def item_info(asked: AskedShards, model: RoutedModel, text: str) -> ItemInfo:
    """An item by its id as text; status 404 if the catalogue does not have it."""
    found = await find_item(asked, model, text)
    if found is None:
        rule = f"is not in the catalogue of {model.whole.facts.num_ids:,} items"
        raise invalid("id", text, rule, "request a known id", status=404)
    return ItemInfo(model.version, found.id, _nodes(model, longs(found.paths)), found.title, found.details)


def _nodes(model: RoutedModel, paths: Ints) -> list[list[int]]:
    postings = model.whole.retriever.postings
    nodes: list[list[int]] = decode_paths(paths, postings.num_nodes, postings.depth).tolist()
    return nodes


async def path_info(asked: AskedShards, model: RoutedModel, text: str) -> PathInfo:
    """The items on a path, in the order of the catalogue."""
    nodes, postings = path_nodes(text), model.whole.retriever.postings
    code = path_code(nodes, postings.num_nodes, postings.depth)
    found = await asked.ask_all(shard_on_path, OnPathCall(model.version, code), partial=False)
    rows = sorted(
        (row for one in found.values() for row in zip(one.codes, one.ids, one.titles, strict=True)),
        key=lambda row: row[0],
    )
    titles = [title for _, _, title in rows] if model.whole.facts.details else None
    return PathInfo(model.version, nodes, [id for _, id, _ in rows], titles)
