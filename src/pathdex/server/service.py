"""Answer requests with the library; no HTTP here. Every function is thread-safe."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pathdex.data.vocabulary import UNKNOWN, Id
from pathdex.recommenders.base import Recommender
from pathdex.recommenders.capabilities import CanExplain, HasIndex, require
from pathdex.recommenders.item_list import ScoredItem
from pathdex.recommenders.query import Query
from pathdex.server.errors import invalid
from pathdex.server.model_loader import ServedModel
from pathdex.server.schemas import (
    ExplainRequest,
    ExplainResponse,
    ItemInfo,
    PathInfo,
    QueryRequest,
    QueryResult,
    RecommendedItem,
    SimilarRequest,
    SimilarResponse,
    WhyNotRequest,
    WhyNotResponse,
)

INLINE_N = 100
"""A query with a larger `n`, or a longer `deny`, runs in a thread."""


def is_cheap(query: QueryRequest, hidden: Sequence[Id] = ()) -> bool:
    """Whether a query costs about as much as the one that was timed when the model was loaded."""
    return (
        query.n <= INLINE_N
        and query.beam is None
        and query.candidates is None
        and query.allow is None
        and len(query.deny) + len(hidden) <= INLINE_N
        and query.where is None
        and not query.explain
    )


def recommend(
    served: ServedModel, queries: Sequence[QueryRequest], histories: Sequence[list[Id]], hidden: Sequence[Id] = ()
) -> list[QueryResult]:
    """The result of each query; `histories` holds the history of each, from the request or from the user store.

    Items of `hidden` are in no result.
    """
    model = served.recommender
    known, unknown = [], []
    for number, (query, history) in enumerate(zip(queries, histories, strict=True)):
        kept = known_items(model, history, number, lenient=query.user is not None)
        known.append(kept)
        unknown.append(len(history) - len(kept))
    found: list[list[RecommendedItem]] = [[] for _ in queries]
    for rows, n, options in query_groups(queries):
        batch = [
            Query(
                known[row],
                queries[row].exclude_seen,
                [*queries[row].deny, *hidden] if queries[row].deny else hidden,
                queries[row].allow,
                queries[row].where,
            )
            for row in rows
        ]
        for row, items in zip(rows, model.recommend_batch(batch, n, **options), strict=True):
            found[row] = _items(model, items)
    for query, history, recommended in zip(queries, known, found, strict=True):
        if query.explain:
            explainer = require(model, CanExplain)
            for item in recommended:
                item.explanation = explainer.explain(history, item.id, beam=query.beam)
    return [QueryResult(items, missing) for items, missing in zip(found, unknown, strict=True)]


def known_items(model: Recommender, history: list[Id], number: int = 0, *, lenient: bool = False) -> list[Id]:
    """The items of a history that are in the catalogue.

    A history of unknown items only raises the library's error for history `number`. A `lenient` history becomes empty
    instead: a client that sends a user id does not control what the user store holds.
    """
    codes = model.items.codes(history)
    missing = codes == UNKNOWN
    if not missing.any():
        return history
    if missing.all() and not lenient:
        model.encode_histories([*([[]] * number), history])
    return [one for one, gone in zip(history, missing.tolist(), strict=True) if not gone]


def similar(served: ServedModel, request: SimilarRequest, hidden: Sequence[Id] = ()) -> SimilarResponse:
    found = served.recommender.similar_items(request.item, request.n + len(hidden))
    gone = set(hidden)
    shown = [one for one in found if one.id not in gone][: request.n]
    return SimilarResponse(served.version, _items(served.recommender, shown))


def explain(served: ServedModel, request: ExplainRequest, history: list[Id]) -> ExplainResponse:
    model = require(served.recommender, CanExplain)
    known = known_items(model, history, lenient=request.user is not None)
    return ExplainResponse(served.version, model.explain(known, request.item, beam=request.beam))


def why_not(served: ServedModel, request: WhyNotRequest, history: list[Id]) -> WhyNotResponse:
    model = require(served.recommender, CanExplain)
    known = known_items(model, history, lenient=request.user is not None)
    options: dict[str, Any] = {"n": request.n, "beam": request.beam, "exclude_seen": request.exclude_seen}
    return WhyNotResponse(served.version, model.why_not(known, request.item, **options))


def item_info(served: ServedModel, text: str) -> ItemInfo:
    """An item by its id as text; status 404 if the catalogue does not have it."""
    model = served.recommender
    code = model.items.code(text)
    if code == UNKNOWN:
        rule = f"is not in the catalogue of {model.items.num_ids:,} items"
        raise invalid("id", text, rule, "request a known id", status=404)
    item = model.items.id(code)
    paths = [list(path) for path in model.item_paths(item)] if isinstance(model, HasIndex) else None
    if model.details is None:
        return ItemInfo(served.version, item, paths)
    return ItemInfo(served.version, item, paths, model.details.title(item), model.details.details(item) or None)


def path_info(served: ServedModel, text: str) -> PathInfo:
    """The items on a path, written as 3-17-5."""
    model = require(served.recommender, HasIndex)
    path = path_nodes(text)
    items, details = model.path_items(path), model.details
    titles = None if details is None else [details.title(item) for item in items]
    return PathInfo(served.version, path, items, titles)


def path_nodes(text: str) -> list[int]:
    """The nodes of a path that is written as 3-17-5."""
    parts = text.split("-")
    if not all(part.isascii() and part.isdecimal() and len(part) < 10 for part in parts):
        raise invalid("path", text, "must be one node per layer, joined by hyphens", "write it as 3-17-5")
    return [int(part) for part in parts]


def _items(model: Recommender, items: Sequence[ScoredItem]) -> list[RecommendedItem]:
    details = model.details
    if details is None:
        return [RecommendedItem(id, score) for id, score in items]
    return [RecommendedItem(id, score, None, details.title(id), details.details(id) or None) for id, score in items]


def query_groups(queries: Sequence[QueryRequest]) -> list[tuple[list[int], int, dict[str, Any]]]:
    """Group the rows that one library call can answer: those with equal n, beam and candidates."""
    groups: dict[tuple[int, int | None, int | None], list[int]] = {}
    for row, query in enumerate(queries):
        groups.setdefault((query.n, query.beam, query.candidates), []).append(row)
    return [
        (rows, n, {name: value for name, value in (("beam", beam), ("candidates", candidates)) if value is not None})
        for (n, beam, candidates), rows in groups.items()
    ]
