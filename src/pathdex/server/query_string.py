"""Parameters in the URL to structs. Strict: unknown and repeated parameters are errors, numbers have plain digits."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, TypeVar, get_args, get_origin, get_type_hints
from urllib.parse import parse_qsl

import msgspec
from msgspec import Struct

from pathdex.errors import Problem, did_you_mean
from pathdex.server.errors import RequestError, invalid

T = TypeVar("T")

MAX_PARAMETERS = 20
_WHOLE = re.compile(r"0|-?[1-9][0-9]{0,17}")


def decode_query(kind: type[T], query_string: bytes, given: Mapping[str, str]) -> T:
    """The struct of the parameters after `?` and of those `given` by the path; status 422 if one does not fit."""
    values: dict[str, Any] = dict(given)
    assert issubclass(kind, Struct)
    fields = {field.encode_name: field for field in msgspec.structs.fields(kind)}
    for name, text in _pairs(query_string):
        if name not in fields:
            hint = did_you_mean(name, fields)
            raise invalid(name, text, f"is not a parameter of this request{hint}", None if hint else "leave it out")
        if name in values:
            raise invalid(name, text, "is given twice", "send it once")
        values[name] = text
    for name, text in values.items():
        if _is_whole(fields[name].type):
            if not _WHOLE.fullmatch(text):
                raise invalid(name, text, "must be a whole number", "write it with digits only")
            values[name] = int(text)
    for name, field in fields.items():
        if name not in values:
            if field.required:
                raise invalid(name, None, "is required", f"send it as ?{name}=")
            continue
        try:
            msgspec.convert(values[name], get_type_hints(kind, include_extras=True)[field.name])
        except msgspec.ValidationError as error:
            rule = str(error).partition(" - at `")[0]
            raise invalid(name, values[name], f"does not fit: {rule}", "see /docs") from None
    return msgspec.convert(values, kind)


def _pairs(query_string: bytes) -> list[tuple[str, str]]:
    try:
        return parse_qsl(
            query_string.decode("ascii"),
            keep_blank_values=True,
            strict_parsing=bool(query_string),
            errors="strict",
            max_num_fields=MAX_PARAMETERS,
        )
    except ValueError as error:  # Includes text that is not UTF-8.
        problem = Problem(f"the parameters of the URL cannot be read ({error})", remedy="write them as name=value")
        raise RequestError(422, problem) from None


def _is_whole(kind: Any) -> bool:
    return kind is int or (get_origin(kind) is not None and any(map(_is_whole, get_args(kind))))
