"""The public data sets of the accuracy benchmark, with their splits and n."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pathdex
from pathdex.data.splits import Split


@dataclass(frozen=True)
class DataSet:
    """A file, how it is read, and how it is evaluated."""

    file: str
    n: int
    candidates: tuple[int, ...]
    held_out: int
    """The number of validation users, and of test users."""
    reading: dict[str, Any] = field(default_factory=dict)

    def split(self, seed: int) -> Split:
        data = pathdex.read(data_folder() / self.file, **self.reading)
        return pathdex.split_users(data, valid_users=self.held_out, test_users=self.held_out, seed=seed)


SETS = {
    "ml-1m": DataSet("ml-1m.zip", 10, (50, 100, 200), 500, {"min_rating": 4, "min_interactions": 10}),
    "nowplaying": DataSet("nowplaying.parquet", 50, (250, 500, 1000), 2000, {"min_interactions": 6}),
    "amazon-beauty": DataSet("amazon-beauty-2014.parquet", 50, (250, 500, 1000), 2000),
    "amazon-games": DataSet("amazon-games-2014.parquet", 50, (250, 500, 1000), 2000),
}


def data_folder() -> Path:
    """`PATHDEX_DATA`, or the first of `data` and `../shared/data` that exists."""
    named = os.environ.get("PATHDEX_DATA")
    for folder in [named] if named else ["data", "../shared/data"]:
        if Path(folder).is_dir():
            return Path(folder)
    raise SystemExit("set PATHDEX_DATA to the folder that holds the data sets (see benchmarks/README.md)")
