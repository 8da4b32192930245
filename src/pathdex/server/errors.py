"""Errors of the HTTP API: an exception with a status, written as a body that a client can act on.

    {"error": {"type": "QueryError", "message": "n=0: must be ...; request ...", "field": "n", "value": 0,
               "rule": "must be ...", "remedy": "request ..."}, "model": "34031d112ca9"}

`type` is the exception that `pathdex.Client` raises. `field` and `value` are set if one field is to blame. All fields
come from a `Problem`; `message` is its text.
"""

from __future__ import annotations

import errno
import logging
from typing import Any

import msgspec

from pathdex.errors import PathdexError, Problem, QueryError, preview
from pathdex.server.schemas import ErrorDetail, ErrorResponse

log = logging.getLogger("pathdex.server")

QUERY, SERVER = "QueryError", "ServerError"
_SHOWN = 200
"""Characters of a wrong value that an error repeats."""


class RequestError(Exception):
    """A request that cannot be answered."""

    def __init__(
        self, status: int, problem: Problem, *, type: str = QUERY, headers: tuple[tuple[bytes, bytes], ...] = ()
    ) -> None:
        super().__init__(str(problem))
        self.status, self.problem, self.type, self.headers = status, problem, type, headers

    def body(self, version: str | None = None) -> bytes:
        """The JSON body of the error response."""
        return msgspec.json.encode(ErrorResponse(error=detail_of(self), model=version))


def detail_of(error: RequestError) -> ErrorDetail:
    """The error as JSON holds it."""
    problem = error.problem
    shown = json_value(problem.value)
    return ErrorDetail(error.type, str(problem), problem.argument, shown, problem.rule, problem.remedy)


def error_of(detail: ErrorDetail, status: int) -> RequestError:
    """The inverse of `detail_of`."""
    problem = Problem(detail.rule or detail.message, detail.field, detail.value, detail.remedy)
    return RequestError(status, problem, type=detail.type)


class DisconnectedError(Exception):
    """The client closed the connection before it was answered."""


def invalid(field: str, value: Any, rule: str, remedy: str | None = None, status: int = 422) -> RequestError:
    """One field breaks its rule."""
    return RequestError(status, Problem(rule, field, value, remedy))


def unavailable(rule: str, remedy: str | None = None, status: int = 503) -> RequestError:
    """The server may be able to answer this request later."""
    return RequestError(status, Problem(rule, remedy=remedy), type=SERVER, headers=((b"retry-after", b"1"),))


def from_library(error: PathdexError) -> RequestError:
    """The HTTP error for an exception of the library: 422 for a `QueryError`, 503 for all others."""
    if isinstance(error, QueryError):
        return RequestError(422, error.problem)
    # The message may name a file of the server.
    log.error("a request failed: %s", error)
    return unavailable("the server cannot answer this request now", "see its log")


def is_full(error: BaseException | None) -> bool:
    """Whether an error comes from a full disk."""
    while error is not None:
        full = getattr(error, "sqlite_errorname", None) == "SQLITE_FULL" or "disk is full" in str(error)
        if full or (isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)):
            return True
        error = error.__cause__
    return False


def json_value(value: Any) -> Any:
    """The value if it is short and JSON can hold it, or else the start of its `repr`."""
    if value is None or isinstance(value, bool | float):
        return value
    if isinstance(value, int):
        return value if value.bit_length() < 64 else preview(value)
    if isinstance(value, str):
        return value if len(value) <= _SHOWN else preview(value)
    text = preview(value)
    if len(text) > _SHOWN:
        return text
    try:
        return msgspec.to_builtins(value, str_keys=True)
    except (TypeError, ValueError):
        return text
