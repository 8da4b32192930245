"""Why a request is refused, as an exception with a status and a body that a client can act on.

    {"error": {"type": "QueryError", "message": "n=0: must be ...", "field": "n", "value": 0, "rule": "must be ..."}}

`type` is the exception that `pathdex.Client` raises. `field`, `value` and `rule` are there where one field is to blame.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from pathdex.errors import PathdexError, QueryError
from pathdex.server.schemas import Error, Refusal

QUERY, SERVER = "QueryError", "ServerError"
SHOWN = 200
"""Characters of a wrong value that an answer repeats."""
_LIBRARY = re.compile(r"(?P<field>\w+)=(?P<value>.{0,200}?): (?P<rule>.+)", re.DOTALL)


class RequestError(Exception):
    """A request that is not answered as asked."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        kind: str = QUERY,
        field: str | None = None,
        value: Any = None,
        rule: str | None = None,
        headers: tuple[tuple[bytes, bytes], ...] = (),
    ) -> None:
        super().__init__(message)
        self.status, self.headers = status, headers
        self.error = Error(type=kind, message=message, field=field, value=preview(value), rule=rule)

    def body(self, model: str | None) -> bytes:
        return msgspec.json.encode(Refusal(error=self.error, model=model))


class DisconnectedError(Exception):
    """The client went away; there is nobody to answer."""


def wrong(field: str, value: Any, rule: str, status: int = 422) -> RequestError:
    """One field breaks its rule."""
    return RequestError(status, f"{field}={_words(value)}: {rule}", field=field, value=value, rule=rule)


def busy(message: str, status: int = 429) -> RequestError:
    """The server could answer this later."""
    return RequestError(status, message, kind=SERVER, headers=((b"retry-after", b"1"),))


def of_library(error: PathdexError) -> RequestError:
    """What the library raised. Its messages begin with `argument=value: rule` where an argument is to blame."""
    if not isinstance(error, QueryError):
        return RequestError(503, str(error), kind=SERVER)
    found = _LIBRARY.match(str(error))
    if found is None:
        return RequestError(422, str(error))
    return RequestError(422, str(error), field=found["field"], value=found["value"], rule=found["rule"])


def preview(value: Any) -> Any:
    """The value, or where it is long the beginning of how Python writes it."""
    if value is None or isinstance(value, bool | float) or (isinstance(value, str) and len(value) <= SHOWN):
        return value
    if isinstance(value, int) and value.bit_length() < 64:
        return value
    return _words(value)


def _words(value: Any) -> str:
    if isinstance(value, list):
        # Only as much of a long list is written out as is shown.
        value = value[:SHOWN]
    text = repr(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."
