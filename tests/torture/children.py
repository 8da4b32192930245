"""Work in forked processes: they start without importing everything again, and can die at any moment."""

from __future__ import annotations

import os
import signal
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any

TIME_LIMIT = 600.0
Send = Callable[[Any], None]


@dataclass
class Outcome:
    """What became of a child."""

    value: Any = None
    """What the work returned; None if it did not."""
    sent: list[Any] = field(default_factory=list)
    """What it sent meanwhile."""
    error: str | None = None
    """The traceback of an exception, or the signal that ended it."""
    was_killed: bool = False
    seconds: float = 0.0


def in_child(work: Callable[[Send], Any], *, kill_after: float | None = None) -> Outcome:
    """Call `work` in a forked process. With `kill_after`, it is killed after so many seconds."""
    reading, writing = Pipe(duplex=False)
    began, child = time.monotonic(), os.fork()
    if child == 0:
        reading.close()
        _work(work, writing)
    writing.close()
    found, deadline = Outcome(), began + (TIME_LIMIT if kill_after is None else kill_after)

    def receive() -> None:
        kind, content = reading.recv()
        if kind == "sent":
            found.sent.append(content)
        else:
            setattr(found, kind, content)

    with suppress(EOFError, OSError):
        while reading.poll(max(0.0, deadline - time.monotonic())):
            receive()
        os.kill(child, signal.SIGKILL)
        if kill_after is None:
            found.error = f"no end within {TIME_LIMIT:g} s"
    _, status = os.waitpid(child, 0)
    with suppress(EOFError, OSError):
        while reading.poll():  # What it sent between the deadline and its end, its result included.
            receive()
    reading.close()
    found.seconds = time.monotonic() - began
    found.was_killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
    if os.WIFSIGNALED(status) and not found.was_killed:
        found.error = f"died of {signal.Signals(os.WTERMSIG(status)).name}"
    return found


def _work(work: Callable[[Send], Any], writing: Connection) -> None:
    try:
        value = work(lambda content: writing.send(("sent", content)))
        writing.send(("value", value))
    except BaseException:
        writing.send(("error", traceback.format_exc()[-4000:]))
    finally:
        os._exit(0)
