"""JSON bodies to request structs. A body that does not fit is compared with the struct field by field to name the
field, its value and the rule: msgspec reports these only as text."""

from __future__ import annotations

import json
import threading
from types import NoneType
from typing import Annotated, Any, TypeVar, get_args, get_origin

import msgspec
from msgspec import Struct

from pathdex.data.item_changes import MAX_LIKE
from pathdex.errors import Problem, did_you_mean
from pathdex.server.errors import RequestError

T = TypeVar("T", bound=Struct)
AnyT = TypeVar("AnyT")

_ID = "must be an id: a string or an integer"
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
    "user": (_ID, None),
    "item": (_ID, None),
    "exclude_seen": ("must be true or false", None),
    "explain": ("must be true or false", None),
    "where": ('must map columns to conditions, such as {"category": ["a", "b"]}', None),
    "queries": ("must be a list of queries", None),
    "time": ("must be seconds since 1970, before the year 2106", "leave it out for the server's time"),
    "id": (_ID, None),
    "ids": (_IDS, None),
    "like": (f"{_IDS}, at most {MAX_LIKE}", "leave it out if no item is similar"),
    "attributes": ('must map columns to text, numbers, booleans or lists of these, such as {"genre": "drama"}', None),
    "new_items": ('must be a list of items, such as {"id": 1210, "attributes": {"genre": "drama"}}', None),
    "events": ('must be a list of events, such as {"user": "ada", "items": [1, 2]}', None),
}
"""The rule of each request field, and the remedy, for a value of the wrong type."""
_FRACTIONS = ("where", "time", "attributes")
_MAKING = threading.Lock()
"""Held while a decoder is made."""


def make_decoder(kind: type[AnyT]) -> msgspec.json.Decoder[AnyT]:
    """A decoder for bodies of this type. May be called from several threads.

    msgspec 0.22 crashes if one thread decodes a struct whose fields another one is looking up for the first time.
    """
    with _MAKING:
        return msgspec.json.Decoder(kind)


def decode(decoder: msgspec.json.Decoder[T], body: bytes) -> T:
    """The request in a body; status 400 if it is not JSON, 422 if it does not fit the struct."""
    try:
        return decoder.decode(body)
    except msgspec.ValidationError as error:
        parsed = _parse(body)
        whole = _whole_numbers(parsed)
        problem = _find_problem(whole, decoder.type, "")
        if problem is None and repr(whole) != repr(parsed):
            return msgspec.convert(whole, decoder.type)
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
        problem = _unreadable(body, error)
    raise RequestError(400, problem) from None


def _unreadable(body: bytes, error: ValueError) -> Problem:
    """Why msgspec does not read a body. It takes broken text and numbers without bounds for broken JSON."""
    try:
        json.dumps(json.loads(body.decode(), parse_constant=_refuse), ensure_ascii=False).encode()
    except UnicodeDecodeError as found:
        return Problem(f"the body is not UTF-8 text (byte {found.start})", remedy="send one JSON object")
    except UnicodeEncodeError as found:
        half = f"\\u{ord(found.object[found.start]):x}"
        return Problem(f"the body has text that is not Unicode: {half} is half a character", remedy="send both halves")
    except (ValueError, RecursionError):
        return Problem(f"the body is not JSON ({error})", remedy="send one JSON object")
    return Problem(f"the body cannot be read ({error})", remedy="send smaller numbers")


def _refuse(constant: str) -> None:
    """JSON has no NaN and no infinity."""
    raise ValueError(constant)


def _whole_numbers(value: Any) -> Any:
    """The value with 43233.0 as 43233, as JSON Schema has it, except in fields where fractions are meant.

    From 2^53 on a float may stand for another number than the one that was written, so it stays one.
    """
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) < 2**53 else value
    if isinstance(value, list):
        return [_whole_numbers(one) for one in value]
    if isinstance(value, dict):
        return {name: one if name in _FRACTIONS else _whole_numbers(one) for name, one in value.items()}
    return value


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
    rule, remedy = RULES[name]
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
            rule, remedy = _ID, None
            break
    if type(value) is int and _fits(str(value), kind):
        return Problem("must fit in 64 bits", place, value, "send it as a string")
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
