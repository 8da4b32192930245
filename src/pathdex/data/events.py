"""Events of a stream: one user, one item, an optional time and weight, checked value by value."""

from __future__ import annotations

import json
import math
import operator
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, timezone
from typing import Any, NamedTuple, TypeAlias

from pathdex.data.columns import guess_column
from pathdex.data.vocabulary import Id
from pathdex.errors import ConfigError, Problem, preview

MAX_ID_LENGTH = 256
"""Characters of an id, as in the server's default limits."""
MAX_EVENT_BYTES = 1 << 20
"""Bytes of one event in JSON or CSV; longer ones are malformed, which bounds memory."""
MAX_SECONDS = 2.0**32
"""Later times are mistakes, most often milliseconds."""
CACHED_LAYOUTS = 1000
"""Distinct sets of keys whose roles are remembered."""
_INT64_LOW, _INT64_HIGH = -(2**63), 2**63 - 1

Position: TypeAlias = dict[str, Any]
"""JSON that only its source understands: what has been read so far. `source` names the kind of source."""


class Event(NamedTuple):
    """A user chose an item."""

    user: Id
    item: Id
    time: float | None = None
    """Seconds since 1970 (UTC)."""
    weight: float = 1.0


@dataclass(frozen=True)
class EventBatch:
    """Events in the order of their source, and the position after the last of them."""

    events: list[Event]
    position: Position
    malformed: int = 0
    """Malformed events among those read; they are not in `events`."""
    lost: int = 0
    """Events that the broker dropped before they were read, as far as it can tell."""


@dataclass(frozen=True)
class Malformed:
    """Why something is not an event, as a sentence."""

    reason: str


class EventParser:
    """Turns JSON and mappings into events. Keys are found by common names, as in `pathdex.read`, unless named."""

    def __init__(
        self, *, user: str | None = None, item: str | None = None, time: str | None = None, weight: str | None = None
    ) -> None:
        self.named = {"user": user, "item": item, "time": time, "weight": weight}
        given = [name for name in self.named.values() if name is not None]
        if len(set(given)) < len(given):
            shown = ", ".join(f"{role}={name!r}" for role, name in self.named.items() if name is not None)
            raise ConfigError([Problem(f"one key is named for two roles ({shown})", remedy="name one for each")])
        self._layouts: dict[tuple[str, ...], dict[str, str | None]] = {}

    def parse_json(self, raw: bytes | str) -> Event | Malformed:
        """The event in one JSON object."""
        if len(raw) > MAX_EVENT_BYTES:
            return too_long(len(raw))
        try:
            record = json.loads(raw if isinstance(raw, str) else str(raw, "utf-8"))
        except UnicodeDecodeError as error:
            return Malformed(f"it is not UTF-8 text (byte {error.start})")
        except json.JSONDecodeError as error:
            return Malformed(f"it is not JSON ({error.msg} at character {error.pos})")
        except (ValueError, RecursionError) as error:
            return Malformed(f"it is not JSON ({error})")
        if not isinstance(record, dict):
            return Malformed(f"it must be a JSON object, not {preview(record)}")
        return self.parse(record)

    def parse(self, record: Mapping[str, Any], *, text: bool = False) -> Event | Malformed:
        """The event in a mapping. With `text`, all values are text, and ids that print as integers are integers."""
        roles = self._roles(tuple(record))
        try:
            user = _id("user", _required("user", record, roles), text)
            item = _id("item", _required("item", record, roles), text)
            when, much = roles["time"], roles["weight"]
            time = None if when is None else _time(record.get(when))
            weight = 1.0 if much is None else _weight(record.get(much))
        except _BrokenRuleError as error:
            return Malformed(str(error))
        return Event(user, item, time, weight)

    def _roles(self, keys: tuple[str, ...]) -> dict[str, str | None]:
        roles = self._layouts.get(keys)
        if roles is None:
            if len(self._layouts) >= CACHED_LAYOUTS:
                self._layouts.clear()
            free = [key for key in keys if isinstance(key, str) and key not in self.named.values()]
            roles = {role: guess_column(role, free) if name is None else name for role, name in self.named.items()}
            self._layouts[keys] = roles
        return roles


def too_long(size: int) -> Malformed:
    return Malformed(f"it has {size:,} bytes; at most {MAX_EVENT_BYTES:,} are allowed")


class _BrokenRuleError(ValueError):
    """A value breaks its rule."""


def _required(role: str, record: Mapping[str, Any], roles: Mapping[str, str | None]) -> Any:
    name = roles[role]
    if name is None:
        raise _BrokenRuleError(
            f"no {role} was found among its keys: {preview(list(record))}; name the key with {role}="
        )
    value = record.get(name)
    if value is None:
        raise _BrokenRuleError(f"{role}: {name!r} is missing or null")
    return value


def _id(role: str, value: Any, text: bool) -> Id:
    if isinstance(value, str):
        return _text_id(role, value, text)
    if isinstance(value, bool):
        raise _BrokenRuleError(f"{role} must be text or a whole number, not {value}")
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    try:
        number = operator.index(value)
    except TypeError:
        raise _BrokenRuleError(f"{role} must be text or a whole number, not {preview(value)}") from None
    if not _INT64_LOW <= number <= _INT64_HIGH:
        raise _BrokenRuleError(f"{role} is past 2^63; write such ids as text")
    return number


def _text_id(role: str, value: str, text: bool) -> Id:
    if not value:
        raise _BrokenRuleError(f"{role} is empty")
    if len(value) > MAX_ID_LENGTH:
        raise _BrokenRuleError(f"{role} has {len(value):,} characters; at most {MAX_ID_LENGTH} are allowed")
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise _BrokenRuleError(f"{role} is not valid Unicode text") from None
    elif text and len(value) <= 20 and value.lstrip("-").isdigit():
        number = int(value) if value.count("-") <= 1 else None
        if number is not None and str(number) == value and _INT64_LOW <= number <= _INT64_HIGH:
            return number
    return value


def _time(value: Any) -> float | None:
    """Seconds from a number, a date or ISO 8601 text; without a zone it is UTC."""
    if value is None or value == "":
        return None
    if isinstance(value, str):
        number = _number(value)
        if number is None:
            try:
                value = datetime.fromisoformat(value[:-1] + "+00:00" if value.endswith(("Z", "z")) else value)
            except ValueError:
                raise _BrokenRuleError(f"time must be seconds since 1970 or ISO 8601, not {preview(value)}") from None
        else:
            value = number
    if isinstance(value, datetime):
        value = (value if value.tzinfo else value.replace(tzinfo=timezone.utc)).timestamp()
    elif isinstance(value, date):
        value = datetime(value.year, value.month, value.day, tzinfo=timezone.utc).timestamp()
    seconds = _number(value)
    if seconds is None or not math.isfinite(seconds):
        raise _BrokenRuleError(f"time must be seconds since 1970 or ISO 8601, not {preview(value)}")
    if abs(seconds) >= MAX_SECONDS:
        # One such event would make all others look old.
        raise _BrokenRuleError(f"time must be seconds since 1970, before the year 2106, not {preview(value)}")
    return seconds


def _weight(value: Any) -> float:
    if value is None or value == "":
        return 1.0
    weight = _number(value)
    if weight is None or not 0 <= weight < math.inf:
        raise _BrokenRuleError(f"weight must be a number of at least 0, not {preview(value)}")
    return weight


def _number(value: Any) -> float | None:
    if isinstance(value, bool):
        return None
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return None
