"""What every source of events can do, and the check that a position belongs to it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Any, Protocol, TypeVar

from pathdex.data.event_sources.dead_letters import DeadLetter, DeadLetters
from pathdex.data.events import EventBatch, EventParser, Malformed, Position, StreamRecord
from pathdex.errors import DataError, Problem, preview

log = logging.getLogger("pathdex.stream")
Record = TypeVar("Record")

NEW_STATE = "to start again from the beginning, stream into a new folder"


class EventSource(Protocol):
    """A stream of events that can be read again from any position.

    Brokers deliver at least once. Events count exactly once, because the position is saved together with what was
    learned, and `seek(position)` skips what has been learned.
    """

    def seek(self, position: Position | None) -> None:
        """Continue after `position`; None: from the start, or where the broker's consumer group is."""
        ...

    def read(self, max_events: int, timeout: float) -> EventBatch | None:
        """The next events, at most `max_events`, malformed ones included.

        Waits up to `timeout` seconds for the first of them; an empty batch means that none arrived. None means that a
        finite source has ended.
        """
        ...

    def acknowledge(self, position: Position) -> None:
        """Everything up to `position` is in a durable checkpoint: the broker may forget it."""
        ...

    def lag(self) -> int | None:
        """The number of events waiting, or None if the source cannot tell now. For text files, an estimate."""
        ...

    def close(self) -> None: ...


class EventDecoder:
    """Parses records; malformed ones go to the dead letters."""

    def __init__(self, parser: EventParser | None = None, dead_letters: DeadLetters | None = None) -> None:
        self.parser = EventParser() if parser is None else parser
        self.dead_letters = dead_letters

    def decode(
        self,
        records: Iterable[tuple[str, Record]],
        parse: Callable[[Record], StreamRecord | Malformed],
        raw: Callable[[Record], Any] = lambda record: record,
    ) -> tuple[list[StreamRecord], int]:
        """The events among records, given with the place of each, and the number of malformed ones.

        `raw` is what the dead letters show of a record.
        """
        events: list[StreamRecord] = []
        letters: list[DeadLetter] = []
        for place, record in records:
            found = parse(record)
            if isinstance(found, Malformed):
                letters.append(DeadLetter(place, found.reason, raw(record)))
            else:
                events.append(found)
        if letters:
            if self.dead_letters is not None:
                self.dead_letters.write(letters)
            else:
                what = "1 malformed event was" if len(letters) == 1 else f"{len(letters):,} malformed events were"
                log.warning("%s skipped; the first, %s: %s", what, *letters[0][:2])
        return events, len(letters)

    def close(self) -> None:
        if self.dead_letters is not None:
            self.dead_letters.close()


def check_position(position: Position, kind: str, **expected: Any) -> None:
    """Raise `DataError` unless the position is of this kind of source and has the expected values."""
    found = position.get("source") if isinstance(position, dict) else position
    if found != kind:
        rule = f"the position is of another kind of source, not of {kind}"
        raise DataError(Problem(rule, "position", position, f"continue with the source it is of; {NEW_STATE}"))
    for key, value in expected.items():
        if position.get(key) != value:
            rule = f"the position is of the {key} {preview(position.get(key))}, not of {preview(value)}"
            raise DataError(Problem(rule, remedy=f"continue with that {key}; {NEW_STATE}"))


def position_value(position: Position, key: str, kind: type) -> Any:
    """A value of a position, which may come from an edited file."""
    value = position.get(key)
    if not isinstance(value, kind) or isinstance(value, bool) or (isinstance(value, int) and value < 0):
        rule = f"{key} must be a {kind.__name__}, not {preview(value)}"
        raise DataError(Problem(rule, "position", position, f"restore the checkpoint; {NEW_STATE}"))
    return value
