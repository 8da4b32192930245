"""JSON bodies to request structs. A body that does not fit is compared with the struct field by field to name the
field, its value and the rule: msgspec reports these only as text."""

from __future__ import annotations

from types import NoneType
from typing import Annotated, Any, TypeVar, get_args, get_origin

import msgspec
from msgspec import Struct

from pathdex.errors import Problem, did_you_mean
from pathdex.server.errors import RequestError

T = TypeVar("T", bound=Struct)

_IDS = "must be a list of ids (strings or integers)"
_COUNT = "must be a whole number of at least 1"
RULES: dict[str, tuple[str, str | None]] = {
    "n": (_COUNT, "request at least one item"),
    "beam": (_COUNT, "leave it out for the model's default"),
    "candidates": (_COUNT, "leave it out for no limit"),
    "history": (f"{_IDS}, oldest first", None),
    "allow": (_IDS, "leave it out to allow all items"),
    "deny": (_IDS, None),
    "items": (f"{_IDS}, oldest first", None),
    "user": ("must be an id: a string or an integer", None),
    "item": ("must be an id: a string or an integer", None),
    "exclude_seen": ("must be true or false", None),
    "explain": ("must be true or false", None),
    "where": ('must map columns to conditions, such as {"category": ["a", "b"]}', None),
    "queries": ("must be a list of queries", None),
    "events": ('must be a list of events, such as {"user": "ada", "items": [1, 2]}', None),
}
"""The rule of each request field, and the remedy, for a value of the wrong type."""


def decode(decoder: msgspec.json.Decoder[T], body: bytes) -> T:
    """The request in a body; status 400 if it is not JSON, 422 if it does not fit the struct."""
    try:
        return decoder.decode(body)
    except msgspec.ValidationError as error:
        problem = _find_problem(_parse(body), decoder.type, "")
        # JSON may repeat a key: the struct refuses the first value, and the comparison sees only the last.
        raise RequestError(422, problem or Problem(f"the body does not fit ({error})")) from None
    except (ValueError, RecursionError):
        _parse(body)
        raise


def _parse(body: bytes) -> Any:
    try:
        return msgspec.json.decode(body)
    except RecursionError:
        problem = Problem("the body is nested too deeply", remedy="send a flat JSON object")
    except ValueError as error:  # Includes text that is not UTF-8.
        problem = Problem(f"the body is not JSON ({error})", remedy="send one JSON object")
    raise RequestError(400, problem) from None


def _find_problem(value: Any, struct: type[Struct], place: str) -> Problem | None:
    """The first field that does not fit; `place` leads to the value in the body."""
    if not isinstance(value, dict):
        return Problem("must be a JSON object", place.rstrip(".") or "body", value)
    fields = {field.encode_name: field for field in msgspec.structs.fields(struct)}
    for name in value:
        if name not in fields:
            hint = did_you_mean(name, fields)
            rule = f"is not a field of this request{hint}"
            return Problem(rule, f"{place}{name}", value[name], None if hint else "leave it out")
    for name, field in fields.items():
        if name not in value:
            if field.required:
                return Problem("is required", f"{place}{name}")
        elif not _fits(value[name], field.type):
            return _find_in_field(value[name], name, field.type, f"{place}{name}")
    return None


def _find_in_field(value: Any, name: str, kind: Any, place: str) -> Problem:
    element = _element_type(kind)
    if isinstance(value, list) and element is not None:
        for number, one in enumerate(value):
            if _fits(one, element):
                continue
            if isinstance(element, type) and issubclass(element, Struct):
                inner = _find_problem(one, element, f"{place}[{number}].")
                if inner is not None:
                    return inner
            value, kind, place = one, element, f"{place}[{number}]"
            break
    if type(value) is int and _fits(str(value), kind):
        return Problem("must fit in 64 bits", place, value, "send it as a string")
    rule, remedy = RULES[name]
    return Problem(rule, place, value, remedy)


def _fits(value: Any, kind: Any) -> bool:
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError:
        return False
    return True


def _element_type(kind: Any) -> Any:
    """X of `list[X]`, `list[X] | None` and their annotated forms; None for other types."""
    if get_origin(kind) is Annotated:
        return _element_type(get_args(kind)[0])
    if get_origin(kind) is list:
        return get_args(kind)[0]
    inner = [_element_type(one) for one in get_args(kind) if one is not NoneType]
    return next((one for one in inner if one is not None), None)
