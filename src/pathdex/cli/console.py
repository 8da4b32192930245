"""The consoles of the command line: results go to standard output, progress and messages to standard error."""

from __future__ import annotations

import sys

from rich.console import Console

LOG_WIDTH = 160
"""Columns when the output is not a terminal."""


def out() -> Console:
    """The console for results."""
    return _console(stderr=False)


def err() -> Console:
    """The console for progress, warnings and errors."""
    return _console(stderr=True)


def _console(*, stderr: bool) -> Console:
    stream = sys.stderr if stderr else sys.stdout
    # Item ids may hold brackets and colons, which are not markup.
    return Console(
        stderr=stderr,
        markup=False,
        emoji=False,
        highlight=False,
        soft_wrap=not stream.isatty(),
        width=None if stream.isatty() else LOG_WIDTH,
    )
