"""Scenarios of prepared data, of shards and of the checkpoints of several workers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

import pathdex
from pathdex.recommenders.sharding import LISTING, write_shards
from pathdex.storage.checkpoint import load_checkpoint
from pathdex.storage.checkpoint_shards import ShardSet, load_rows, save_head, save_shard
from tests.random_model import random_model
from tests.torture.scenario import Scenario

ABSENT = "absent"
ROWS = frozenset({"rows"})


class PrepareData(Scenario):
    """A log is prepared, then again with another filter."""

    steps = 2

    def prepare(self, root: Path) -> None:
        lines = [f"user {n % 9},{n * 7 % 11},{n}" for n in range(90)]
        (root / "log.csv").write_text("\n".join(["user,item,time", *lines, "user 99,1,5"]) + "\n")

    def step(self, session: Any, number: int) -> None:
        pathdex.prepare(
            session / "log.csv",
            session / "inner" / "prepared",
            min_interactions=1 + number,
            shard_rows=20,
            overwrite=number > 0,
        )

    def state(self, root: Path) -> str:
        path = root / "inner" / "prepared"
        if not path.exists():
            return ABSENT
        data = pathdex.read(path)
        return f"{data.num_users} {data.sequences.values.tolist()}"


class SplitModel(Scenario):
    """A saved model is split into two shards, then into three."""

    steps = 2

    def prepare(self, root: Path) -> None:
        random_model(40, seed=0, neighbours=3).save(root / "model")

    def step(self, session: Any, number: int) -> None:
        write_shards(session / "model", number + 2, session / "inner" / "shards", overwrite=number > 0)

    def state(self, root: Path) -> str:
        path = root / "inner" / "shards"
        if not path.exists():
            return ABSENT
        listing = json.loads((path / LISTING).read_text())
        shards = [pathdex.load(path / f"shard-{number + 1}") for number in range(listing["shards"])]
        return f"{listing['version']} {[shard.items.num_ids for shard in shards]}"


class ShardedCheckpoint(Scenario):
    """Two workers save a checkpoint, three save the next one, and two the last one."""

    steps = 3
    TOTAL = 7

    def step(self, session: Any, number: int) -> None:
        size = 3 if number == 1 else 2
        shards = ShardSet(number, size, self.TOTAL, f"token {number}")
        for rank in range(size):
            save_shard(session / "checkpoint.safetensors", shards, rank, {"rows": self.rows(number)[rank::size]})
        save_head(session / "checkpoint.safetensors", shards, {"step": number}, {"dense": np.full(3, number)})

    def rows(self, number: int) -> np.ndarray[Any, Any]:
        return np.arange(self.TOTAL * 2).reshape(self.TOTAL, 2) + 100 * number

    def state(self, root: Path) -> str:
        file = root / "checkpoint.safetensors"
        if not file.exists():
            return ABSENT
        state, arrays = load_checkpoint(file)
        found = load_rows(file, state, arrays, ROWS, 0, 1)["rows"]
        return f"{state['step']} {arrays['dense'].tolist()} {found.tolist()}"
