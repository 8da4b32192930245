"""How the tables of a report write figures."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from pathdex.evaluation.report import percent

Results: TypeAlias = Mapping[str, Any]
Row: TypeAlias = Mapping[str, Any]


def share(row: Row, key: str, digits: int = 2) -> str:
    """Mean and standard deviation in percent; a dash for a figure that an earlier version did not measure."""
    if key not in row:
        return percent(None)
    deviation = row[f"{key}_deviation"]
    return percent(row[key], digits) + ("" if deviation is None else f" ± {100 * deviation:.{digits}f}")


def difference(row: Row) -> list[str]:
    """The difference of a test and its interval, in percent."""
    return [f"{100 * row['difference']:+.2f}", f"{100 * row['low']:+.2f} to {100 * row['high']:+.2f}"]


def milliseconds(seconds: float) -> str:
    return f"{1e3 * seconds:.3f}"


def times(row: Row, key: str) -> list[str]:
    """Milliseconds: the median, and the lowest to the highest."""
    return [milliseconds(row[key]), f"{milliseconds(row[f'{key}_low'])} to {milliseconds(row[f'{key}_high'])}"]


def mean(values: Sequence[float | None]) -> float | None:
    """Mean of the known values; None if there are none."""
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def listed(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {json.dumps(value)}" for name, value in values.items())
