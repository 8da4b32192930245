"""Records of a stream: events (one user, one item, an optional time and weight) and changes of the catalogue."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from pathdex.data.columns import guess_column
from pathdex.data.event_values import BrokenRuleError, parse_id, parse_time, parse_weight
from pathdex.data.item_changes import ADD, REMOVE, AddItem, ItemChange, is_item_change, parse_item_change
from pathdex.data.vocabulary import Id
from pathdex.errors import ConfigError, Problem, preview

MAX_EVENT_BYTES = 1 << 20
"""Bytes of one event in JSON or CSV; longer ones are malformed, which bounds memory."""
CACHED_LAYOUTS = 1000
"""Distinct sets of keys whose roles are remembered."""

Position: TypeAlias = dict[str, Any]
"""JSON that only its source understands: what has been read so far. `source` names the kind of source."""


class Event(NamedTuple):
    """A user chose an item."""

    user: Id
    item: Id
    time: float | None = None
    """Seconds since 1970 (UTC)."""
    weight: float = 1.0


StreamRecord: TypeAlias = Event | ItemChange


@dataclass(frozen=True)
class EventBatch:
    """Events and item changes in the order of their source, and the position after the last of them."""

    events: list[StreamRecord]
    position: Position
    malformed: int = 0
    """Malformed events among those read; they are not in `events`."""
    lost: int = 0
    """Events that the broker dropped before they were read, as far as it can tell."""
    drained: bool = False
    """Nothing more was there to read. Only sources without an end say so."""


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

    def parse_json(self, raw: bytes | str) -> StreamRecord | Malformed:
        """The event or item change in one JSON object."""
        if len(raw) > MAX_EVENT_BYTES:
            return too_long(len(raw))
        try:
            record = json.loads(raw if isinstance(raw, str) else str(raw, "utf-8"))
        except UnicodeDecodeError as error:
            return Malformed(f"it is not UTF-8 text (byte {error.start})")
        except json.JSONDecodeError as error:
            return Malformed(f"it is not JSON ({error.msg} at character {error.pos})")
        except RecursionError:
            return Malformed("it is nested too deeply")
        except ValueError:  # The only one that is left.
            return Malformed(f"it holds a number of more than {sys.get_int_max_str_digits():,} digits")
        if not isinstance(record, dict):
            return Malformed(f"it must be a JSON object, not {preview(record)}")
        if is_item_change(record):
            try:
                return parse_item_change(record)
            except BrokenRuleError as error:
                return Malformed(str(error))
        return self.parse(record)

    def parse(self, record: Mapping[str, Any], *, text: bool = False) -> Event | Malformed:
        """The event in a mapping. With `text`, all values are text, and ids that print as integers are integers."""
        roles = self._roles(tuple(record))
        try:
            user = parse_id("user", _required("user", record, roles), text)
            item = parse_id("item", _required("item", record, roles), text)
            when, much = roles["time"], roles["weight"]
            time = None if when is None else parse_time(record.get(when))
            weight = 1.0 if much is None else parse_weight(record.get(much))
        except BrokenRuleError as error:
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


def encode_record(record: StreamRecord) -> bytes:
    """A record as JSON, which keeps text and numbers apart; the inverse of `EventParser.parse_json`."""
    fields: dict[str, Any]
    if isinstance(record, Event):
        fields = {"user": record.user, "item": record.item}
        if record.time is not None:
            fields["time"] = record.time
        if record.weight != 1.0:
            fields["weight"] = record.weight
    elif isinstance(record, AddItem):
        fields = {ADD: record.item}
        if record.like:
            fields["like"] = list(record.like)
        if record.attributes:
            fields["attributes"] = dict(record.attributes)
    else:
        fields = {REMOVE: record.item}
    return json.dumps(fields).encode()


def too_long(size: int) -> Malformed:
    return Malformed(f"it has {size:,} bytes; at most {MAX_EVENT_BYTES:,} are allowed")


def _required(role: str, record: Mapping[str, Any], roles: Mapping[str, str | None]) -> Any:
    name = roles[role]
    if name is None:
        raise BrokenRuleError(f"no {role} was found among its keys: {preview(list(record))}; name the key with {role}=")
    value = record.get(name)
    if value is None:
        raise BrokenRuleError(f"{role}: {name!r} is missing or null")
    return value
