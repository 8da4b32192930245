"""Signs of life in a log while training is silent: between steps, and while numba compiles what is used first."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event, Thread
from typing import Any


class Compiling:
    """The function that numba compiles at the moment; the outermost one, since it compiles those it calls."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def __enter__(self) -> Compiling:
        from numba.core import event

        names = self.names

        class Listener(event.Listener):
            def on_start(self, event: Any) -> None:
                names.append(event.data["dispatcher"].py_func.__name__)

            def on_end(self, event: Any) -> None:
                names.pop()

        self.listener = Listener()
        event.register("numba:compile", self.listener)  # type: ignore[no-untyped-call]
        return self

    def __exit__(self, *_: object) -> None:
        from numba.core import event

        event.unregister("numba:compile", self.listener)  # type: ignore[no-untyped-call]

    @property
    def name(self) -> str | None:
        """None if nothing is compiled."""
        return next(iter(self.names), None)


class Heartbeat:
    """Calls `beat` with what is compiled, in a thread of its own, every `seconds` until it is stopped."""

    def __init__(self, beat: Callable[[str | None], None], seconds: float) -> None:
        self.beat, self.seconds = beat, seconds
        self.stopped, self.compiling = Event(), Compiling()
        self.thread = Thread(target=self._run, name="pathdex-heartbeat", daemon=True)

    def start(self) -> None:
        self.compiling.__enter__()
        self.thread.start()

    def stop(self) -> None:
        self.stopped.set()
        self.thread.join()
        self.compiling.__exit__()

    def _run(self) -> None:
        while not self.stopped.wait(self.seconds):
            self.beat(self.compiling.name)
