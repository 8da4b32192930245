"""Waiting longer after each failure, up to a limit."""

from __future__ import annotations

import time

FIRST_SECONDS = 0.1
LONGEST_SECONDS = 5.0


class Backoff:
    """The delay doubles with every failure, from 0.1 s to 5 s."""

    def __init__(self) -> None:
        self.failures = 0

    def wait(self, longest: float) -> None:
        """Sleep after a failure, no longer than `longest` seconds."""
        delay = min(LONGEST_SECONDS, FIRST_SECONDS * 2 ** min(self.failures, 10))
        self.failures += 1
        time.sleep(max(0.0, min(delay, longest)))

    def reset(self) -> None:
        self.failures = 0
