"""The rules of requests that types do not express: limits, and which fields go together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pathdex.data.vocabulary import Id
from pathdex.server.errors import invalid
from pathdex.server.limits import ServerLimits
from pathdex.server.schemas import (
    EventsRequest,
    ExplainRequest,
    QueryRequest,
    RecommendRequest,
    SimilarRequest,
    UserEvents,
    WhyNotRequest,
)

LOWEST, HIGHEST = -(2**63), 2**63 - 1
_RAISE = "or raise the server's limit"


def check_recommend(request: RecommendRequest, limits: ServerLimits) -> None:
    """Check one query, or every query of a batch."""
    queries = request.queries
    if queries is None:
        check_query(request, limits)
        return
    if request != RecommendRequest(queries=queries):
        raise invalid(
            "queries", f"{len(queries)} queries", "must be the only field", "put n, filters and the rest in each query"
        )
    _check_batch("queries", queries, limits)
    for number, query in enumerate(queries):
        check_query(query, limits, f"queries[{number}].")
    _check_most("queries[].n", sum(query.n for query in queries), limits.max_results)
    _check_explained(sum(query.n for query in queries if query.explain), limits)


def check_similar(request: SimilarRequest, limits: ServerLimits) -> None:
    _check_id("item", request.item, limits)
    _check_most("n", request.n, limits.max_n)


def check_explain(request: ExplainRequest, limits: ServerLimits) -> None:
    _check_id("item", request.item, limits)
    _check_subject(request, limits, "")
    if request.beam is not None:
        _check_most("beam", request.beam, limits.max_beam)


def check_why_not(request: WhyNotRequest, limits: ServerLimits) -> None:
    check_explain(request, limits)
    _check_most("n", request.n, limits.max_n)


def check_events(request: EventsRequest, limits: ServerLimits) -> None:
    """Check the events of one user, or of every user of a batch."""
    if request.events is None:
        for name in ("user", "items"):
            if getattr(request, name) is None:
                raise invalid(name, None, "is required", "send user and items, or a list of both as events")
        _check_user_events(request, limits, "")
        return
    if request.user is not None or request.items is not None:
        raise invalid(
            "events", f"{len(request.events)} events", "must be the only field", "put user and items in each event"
        )
    _check_batch("events", request.events, limits)
    for number, event in enumerate(request.events):
        _check_user_events(event, limits, f"events[{number}].")


def check_query(query: QueryRequest, limits: ServerLimits, place: str = "") -> None:
    """Check one query; `place` leads to it in the request."""
    _check_subject(query, limits, place)
    _check_most(f"{place}n", query.n, limits.max_n)
    if query.beam is not None:
        _check_most(f"{place}beam", query.beam, limits.max_beam)
    if query.candidates is not None:
        _check_most(f"{place}candidates", query.candidates, limits.max_candidates)
    if query.allow is not None:
        _check_ids(f"{place}allow", query.allow, limits.max_filter, limits)
    if query.deny:
        _check_ids(f"{place}deny", query.deny, limits.max_filter, limits)
    if query.explain:
        _check_explained(query.n, limits, place)


def _check_user_events(event: UserEvents | EventsRequest, limits: ServerLimits, place: str) -> None:
    assert event.user is not None
    assert event.items is not None
    _check_id(f"{place}user", event.user, limits)
    _check_ids(f"{place}items", event.items, limits.max_history, limits)


def _check_subject(request: QueryRequest | ExplainRequest, limits: ServerLimits, place: str) -> None:
    if (request.history is None) == (request.user is None):
        raise invalid(f"{place}history", request.history, "exactly one of history and user is required", "send one")
    if request.history is not None:
        _check_ids(f"{place}history", request.history, limits.max_history, limits)
    elif request.user is not None:
        _check_id(f"{place}user", request.user, limits)


def _check_batch(field: str, batch: Sequence[Any], limits: ServerLimits) -> None:
    if len(batch) > limits.max_batch:
        shown = f"{len(batch)} {field}"
        raise invalid(field, shown, f"must have at most {limits.max_batch}", "split them over several requests")


def _check_explained(number: int, limits: ServerLimits, place: str = "") -> None:
    if number > limits.max_explained:
        rule = f"must be at most {limits.max_explained} with explain"
        raise invalid(f"{place}n", number, rule, "request fewer items, or no explanations")


def _check_most(field: str, value: int, limit: int) -> None:
    if value > limit:
        raise invalid(field, value, f"must be at most {limit}", f"request less, {_RAISE}")


def _check_ids(field: str, ids: list[Id], limit: int, limits: ServerLimits) -> None:
    if len(ids) > limit:
        raise invalid(field, f"{len(ids)} ids", f"must have at most {limit}", f"send fewer, {_RAISE}")
    # Only a list that breaks a rule is searched for the id to blame.
    text = [one for one in ids if type(one) is str]
    numbers = ids if not text else [one for one in ids if type(one) is int]
    if text and len(max(text, key=len)) > limits.max_id_length:
        _find_invalid_id(field, ids, limits)
    if numbers and not (min(numbers) >= LOWEST and max(numbers) <= HIGHEST):  # type: ignore[operator]
        _find_invalid_id(field, ids, limits)


def _find_invalid_id(field: str, ids: list[Id], limits: ServerLimits) -> None:
    for place, one in enumerate(ids):
        _check_id(f"{field}[{place}]", one, limits)


def _check_id(field: str, one: Id, limits: ServerLimits) -> None:
    if isinstance(one, str):
        if len(one) > limits.max_id_length:
            raise invalid(field, one, f"must have at most {limits.max_id_length} characters")
    elif not LOWEST <= one <= HIGHEST:
        raise invalid(field, one, "must fit in 64 bits", "send it as a string")
