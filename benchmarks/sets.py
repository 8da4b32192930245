"""The data sets of the benchmarks that train models, with their splits and n."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pathdex
from pathdex.data.interactions import Interactions
from pathdex.data.splits import Split
from pathdex.data.synthetic_variants import VARIANTS, generate_variant


@dataclass(frozen=True)
class DataSet:
    """A file, how it is read, and how it is evaluated."""

    file: str
    n: int
    candidates: tuple[int, ...]
    held_out: int
    """The number of validation users, and of test users."""
    reading: dict[str, Any] = field(default_factory=dict)

    def read(self) -> Interactions:
        return pathdex.read(data_folder() / self.file, **self.reading)

    def split(self, seed: int) -> Split:
        return pathdex.split_users(self.read(), valid_users=self.held_out, test_users=self.held_out, seed=seed)


class PlantedSet(DataSet):
    """A variant of the synthetic data, `file`, always the same one."""

    def read(self) -> Interactions:
        with tempfile.TemporaryDirectory(prefix="pathdex-bench-") as folder:
            return pathdex.read(generate_variant(Path(folder) / "planted.parquet", self.file, seed=0))


SETS = {
    "ml-1m": DataSet("ml-1m.zip", 10, (50, 100, 200), 500, {"min_rating": 4, "min_interactions": 10}),
    "nowplaying": DataSet("nowplaying.parquet", 50, (250, 500, 1000), 2000, {"min_interactions": 6}),
    "amazon-beauty": DataSet("amazon-beauty-2014.parquet", 50, (250, 500, 1000), 2000),
    "amazon-games": DataSet("amazon-games-2014.parquet", 50, (250, 500, 1000), 2000),
    "tafeng": DataSet("tafeng.parquet", 50, (250, 500, 1000), 1000),
    # A truth of 83 items on average: with n = 10, recall could not exceed 12% and F would be little but precision.
    "ml-1m-all": DataSet("ml-1m.zip", 50, (250, 500, 1000), 500, {"min_interactions": 10}),
    "ml-latest-small": DataSet("ml-latest-small/ratings.csv", 10, (50, 100, 200), 100),
}
ACCURACY_SETS = ["ml-1m", "nowplaying", "amazon-beauty", "amazon-games"]
"""The sets of docs/results.md."""
PLANTED = {
    "long-histories": PlantedSet("long-histories", 50, (250, 500, 1000), 100),
    "short-histories": PlantedSet("short-histories", 10, (50, 100, 200), 1000),
    "strong-order": PlantedSet("strong-order", 10, (50, 100, 200), 500),
    "weak-order": PlantedSet("weak-order", 10, (50, 100, 200), 500),
    "heavy-repetition": PlantedSet("heavy-repetition", 10, (50, 100, 200), 500),
    "light-repetition": PlantedSet("light-repetition", 10, (50, 100, 200), 500),
    "sparse": PlantedSet("sparse", 50, (250, 500, 1000), 1000),
}
assert PLANTED.keys() == VARIANTS.keys()


def data_folder() -> Path:
    """`PATHDEX_DATA`, or the first of `data` and `../shared/data` that exists."""
    named = os.environ.get("PATHDEX_DATA")
    for folder in [named] if named else ["data", "../shared/data"]:
        if Path(folder).is_dir():
            return Path(folder)
    raise SystemExit("set PATHDEX_DATA to the folder that holds the data sets (see benchmarks/README.md)")
