"""A lock that many readers share and one writer has alone."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

GRACE_SECONDS = 0.01
"""How long a writer holds up new readers while it waits for those that began before it."""
PAUSE_SECONDS = 0.02
"""How long it then lets new readers in before it tries again."""
PATIENCE_SECONDS = 10.0
"""After this long, a writer holds up new readers until it has its turn."""


class _Depth(threading.local):
    """How often the current thread shares a lock."""

    depth = 0


class SharedLock:
    """`with lock:` shares it; `with lock.exclusive():` waits until no reader is left.

    A reader may share it again while it has it. One that takes long delays the writer, not other readers: the writer
    tries for a moment at a time. It is not starved either: after `PATIENCE_SECONDS` new readers wait for it.
    """

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._changed = threading.Condition(self._mutex)
        self._writers = threading.Lock()
        self._readers, self._closed = 0, False
        self._own = _Depth()

    def __enter__(self) -> None:
        own = self._own
        if not own.depth:
            with self._mutex:  # Entering the condition itself would take twice as long.
                while self._closed:
                    self._changed.wait()
                self._readers += 1
        own.depth += 1

    def __exit__(self, *_: object) -> None:
        own = self._own
        own.depth -= 1
        if not own.depth:
            with self._mutex:
                self._readers -= 1
                if self._closed and not self._readers:
                    self._changed.notify_all()

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Have the lock alone. A thread that shares it must not ask for this."""
        if self._own.depth:
            raise RuntimeError("a thread that shares the lock cannot have it alone; leave the `with` block first")
        with self._writers:
            self._close(time.monotonic() + PATIENCE_SECONDS)
            try:
                yield
            finally:
                self._open()

    def _close(self, patient_until: float) -> None:
        while True:
            with self._changed:
                self._closed = True
                grace = GRACE_SECONDS if time.monotonic() < patient_until else None
                if self._changed.wait_for(lambda: not self._readers, grace):
                    return
            self._open()
            time.sleep(PAUSE_SECONDS)

    def _open(self) -> None:
        with self._changed:
            self._closed = False
            self._changed.notify_all()
