"""Progress of counted work: queries answered, rows written, bytes downloaded. Training has its own callbacks."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

Progress: TypeAlias = Callable[[int, int | None], None]
"""Called with the units done so far and the total; None if the total is not known."""
