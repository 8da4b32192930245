"""Events and item changes of requests, appended to the stream that a trainer reads."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pathdex.data.event_sinks import SinkWriter, open_sink
from pathdex.data.event_values import BrokenRuleError, parse_id
from pathdex.data.events import MAX_EVENT_BYTES, Event, StreamRecord, encode_record
from pathdex.data.item_changes import ADD, ItemChange, RemoveItem, parse_item_change
from pathdex.data.vocabulary import Id
from pathdex.errors import PathdexError, Problem
from pathdex.server.errors import SERVER, RequestError, invalid, is_full, unavailable
from pathdex.server.schemas import AddItemsRequest, EventsRequest, NewItem, UserEvents

if TYPE_CHECKING:
    from pathdex.server.metrics import ServerMetrics

log = logging.getLogger("pathdex.server")


class EventFeed:
    """The sink of one worker. A request is answered once its records are durable, or with status 503."""

    def __init__(self, place: str, metrics: ServerMetrics, timeout: float) -> None:
        sink = open_sink(place)
        sink.append([])  # A file that cannot be written is an error now; it also lets a trainer start.
        self._writer = SinkWriter(sink)
        self._metrics, self._timeout = metrics, timeout

    async def append(self, records: Sequence[StreamRecord]) -> None:
        """Append in order. Raises a `RequestError` with status 503; the records may be stored nevertheless."""
        if not records:
            return
        try:
            done = self._writer.submit(records)
            await asyncio.wait_for(asyncio.wrap_future(done), self._timeout)
        except asyncio.TimeoutError:
            self._metrics.add("pathdex_sink_errors_total")
            rule = f"the stream did not confirm within {self._timeout:g} s; the records may be stored"
            raise unavailable(rule, "send them again, events with the same time") from None
        except PathdexError as error:
            # The message names the file or the broker, which are no concern of the client.
            self._metrics.add("pathdex_sink_errors_total")
            log.error("the stream is unavailable: %s", error)
            rule = "the disk of the stream is full" if is_full(error) else "the stream is unavailable"
            raise unavailable(rule, "try again later") from error

    async def close(self) -> None:
        """Write what waits."""
        await asyncio.to_thread(self._writer.close)


def event_records(users: Sequence[EventsRequest | UserEvents]) -> list[StreamRecord]:
    """The events of a request, one per item. Those without a time happen now."""
    now = time.time()
    records: list[StreamRecord] = []
    for number, one in enumerate(users):
        place = f"events[{number}]." if isinstance(one, UserEvents) else ""
        user = _checked(f"{place}user", one.user)
        when = now if one.time is None else one.time
        records += [Event(user, _checked(f"{place}items", item), when) for item in one.items or []]
    return records


def additions(request: AddItemsRequest) -> list[ItemChange]:
    """The new items of a request."""
    items = [request] if request.new_items is None else request.new_items
    return [_addition(one) for one in items]


def removals(ids: Sequence[Id], field: str = "ids") -> list[ItemChange]:
    return [RemoveItem(_checked(field, one)) for one in ids]


def no_stream() -> RequestError:
    """The server was started without a stream."""
    return RequestError(
        409, Problem("this server has no stream of events", remedy="start it with --events"), type=SERVER
    )


def _addition(item: AddItemsRequest | NewItem) -> ItemChange:
    try:
        change = parse_item_change({ADD: item.id, "like": item.like, "attributes": item.attributes})
    except BrokenRuleError as error:
        raise invalid("id", item.id, str(error)) from None
    if len(encode_record(change)) > MAX_EVENT_BYTES:
        raise invalid("id", item.id, f"must have at most {MAX_EVENT_BYTES:,} bytes of attributes")
    return change


def _checked(field: str, id: Id | None) -> Id:
    """An id by the rules of a stream."""
    try:
        return parse_id(field, id)
    except BrokenRuleError as error:
        raise invalid(field, id, str(error).removeprefix(f"{field} ")) from None
