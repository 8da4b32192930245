"""Calls that may never return, such as those of a store behind a cut link."""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

Result = TypeVar("Result")


class BoundedCalls:
    """Makes calls one after the other in a thread.

    It exists from the start: where memory is short, a new thread may never begin, and Python waits for it.
    """

    def __init__(self) -> None:
        self._asked: SimpleQueue[tuple[Callable[[], Any], SimpleQueue[Any]]] = SimpleQueue()
        threading.Thread(target=self._serve, daemon=True).start()

    def call(self, work: Callable[[], Result], seconds: float) -> Result:
        """The result of a call; `RuntimeError` if it takes longer. It then goes on, and later calls wait for it."""
        outcome = self.begin(work)
        try:
            result, error = outcome.get(timeout=seconds)
        except Empty:
            raise RuntimeError(f"no answer within {seconds:g} s") from None
        if error is not None:
            raise error
        found: Result = result
        return found

    def begin(self, work: Callable[[], object]) -> SimpleQueue[Any]:
        """Start a call without waiting; the result and the error will be in the queue."""
        outcome: SimpleQueue[Any] = SimpleQueue()
        self._asked.put((work, outcome))
        return outcome

    def _serve(self) -> None:
        while True:
            work, outcome = self._asked.get()
            try:
                outcome.put((work(), None))
            except Exception as error:
                outcome.put((None, error))
            del work, outcome  # Or the store would live until the next call.
