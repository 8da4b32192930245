"""Progress of counted work: queries answered, rows written, bytes downloaded. Training has its own callbacks."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

Progress: TypeAlias = Callable[[int, int | None], None]
"""Called with the units done so far and the total; None if the total is not known."""


def count_text(done: int, total: int | None) -> str:
    """`10 of 1,000`, or `10` if the total is not known."""
    return f"{done:,}" if total is None else f"{done:,} of {total:,}"
