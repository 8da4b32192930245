"""The values of a record of a stream: ids, times and weights, each accepted or refused with a reason."""

from __future__ import annotations

import math
import operator
from datetime import date, datetime, timezone
from typing import Any

from pathdex.data.vocabulary import Id
from pathdex.errors import preview

MAX_ID_LENGTH = 256
"""Characters of an id, as in the server's default limits."""
MAX_SECONDS = 2.0**32
"""Later times are mistakes, most often milliseconds."""
_INT64_LOW, _INT64_HIGH = -(2**63), 2**63 - 1


class BrokenRuleError(ValueError):
    """A value breaks its rule."""


def parse_id(role: str, value: Any, text: bool = False) -> Id:
    """An id. With `text`, one that prints as an integer is an integer."""
    if isinstance(value, str):
        return _text_id(role, value, text)
    if isinstance(value, bool):
        raise BrokenRuleError(f"{role} must be text or a whole number, not {value}")
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    try:
        number = operator.index(value)
    except TypeError:
        raise BrokenRuleError(f"{role} must be text or a whole number, not {preview(value)}") from None
    if not _INT64_LOW <= number <= _INT64_HIGH:
        raise BrokenRuleError(f"{role} is past 2^63; write such ids as text")
    return number


def _text_id(role: str, value: str, text: bool) -> Id:
    if not value:
        raise BrokenRuleError(f"{role} is empty")
    if len(value) > MAX_ID_LENGTH:
        raise BrokenRuleError(f"{role} has {len(value):,} characters; at most {MAX_ID_LENGTH} are allowed")
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise BrokenRuleError(f"{role} is not valid Unicode text") from None
    elif text and len(value) <= 20 and value.lstrip("-").isdigit():
        number = int(value) if value.count("-") <= 1 else None
        if number is not None and str(number) == value and _INT64_LOW <= number <= _INT64_HIGH:
            return number
    return value


def parse_time(value: Any) -> float | None:
    """Seconds from a number, a date or ISO 8601 text; without a zone it is UTC."""
    if value is None or value == "":
        return None
    if isinstance(value, str):
        number = _number(value)
        if number is None:
            try:
                value = datetime.fromisoformat(value[:-1] + "+00:00" if value.endswith(("Z", "z")) else value)
            except ValueError:
                raise BrokenRuleError(f"time must be seconds since 1970 or ISO 8601, not {preview(value)}") from None
        else:
            value = number
    if isinstance(value, datetime):
        value = (value if value.tzinfo else value.replace(tzinfo=timezone.utc)).timestamp()
    elif isinstance(value, date):
        value = datetime(value.year, value.month, value.day, tzinfo=timezone.utc).timestamp()
    seconds = _number(value)
    if seconds is None or not math.isfinite(seconds):
        raise BrokenRuleError(f"time must be seconds since 1970 or ISO 8601, not {preview(value)}")
    if abs(seconds) >= MAX_SECONDS:
        # One such event would make all others look old.
        raise BrokenRuleError(f"time must be seconds since 1970, before the year 2106, not {preview(value)}")
    return seconds


def parse_weight(value: Any) -> float:
    """A number of at least 0; 1 if there is none."""
    if value is None or value == "":
        return 1.0
    weight = _number(value)
    if weight is None or not 0 <= weight < math.inf:
        raise BrokenRuleError(f"weight must be a number of at least 0, not {preview(value)}")
    return weight


def _number(value: Any) -> float | None:
    if isinstance(value, bool):
        return None
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return None
