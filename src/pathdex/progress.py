"""Counts, and the progress of counted work: queries, rows, bytes. Training has its own callbacks."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

Progress: TypeAlias = Callable[[int, int | None], None]
"""Called with the units done so far and the total; None if the total is not known."""


def count_text(done: int, total: int | None) -> str:
    """`10 of 1,000`, or `10` if the total is not known."""
    return f"{done:,}" if total is None else f"{done:,} of {total:,}"


def quantity(count: int, noun: str) -> str:
    """`1 user`, `1,000 users`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
