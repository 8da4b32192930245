"""SIGTERM and SIGINT before a server handles them itself: exit with code 0, and without resetting a connection."""

from __future__ import annotations

import signal
import sys
import threading
from types import FrameType, TracebackType

from typing_extensions import Self

SIGNALS = (signal.SIGTERM, signal.SIGINT)


class EarlySignals:
    """Exits on a signal until `hold`. From then on the first signal is only remembered, as `received`.

    Hold before the socket is opened: an exception could end the process while clients wait to be accepted. In a thread
    that gets no signals this does nothing.
    """

    def __init__(self) -> None:
        self.received = False
        self._is_held = False
        self._before: dict[signal.Signals, object] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            self._before = {number: signal.signal(number, self._handle) for number in SIGNALS}
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]

    def hold(self) -> None:
        """Remember signals from now on."""
        self._is_held = True

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.received or not self._is_held:
            sys.exit(0)
        self.received = True
