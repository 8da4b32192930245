"""Bytes to a request that keeps the rules, or a `RequestError` that names the field, its value and the rule."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, TypeVar

import msgspec

from pathdex.data.vocabulary import Id
from pathdex.server.errors import RequestError, wrong
from pathdex.server.limits import Limits
from pathdex.server.schemas import (
    RULES,
    Event,
    ExplainRequest,
    Query,
    RecommendRequest,
    SimilarRequest,
    WhyNotRequest,
    events_decoder,
    explain_decoder,
    recommend_decoder,
    similar_decoder,
    why_not_decoder,
)

T = TypeVar("T")

LOWEST, HIGHEST = -(2**63), 2**63 - 1
_PLACE = re.compile(r"^(?P<text>.*?)(?: - at `\$\.?(?P<field>[^`]*)`)?$", re.DOTALL)
_UNKNOWN = re.compile(r"Object contains unknown field `(?P<name>.*)`", re.DOTALL)
_MISSING = re.compile(r"Object missing required field `(?P<name>.*)`", re.DOTALL)


def decode(decoder: msgspec.json.Decoder[T], body: bytes) -> T:
    """The request in a body; status 400 for what is no JSON, 422 for JSON of another form."""
    try:
        return decoder.decode(body)
    except msgspec.ValidationError as error:
        raise _misfit(str(error), body) from None
    except RecursionError:
        raise RequestError(400, "the body is nested too deeply; send a plain object") from None
    except ValueError as error:
        # Also text that is not UTF-8.
        raise RequestError(400, f"the body is not JSON: {error}; send one JSON object") from None


def read_queries(body: bytes, limits: Limits) -> tuple[list[Query], bool]:
    """The queries of a request, and whether they came as many."""
    request = decode(recommend_decoder, body)
    if request.queries is None:
        check_query(request, limits)
        return [request], False
    if request != RecommendRequest(queries=request.queries):
        raise RequestError(
            422,
            "queries: must stand alone; put n, filters and all other fields into each query",
            field="queries",
            rule="must stand alone; put n, filters and all other fields into each query",
        )
    _check_batch("queries", request.queries, limits)
    for number, query in enumerate(request.queries):
        check_query(query, limits, f"queries[{number}].")
    _check_most("queries[].n", sum(query.n for query in request.queries), limits.max_results)
    _check_explained(sum(query.n for query in request.queries if query.explain), limits)
    return request.queries, True


def read_similar(body: bytes, limits: Limits) -> SimilarRequest:
    request = decode(similar_decoder, body)
    _check_id("item", request.item, limits)
    _check_most("n", request.n, limits.max_n)
    return request


def read_explain(body: bytes, limits: Limits) -> ExplainRequest:
    request = decode(explain_decoder, body)
    _check_explain(request, limits)
    return request


def read_why_not(body: bytes, limits: Limits) -> WhyNotRequest:
    request = decode(why_not_decoder, body)
    _check_explain(request, limits)
    _check_most("n", request.n, limits.max_n)
    return request


def read_events(body: bytes, limits: Limits) -> list[Event]:
    """What each user took, in the order of the request."""
    request = decode(events_decoder, body)
    if request.events is None:
        if request.user is None or request.items is None:
            missing = "user" if request.user is None else "items"
            raise wrong(missing, None, "must be given: send user and items, or a list of both as events")
        events = [Event(request.user, request.items)]
        _check_event(events[0], limits, "")
        return events
    if request.user is not None or request.items is not None:
        raise wrong("events", "...", "must stand alone; put user and items into each event")
    _check_batch("events", request.events, limits)
    for number, event in enumerate(request.events):
        _check_event(event, limits, f"events[{number}].")
    return request.events


def check_query(query: Query, limits: Limits, place: str = "") -> None:
    """Raise for a query that is out of bounds; `place` leads to it in the request."""
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


def _check_explain(request: ExplainRequest, limits: Limits) -> None:
    _check_id("item", request.item, limits)
    _check_subject(request, limits, "")
    if request.beam is not None:
        _check_most("beam", request.beam, limits.max_beam)


def _check_event(event: Event, limits: Limits, place: str) -> None:
    _check_id(f"{place}user", event.user, limits)
    _check_ids(f"{place}items", event.items, limits.max_history, limits)


def _check_subject(request: Query | ExplainRequest, limits: Limits, place: str) -> None:
    if (request.history is None) == (request.user is None):
        raise wrong(
            f"{place}history", request.history, "exactly one of history and user must be given; send one of them"
        )
    if request.history is not None:
        _check_ids(f"{place}history", request.history, limits.max_history, limits)
    elif request.user is not None:
        _check_id(f"{place}user", request.user, limits)


def _check_batch(field: str, batch: Sequence[Any], limits: Limits) -> None:
    if len(batch) > limits.max_batch:
        raise wrong(field, f"{len(batch)} of them", f"must be at most {limits.max_batch}; send them in parts")


def _check_explained(number: int, limits: Limits, place: str = "") -> None:
    if number > limits.max_explained:
        rule = f"must be at most {limits.max_explained} with explain; ask for fewer items or no explanations"
        raise wrong(f"{place}n", number, rule)


def _check_most(field: str, value: int, most: int) -> None:
    if value > most:
        raise wrong(field, value, f"must be at most {most}; ask for less, or have the server's limit raised")


def _check_ids(field: str, ids: list[Id], most: int, limits: Limits) -> None:
    if len(ids) > most:
        rule = f"must be at most {most}; send fewer, or have the server's limit raised"
        raise wrong(field, f"{len(ids)} ids", rule)
    # Most lists are right, which is seen at a glance; only a wrong one is searched.
    text = [one for one in ids if type(one) is str]
    numbers = ids if not text else [one for one in ids if type(one) is int]
    if text and len(max(text, key=len)) > limits.max_id_length:
        _find_wrong_id(field, ids, limits)
    if numbers and not (min(numbers) >= LOWEST and max(numbers) <= HIGHEST):  # type: ignore[operator]
        _find_wrong_id(field, ids, limits)


def _find_wrong_id(field: str, ids: list[Id], limits: Limits) -> None:
    for place, one in enumerate(ids):
        _check_id(f"{field}[{place}]", one, limits)


def _check_id(field: str, one: Id, limits: Limits) -> None:
    if isinstance(one, str):
        if len(one) > limits.max_id_length:
            raise wrong(field, one, f"must have at most {limits.max_id_length} characters")
    elif not LOWEST <= one <= HIGHEST:
        raise wrong(field, one, "must fit in 64 bits; send it as text")


def _misfit(text: str, body: bytes) -> RequestError:
    """JSON of the wrong form, in the words of `RULES`."""
    found = _PLACE.match(text)
    field = (found["field"] or "") if found else ""
    text = found["text"] if found else text
    for pattern, rule in ((_UNKNOWN, "is not a field of this request; leave it out"), (_MISSING, "must be given")):
        if named := pattern.match(text):
            whole = f"{field}.{named['name']}" if field else named["name"]
            return RequestError(422, f"{whole}: {rule}", field=whole, rule=rule)
    if not field:
        return RequestError(422, f"the body is no JSON object ({text}); send one JSON object")
    name = re.split(r"[.\[]", field.rpartition(".")[2])[0]
    rule = RULES.get(name, text)
    return wrong(field, _value_at(body, field), rule)


def _value_at(body: bytes, field: str) -> Any:
    """What stands at `queries[3].n`; None where it cannot be shown."""
    try:
        value = msgspec.json.decode(body)
        for step in re.findall(r"[^.\[\]]+", field):
            value = value[int(step)] if isinstance(value, list) else value[step]
    except (ValueError, KeyError, IndexError, TypeError, RecursionError):
        return None
    return value
