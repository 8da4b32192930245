"""Figures as the tables of a report write them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from pathdex.experiments.report.document import Figure, Points, Table, Text

Results: TypeAlias = Mapping[str, Any]
Row: TypeAlias = Mapping[str, Any]
Part: TypeAlias = Text | Points | Table | Figure


def asked_with(options: Mapping[str, Any]) -> str:
    words = {"candidates": "at most {:,}", "beam": "beam {:,}", "ef_search": "efSearch {:,}"}
    return ", ".join(words[name].format(value) for name, value in options.items())


def share(row: Row, key: str, digits: int = 2) -> str:
    deviation = row[f"{key}_deviation"]
    return percent(row[key], digits) + ("" if deviation is None else f" ± {100 * deviation:.{digits}f}")


def percent(share: float | None, digits: int = 2) -> str:
    return "–" if share is None else f"{100 * share:.{digits}f}"


def milliseconds(seconds: float) -> str:
    return f"{1e3 * seconds:.3f}"


def times(row: Row, key: str) -> list[str]:
    return [milliseconds(row[key]), f"{milliseconds(row[f'{key}_low'])} to {milliseconds(row[f'{key}_high'])}"]


def mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def listed(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {json.dumps(value)}" for name, value in values.items())
