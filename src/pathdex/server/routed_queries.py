"""Answer requests by asking shards and merging what they find, to exactly the answers of the unsharded model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pathdex.data.vocabulary import Id
from pathdex.kernels.types import Floats, Ints
from pathdex.recommenders.arguments import check_n, unknown_history
from pathdex.recommenders.whole_model import KnownHistory
from pathdex.retrieval.part_merge import Chosen, merge_parts, rank_chosen
from pathdex.retrieval.part_search import PartFound
from pathdex.server.errors import error_of
from pathdex.server.known_items import history_of
from pathdex.server.routed_model import RoutedModel
from pathdex.server.schemas import ErrorDetail, QueryRequest, QueryResult, RecommendedItem
from pathdex.server.service import query_groups
from pathdex.server.shard_client import AskedShards
from pathdex.server.shard_messages import (
    DescribeCall,
    FindCall,
    FindQuery,
    FoundItems,
    ResolveCall,
    ResolvedQuery,
    ResolveQuery,
    floats,
    ints,
    longs,
    to_bytes,
)
from pathdex.server.shard_routes import shard_describe, shard_find, shard_resolve

ALL = 2**40
"""Asks shards for all candidates."""


@dataclass
class Resolved:
    """A history as the shards know it."""

    history: KnownHistory
    unknown: int
    own: dict[int, bytes]
    """By shard, its known items in its codes (int32)."""
    eligible: int | None
    """How many items pass `allow` and `where`; None without these."""
    problem: ErrorDetail | None


@dataclass
class RoutedQuery:
    """A query on its way through the shards."""

    query: QueryRequest
    resolved: Resolved
    n: int
    beam: int
    candidates: int
    user: Floats
    similar: Ints
    similarity: Floats
    max_beam: int = 0
    """0: all eligible items are scored."""


@dataclass
class Answer:
    """The candidates of a query and the ids of all that shards sent."""

    chosen: Chosen
    ids: dict[int, Id]


async def resolve(asked: AskedShards, model: RoutedModel, queries: Sequence[ResolveQuery]) -> list[Resolved]:
    """What the shards hold of some histories; they are asked only for what the router does not remember."""
    resolved = [_remembered(model, query) for query in queries]
    rows = [row for row, one in enumerate(resolved) if one is None]
    if rows:
        call = ResolveCall(model.version, [queries[row] for row in rows])
        found = await asked.ask_all(shard_resolve, call)
        for place, row in enumerate(rows):
            parts = {index: answer.queries[place] for index, answer in found.items()}
            resolved[row] = _resolved(model, queries[row], parts, is_complete=not asked.missing)
    return [one for one in resolved if one is not None]


def _remembered(model: RoutedModel, query: ResolveQuery) -> Resolved | None:
    """A history of remembered items; None if there are others, or filters, which need the shards in any case."""
    if query.allow is not None or query.where:
        return None
    length = model.whole.config.history_length
    items = model.known.find(query.history, length)
    if items is None:
        return None
    history = history_of(items, length, model.whole.config.embedding_dim)
    shards = model.whole.facts.count
    owner, codes = history.codes % shards, history.codes // shards
    own = {index: to_bytes(codes[owner == index], "int32") for index in range(shards)}
    return Resolved(history, len(items) - len(codes), own, None, None)


def _resolved(
    model: RoutedModel, query: ResolveQuery, parts: Mapping[int, ResolvedQuery], *, is_complete: bool
) -> Resolved:
    dim = model.whole.config.embedding_dim
    shards, all_codes = model.whole.facts.count, np.full(len(query.history), -1, np.int64)
    distinct, rows, lengths, near, similarities = [], [], [], [], []
    for index, part in parts.items():
        all_codes[ints(part.places)] = ints(part.codes) * shards + index
        distinct.append(ints(part.distinct) * shards + index)
        rows.append(floats(part.rows).reshape(-1, dim))
        lengths.append(ints(part.lengths))
        near.append(np.frombuffer(part.near, np.int32))
        similarities.append(floats(part.similarities))
    codes = all_codes[all_codes >= 0]
    own = np.concatenate(distinct)
    order = np.argsort(own)
    # Lists of neighbours stay where they are; only the order of the items that have them changes.
    spans = np.concatenate(lengths) if model.whole.facts.neighbours else np.zeros(len(own), np.int64)
    ends = np.cumsum(spans)
    taken = [np.arange(ends[place] - spans[place], ends[place]) for place in order]
    places = np.concatenate(taken) if taken else np.empty(0, np.int64)
    history = KnownHistory(
        codes,
        own[order],
        np.concatenate(rows)[order],
        spans[order],
        np.concatenate(near)[places],
        np.concatenate(similarities)[places],
    )
    if is_complete:
        model.known.remember(query.history, all_codes, history)
    masked = query.allow is not None or query.where
    return Resolved(
        history,
        len(query.history) - len(codes),
        {index: part.codes for index, part in parts.items()},
        sum(part.eligible for part in parts.values()) if masked else None,
        next((part.problem for part in parts.values() if part.problem is not None), None),
    )


def new_query(
    model: RoutedModel, query: QueryRequest, resolved: Resolved, n: int, beam: int, candidates: int
) -> RoutedQuery:
    """Encode the history and plan the beam."""
    user = model.whole.encode(resolved.history)
    similar, similarity = np.empty(0, np.int64), np.empty(0, np.float32)
    if model.whole.facts.neighbours:
        similar, similarity = model.whole.similar(resolved.history)
    search = RoutedQuery(query, resolved, n, beam, candidates, user, similar, similarity)
    plan = model.whole.plan(n, beam, candidates, resolved.eligible)
    search.beam, search.max_beam = plan
    return search


async def find(
    asked: AskedShards, model: RoutedModel, searches: Sequence[RoutedQuery], *, everything: bool = False
) -> list[Answer]:
    """The candidates of some queries; those that can be among the best n, or `everything`."""
    answers: list[Answer | None] = [None] * len(searches)
    left = list(range(len(searches)))
    while left:
        calls: dict[int, list[FindQuery]] = {place.index: [] for place in asked.places}
        for row in left:
            for index, query in _find_queries(model, searches[row], everything=everything).items():
                calls[index].append(query)
        found = await asked.ask(
            shard_find, {index: FindCall(model.version, queries) for index, queries in calls.items()}
        )
        again = []
        for place, row in enumerate(left):
            search = searches[row]
            answer = _merged(model, search, {index: one.queries[place] for index, one in found.items()})
            if search.beam and not _is_enough(model, search, answer):
                again.append(row)
            else:
                answers[row] = answer
        left = again
    return [one for one in answers if one is not None]


def _is_enough(model: RoutedModel, search: RoutedQuery, answer: Answer) -> bool:
    """Whether there are n candidates; if not, widens the beam, or lets all eligible items be scored."""
    if answer.chosen.total >= search.n or search.beam >= model.whole.num_paths:
        return True
    search.beam = 2 * search.beam if 2 * search.beam <= search.max_beam else 0
    return False


def _find_queries(model: RoutedModel, search: RoutedQuery, *, everything: bool) -> dict[int, FindQuery]:
    """The query for each shard."""
    whole, query, shards = model.whole, search.query, model.whole.facts.count
    positions, log_p = np.empty(0, np.int64), np.empty(0, np.float32)
    if search.beam:
        positions, log_p = whole.follow(search.user, search.beam)
    reserved = whole.reserved(search.candidates, positions) if whole.facts.neighbours else 0
    shared: dict[str, Any] = {
        "user": search.user.tobytes(),
        "positions": to_bytes(positions, "int32"),
        "log_p": to_bytes(log_p, "float32"),
        "n": ALL if everything else search.n,
        "deny": query.deny,
        "allow": query.allow,
        "where": query.where,
        "candidates": search.candidates,
        "reserved": reserved,
        "listed": not search.beam,
    }
    owner, found = search.similar % shards, {}
    for index in range(shards):
        held = owner == index
        found[index] = FindQuery(
            exclude=search.resolved.own.get(index, b"") if query.exclude_seen else b"",
            similar=to_bytes(search.similar[held] // shards, "int32"),
            similarity=to_bytes(search.similarity[held], "float32"),
            **shared,
        )
    return found


def _merged(model: RoutedModel, search: RoutedQuery, parts: Mapping[int, FoundItems]) -> Answer:
    whole, ids = model.whole, dict[int, Id]()
    found = []
    for part in parts.values():
        codes = longs(part.codes)
        ids.update(zip(codes.tolist(), part.ids, strict=True))
        least = np.inf if part.least is None else part.least
        arrays = (floats(part.log_probability), floats(part.similarity), floats(part.base))
        found.append(PartFound(codes, *arrays, part.total, least))
    chosen = merge_parts(
        found, whole.weights, search.candidates, neighbours=whole.facts.neighbours, listed=not search.beam
    )
    return Answer(chosen, ids)


def ranked(model: RoutedModel, answer: Answer, n: int) -> tuple[Ints, Floats]:
    """The best n of the candidates, best first, and their scores."""
    return rank_chosen(answer.chosen, model.whole.weights, n, neighbours=model.whole.facts.neighbours)


async def recommend(
    asked: AskedShards, model: RoutedModel, queries: Sequence[QueryRequest], histories: Sequence[list[Id]]
) -> list[QueryResult]:
    """The result of each query; explanations are added by the caller."""
    asking = [
        ResolveQuery(history, query.allow, query.where) for query, history in zip(queries, histories, strict=True)
    ]
    resolved = await resolve(asked, model, asking)
    for number, (query, history, one) in enumerate(zip(queries, histories, resolved, strict=True)):
        check_known(asked, model, history, one, number, lenient=query.user is not None)
    searches: list[RoutedQuery | None] = [None] * len(queries)
    for rows, n, options in query_groups(queries):
        n = check_n(n, model.whole.facts.num_codes)
        for row in rows:
            check_conditions(resolved[row])
        beam, candidates = model.whole.beam_of(n, options.get("beam"), options.get("candidates"))
        for row in rows:
            searches[row] = new_query(model, queries[row], resolved[row], n, beam, candidates)
    made = [one for one in searches if one is not None]
    results = []
    for search, answer in zip(made, await find(asked, model, made), strict=True):
        items, scores = ranked(model, answer, search.n)
        pairs = zip(items.tolist(), scores.tolist(), strict=True)
        results.append(([RecommendedItem(answer.ids[code], score) for code, score in pairs], items))
    await add_details(asked, model, results)
    return [QueryResult(found, one.unknown) for (found, _), one in zip(results, resolved, strict=True)]


async def add_details(
    asked: AskedShards, model: RoutedModel, results: Sequence[tuple[list[RecommendedItem], Ints]]
) -> None:
    """Set the titles and details of items, if the model has them."""
    if not model.whole.facts.details or not any(items for items, _ in results):
        return
    shards = model.whole.facts.count
    codes = np.unique(np.concatenate([codes for _, codes in results]))
    calls = {index: codes[codes % shards == index] for index in range(shards)}
    requests = {
        index: DescribeCall(model.version, (own // shards).tolist()) for index, own in calls.items() if len(own)
    }
    described: dict[int, tuple[str | None, dict[str, Any] | None]] = {}
    for index, answer in (await asked.ask(shard_describe, requests)).items():
        described |= dict(zip(calls[index].tolist(), zip(answer.titles, answer.details, strict=True), strict=True))
    for items, own in results:
        for item, code in zip(items, own.tolist(), strict=True):
            item.title, item.details = described.get(code, (None, None))


def check_known(
    asked: AskedShards, model: RoutedModel, history: list[Id], resolved: Resolved, number: int = 0, *, lenient: bool
) -> None:
    """Raise for a history without a known item. Items of a missing shard cannot be told from unknown ones."""
    if history and not len(resolved.history.codes) and not lenient and not asked.missing:
        raise unknown_history(number, history, model.whole.facts.num_ids)


def check_conditions(resolved: Resolved) -> None:
    """Raise what the shards say about `where`."""
    if resolved.problem is not None:
        raise error_of(resolved.problem, 422)
