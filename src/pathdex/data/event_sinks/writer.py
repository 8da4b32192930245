"""Appends to a sink in a thread of its own, so that callers do not block each other."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import Future

from pathdex.data.event_sinks.base import EventSink
from pathdex.data.events import StreamRecord
from pathdex.errors import ServerError

MAX_WAITING = 100_000
"""Records that wait for the sink; further ones are refused."""


class SinkWriter:
    """Group commit: what arrives during an append forms the next one, so under load many callers share one sync.

    Thread-safe. A future that is cancelled before its append began is not written.
    """

    def __init__(self, sink: EventSink, *, max_waiting: int = MAX_WAITING) -> None:
        self.sink, self.max_waiting = sink, max_waiting
        self._waiting: list[tuple[Sequence[StreamRecord], Future[None]]] = []
        self._count = 0
        self._closed = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="pathdex-sink", daemon=True)
        self._thread.start()

    def submit(self, records: Sequence[StreamRecord]) -> Future[None]:
        """A future that is done once the records are durable, or has the error of the sink.

        `ServerError` if too many records wait.
        """
        done: Future[None] = Future()
        with self._changed:
            if self._closed:
                raise ServerError(f"{self.sink.name} is closed")
            if self._count + len(records) > self.max_waiting:
                raise ServerError(f"{self.sink.name}: {self._count:,} records wait already; try again later")
            self._waiting.append((records, done))
            self._count += len(records)
            self._changed.notify()
        return done

    def close(self) -> None:
        """Write what waits, then close the sink."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join()
        self.sink.close()

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._waiting and not self._closed:
                    self._changed.wait()
                if not self._waiting:
                    return
                batch, self._waiting, self._count = self._waiting, [], 0
            self._append([(records, done) for records, done in batch if done.set_running_or_notify_cancel()])

    def _append(self, batch: list[tuple[Sequence[StreamRecord], Future[None]]]) -> None:
        failure: BaseException | None = None
        try:
            self.sink.append([one for records, _ in batch for one in records])
        except BaseException as error:  # Whatever it is, those who wait must know.
            failure = error
        for _, done in batch:
            if failure is None:
                done.set_result(None)
            else:
                done.set_exception(failure)
