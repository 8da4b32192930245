"""The rules of requests that types do not express: limits, and which fields go together."""

from __future__ import annotations

from typing import Any

from pathdex.server.errors import invalid
from pathdex.server.limits import ServerLimits
from pathdex.server.schemas import AddItemsRequest, EventsRequest, ExplainRequest, QueryRequest, RecommendRequest

LIMITS = {
    "n": "max_n",
    "beam": "max_beam",
    "candidates": "max_candidates",
    "history": "max_history",
    "items": "max_history",
    "allow": "max_filter",
    "deny": "max_filter",
    "queries": "max_batch",
    "events": "max_batch",
    "like": "max_history",
    "ids": "max_batch",
    "new_items": "max_batch",
}
"""The limit of each request field that is a number or a list."""
_BATCHES: dict[type, tuple[str, str]] = {
    RecommendRequest: ("queries", "put n, filters and the rest in each query"),
    EventsRequest: ("events", "put user and items in each event"),
    AddItemsRequest: ("new_items", "put id, like and attributes in each item"),
}
_WITH_HISTORY = (QueryRequest, ExplainRequest)


def check(request: Any, limits: ServerLimits) -> None:
    """Raise a `RequestError` for the first rule that a request breaks."""
    field, remedy = _BATCHES.get(type(request), ("", ""))
    batch = getattr(request, field) if field else None
    if batch is None:
        _check_one(request, limits, "")
        return
    shown = f"{len(batch)} {field}"
    if request != type(request)(**{field: batch}):
        raise invalid(field, shown, "must be the only field", remedy)
    if len(batch) > limits.max_batch:
        raise invalid(field, shown, f"must have at most {limits.max_batch}", "split them over several requests")
    for number, one in enumerate(batch):
        _check_one(one, limits, f"{field}[{number}].")
    if field == "queries":
        _check_most("queries[].n", sum(query.n for query in batch), limits.max_results)
        _check_explained("n", sum(query.n for query in batch if query.explain), limits)


def _check_one(request: Any, limits: ServerLimits, place: str) -> None:
    """Check one query or event; `place` leads to it in the body."""
    if isinstance(request, _WITH_HISTORY) and (request.history is None) == (request.user is None):
        raise invalid(f"{place}history", request.history, "exactly one of history and user is required", "send one")
    if isinstance(request, EventsRequest):
        for name in ("user", "items"):
            if getattr(request, name) is None:
                raise invalid(name, None, "is required", "send user and items, or a list of both as events")
    if isinstance(request, AddItemsRequest) and request.id is None:
        raise invalid("id", None, "is required", "send the id of an item, or a list of items as new_items")
    for name in request.__struct_fields__:
        value = getattr(request, name)
        if value is None:
            continue
        if type(value) is list:
            _check_ids(place + name, value, getattr(limits, LIMITS[name]), limits.max_id_length)
        elif type(value) is str:
            _check_id(place + name, value, limits.max_id_length)
        elif type(value) is int and name in LIMITS:
            _check_most(place + name, value, getattr(limits, LIMITS[name]))
    if getattr(request, "explain", False):
        _check_explained(f"{place}n", request.n, limits)


def _check_explained(field: str, number: int, limits: ServerLimits) -> None:
    if number > limits.max_explained:
        rule = f"must be at most {limits.max_explained} with explain"
        raise invalid(field, number, rule, "request fewer items, or no explanations")


def _check_most(field: str, value: int, limit: int) -> None:
    if value > limit:
        raise invalid(field, value, f"must be at most {limit}", "request less, or raise the server's limit")


def _check_ids(field: str, ids: list[Any], most: int, longest: int) -> None:
    if len(ids) > most:
        remedy = "send fewer, or raise the server's limit"
        raise invalid(field, f"{len(ids)} ids", f"must have at most {most}", remedy)
    for number, one in enumerate(ids):
        if type(one) is str and len(one) > longest:
            _check_id(f"{field}[{number}]", one, longest)


def _check_id(field: str, id: str, longest: int) -> None:
    if len(id) > longest:
        raise invalid(field, id, f"must have at most {longest} characters")
