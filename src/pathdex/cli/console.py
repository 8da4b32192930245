"""The consoles of the command line: results go to standard output, progress and messages to standard error."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from rich.console import Console

LOG_WIDTH = 160
"""Columns when the output is not a terminal and COLUMNS is not set."""
_QUIET: ContextVar[bool] = ContextVar("quiet", default=False)
_NO_TABLES: ContextVar[bool] = ContextVar("no_tables", default=False)


def out() -> Console:
    """The console for results."""
    return _console(stderr=False, quiet=_NO_TABLES.get())


def err(*, always: bool = False) -> Console:
    """The console for progress and messages; `always` for warnings and errors, which `--quiet` shows as well."""
    return _console(stderr=True, quiet=_QUIET.get() and not always)


def is_quiet() -> bool:
    """Whether `--quiet` was given."""
    return _QUIET.get()


@contextmanager
def silence(*, messages: bool, tables: bool) -> Iterator[None]:
    """Drop progress and messages, tables, or both, while the block runs."""
    tokens = _QUIET.set(messages), _NO_TABLES.set(tables)
    try:
        yield
    finally:
        _QUIET.reset(tokens[0])
        _NO_TABLES.reset(tokens[1])


def _console(*, stderr: bool, quiet: bool) -> Console:
    stream = sys.stderr if stderr else sys.stdout
    # Item ids may hold brackets and colons, which are not markup.
    return Console(
        stderr=stderr,
        markup=False,
        emoji=False,
        highlight=False,
        quiet=quiet,
        soft_wrap=not stream.isatty(),
        width=None if stream.isatty() or os.environ.get("COLUMNS") else LOG_WIDTH,
    )
