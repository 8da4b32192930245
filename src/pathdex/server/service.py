"""Requests to answers, with the library and without HTTP. Everything here may run in any thread."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import Any

from pathdex.data.vocabulary import UNKNOWN, Id
from pathdex.recommenders.base import Query as LibraryQuery
from pathdex.recommenders.base import Recommender
from pathdex.recommenders.capabilities import CanExplain, HasIndex, require
from pathdex.retrieval.explain import Explanation
from pathdex.server.errors import wrong
from pathdex.server.model_loader import ServedModel
from pathdex.server.schemas import (
    ExplainRequest,
    Item,
    ItemFacts,
    ModelFacts,
    PathFacts,
    Query,
    Result,
    SimilarRequest,
    WhyNotRequest,
)

INLINE_N = 100
"""A query that asks for more items than this, or denies more, goes to a thread."""


def is_small(query: Query) -> bool:
    """Whether a query costs about what the query cost that was tried when the model was opened."""
    return (
        query.n <= INLINE_N
        and query.beam is None
        and query.candidates is None
        and query.allow is None
        and len(query.deny) <= INLINE_N
        and query.where is None
        and not query.explain
    )


def recommend(served: ServedModel, queries: Sequence[Query], histories: Sequence[list[Id]]) -> list[Result]:
    """The answer to each query; `histories` stand beside the queries, from the request or from the user store."""
    model = served.recommender
    known, unknown = [], []
    for number, (query, history) in enumerate(zip(queries, histories, strict=True)):
        kept = known_items(model, history, number, lenient=query.user is not None)
        known.append(kept)
        unknown.append(len(history) - len(kept))
    found: list[list[Item]] = [[] for _ in queries]
    for rows, n, options in _groups(queries):
        asked = [
            LibraryQuery(
                known[row], queries[row].exclude_seen, queries[row].deny, queries[row].allow, queries[row].where
            )
            for row in rows
        ]
        for row, answer in zip(rows, model.recommend_batch(asked, n, **options), strict=True):
            found[row] = [Item(id, score) for id, score in answer]
    for query, history, items in zip(queries, known, found, strict=True):
        if query.explain:
            explainer = require(model, CanExplain)
            for item in items:
                item.explanation = explainer.explain(history, item.id, beam=query.beam)
    return [Result(items, missing) for items, missing in zip(found, unknown, strict=True)]


def known_items(model: Recommender, history: list[Id], number: int = 0, *, lenient: bool = False) -> list[Id]:
    """The items of a history that the catalogue holds.

    A history of unknown items only is the library's error about history `number`; a `lenient` one becomes empty, since
    a client that sends a user id cannot help what the user store holds.
    """
    codes = model.items.codes(history)
    missing = codes == UNKNOWN
    if not missing.any():
        return history
    if missing.all() and not lenient:
        model.encode_histories([*([[]] * number), history])
    return [one for one, gone in zip(history, missing.tolist(), strict=True) if not gone]


def similar(served: ServedModel, request: SimilarRequest) -> list[Item]:
    return [Item(id, score) for id, score in served.recommender.similar_items(request.item, request.n)]


def explain(served: ServedModel, request: ExplainRequest, history: list[Id]) -> Explanation:
    model = require(served.recommender, CanExplain)
    known = known_items(model, history, lenient=request.user is not None)
    return model.explain(known, request.item, beam=request.beam)


def why_not(served: ServedModel, request: WhyNotRequest, history: list[Id]) -> Any:
    model = require(served.recommender, CanExplain)
    known = known_items(model, history, lenient=request.user is not None)
    return model.why_not(known, request.item, n=request.n, beam=request.beam, exclude_seen=request.exclude_seen)


def item_facts(served: ServedModel, text: str) -> ItemFacts:
    """An item by its id as text; status 404 where there is none."""
    model = served.recommender
    code = model.items.code(text)
    if code == UNKNOWN:
        raise wrong("id", text, f"is not in the catalogue of {len(model.items):,} items; ask for a known id", 404)
    item = model.items.id(code)
    paths = [list(path) for path in model.item_paths(item)] if isinstance(model, HasIndex) else None
    return ItemFacts(served.version, item, paths)


def path_facts(served: ServedModel, text: str) -> PathFacts:
    """The items on a path that is written as 3-17-5."""
    model = require(served.recommender, HasIndex)
    parts = text.split("-")
    if not all(part.isascii() and part.isdecimal() and len(part) < 10 for part in parts):
        raise wrong("path", text, "must be nodes joined by hyphens, one per layer, such as 3-17-5")
    path = [int(part) for part in parts]
    return PathFacts(served.version, path, model.path_items(path))


def model_facts(served: ServedModel) -> ModelFacts:
    model = served.recommender
    return ModelFacts(
        model=served.version,
        estimator=model.name,
        items=len(model.items),
        ids=model.items.kind,
        history_length=model.history_length,
        loaded=datetime.datetime.fromtimestamp(served.loaded, datetime.timezone.utc).isoformat(timespec="seconds"),
        attributes=list(served.columns),
        config=model.get_params(),
        health=model.health().to_dict() if isinstance(model, HasIndex) else None,
    )


def _groups(queries: Sequence[Query]) -> list[tuple[list[int], int, dict[str, Any]]]:
    """The queries that one call of the library can answer: rows of equal n, beam and candidates."""
    groups: dict[tuple[int, int | None, int | None], list[int]] = {}
    for row, query in enumerate(queries):
        groups.setdefault((query.n, query.beam, query.candidates), []).append(row)
    return [
        (rows, n, {name: value for name, value in (("beam", beam), ("candidates", candidates)) if value is not None})
        for (n, beam, candidates), rows in groups.items()
    ]
