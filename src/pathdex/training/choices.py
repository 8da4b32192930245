"""Hyper-parameters that a training chooses for itself, as its records hold them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pathdex.config import EncoderConfig

FALLBACK = {"next_items": 1}
"""For trainings without held-out data to choose by."""


def chosen(records: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The choices of all records by name; later ones win."""
    return {name: value for record in records for name, value in record.get("choices", {}).items()}


def next_items(config: EncoderConfig, records: Iterable[Mapping[str, Any]]) -> int:
    """`next_items` as given, or as chosen."""
    if config.next_items is not None:
        return config.next_items
    value: int = {**FALLBACK, **chosen(records)}["next_items"]
    return value
