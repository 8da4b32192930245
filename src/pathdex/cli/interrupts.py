"""Ctrl-C and SIGTERM: both raise `KeyboardInterrupt`, so that files are cleaned up and the user is told how to go on.

Imports little, since it is there before all other imports.
"""

import os
import signal
from types import FrameType

INTERRUPTED = 128 + signal.SIGINT
TERMINATED = 128 + signal.SIGTERM
_received: list[int] = []


def handle_sigterm() -> None:
    """Treat the first SIGTERM like Ctrl-C; a second one ends the process at once. Ignored signals stay ignored.

    Workers of torchrun are left alone: their launcher ends them and says so once.
    """
    if "TORCHELASTIC_RUN_ID" not in os.environ and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _interrupt)


def exit_code() -> int:
    """The exit code after a `KeyboardInterrupt`, by the signal that caused it."""
    return TERMINATED if _received else INTERRUPTED


def farewell(interrupt: KeyboardInterrupt) -> str:
    """The message of the interrupt, such as how to resume, or one word."""
    return str(interrupt) or ("Terminated." if _received else "Interrupted.")


def _interrupt(number: int, frame: FrameType | None) -> None:
    _received.append(number)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    raise KeyboardInterrupt
