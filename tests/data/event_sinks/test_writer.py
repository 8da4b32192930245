"""The thread in front of a sink: group commit, bounds, errors, cancellation."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import CancelledError

import pytest

from pathdex.data.event_sinks.writer import SinkWriter
from pathdex.data.events import Event, StreamRecord
from pathdex.errors import ServerError, StorageError


class SlowSink:
    """Holds every append until `go` is set."""

    name = "the sink"

    def __init__(self) -> None:
        self.appends: list[list[StreamRecord]] = []
        self.began, self.go = threading.Event(), threading.Event()
        self.failure: BaseException | None = None
        self.closed = False

    def append(self, records: Sequence[StreamRecord]) -> None:
        self.began.set()
        assert self.go.wait(20)
        self.appends.append(list(records))
        if self.failure is not None:
            raise self.failure

    def close(self) -> None:
        self.closed = True


A, B, C = Event(1, 1), Event(1, 2), Event(1, 3)


def test_what_arrives_during_an_append_is_written_together() -> None:
    sink = SlowSink()
    writer = SinkWriter(sink)
    first = writer.submit([A])
    assert sink.began.wait(20)
    second, third = writer.submit([B]), writer.submit([C, A])
    assert not first.done()
    sink.go.set()
    for one in (first, second, third):
        assert one.result(20) is None
    assert sink.appends == [[A], [B, C, A]]
    writer.close()
    assert sink.closed


def test_cancelled_records_are_not_written() -> None:
    sink = SlowSink()
    writer = SinkWriter(sink)
    writer.submit([A])
    assert sink.began.wait(20)
    cancelled, kept = writer.submit([B]), writer.submit([C])
    assert cancelled.cancel()
    sink.go.set()
    kept.result(20)
    with pytest.raises(CancelledError):
        cancelled.result()
    writer.close()
    assert sink.appends == [[A], [C]]


def test_a_full_queue_refuses() -> None:
    sink = SlowSink()
    writer = SinkWriter(sink, max_waiting=2)
    writer.submit([A])
    assert sink.began.wait(20)
    waiting = writer.submit([B, C])
    with pytest.raises(ServerError, match="the sink: 2 records wait already; try again later"):
        writer.submit([A])
    sink.go.set()
    waiting.result(20)
    writer.submit([A]).result(20)
    writer.close()


def test_a_failure_reaches_all_who_wait_and_the_next_append_works() -> None:
    sink = SlowSink()
    writer = SinkWriter(sink)
    sink.go.set()
    sink.failure = StorageError("the disk is full")
    with pytest.raises(StorageError, match="the disk is full"):
        writer.submit([A]).result(20)
    sink.failure = None
    writer.submit([B]).result(20)
    writer.close()


def test_closing_writes_what_waits() -> None:
    sink = SlowSink()
    writer = SinkWriter(sink)
    writer.submit([A])
    assert sink.began.wait(20)
    last = writer.submit([B])
    sink.go.set()
    writer.close()
    assert last.done()
    with pytest.raises(ServerError, match="the sink is closed"):
        writer.submit([C])
