"""Summary statistics of a data set."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pathdex.data.interactions import Interactions

QUANTILES = {"min": 0.0, "p25": 0.25, "median": 0.5, "p75": 0.75, "p95": 0.95, "max": 1.0}


def describe(data: Interactions, *, history_length: int = 69) -> dict[str, Any]:
    """Sizes, distributions and time span of the data, ready for JSON.

    `history` describes what an encoder of the last `history_length` items sees: the share of users whose whole
    sequence fits, and the share of all interactions within the last `history_length` of their sequence.
    """
    lengths, counts = data.sequences.lengths, data.item_counts()
    rows = data.num_interactions
    popular = np.sort(counts)[::-1][: math.ceil(data.num_items / 100)]
    return {
        "users": data.num_users,
        "items": data.num_items,
        "interactions": rows,
        "density": _share(rows, data.num_users * data.num_items),
        "ordered": data.ordered,
        "sequence_length": _distribution(lengths),
        "item_count": _distribution(counts),
        "top_1_percent_items_share": _share(int(popular.sum()), rows),
        "items_seen_once": int((counts == 1).sum()),
        "items_never_seen": int((counts == 0).sum()),
        "users_with_one_interaction": int((lengths == 1).sum()),
        "time": _span(data.times),
        "history": {
            "length": history_length,
            "users_that_fit": _share(int((lengths <= history_length).sum()), data.num_users),
            "interactions_covered": _share(int(np.minimum(lengths, history_length).sum()), rows),
        },
        "reading": {} if data.reading is None else data.reading.to_dict(),
        "notes": dict(data.notes),
    }


def columns_read(data: Interactions) -> str:
    """Which column of the source was taken for what."""
    columns = {} if data.reading is None else data.reading.to_dict()
    found = [f"{role} = {columns[role]!r}" for role in ("user", "item", "time", "rating") if role in columns]
    return ", ".join(found) or "unknown"


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0


def _distribution(values: NDArray[np.int64]) -> dict[str, float]:
    if len(values) == 0:
        return dict.fromkeys([*QUANTILES, "mean"], 0.0)
    quantiles = np.quantile(values, list(QUANTILES.values()))
    return {**dict(zip(QUANTILES, quantiles.tolist(), strict=True)), "mean": float(values.mean())}


def _span(times: NDArray[np.float64] | None) -> dict[str, float] | None:
    if times is None or len(times) == 0:
        return None
    return {"first": float(times.min()), "last": float(times.max())}
