"""Checkpoints of a training on several workers."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pathdex.errors import WorkerError
from pathdex.storage.checkpoint_shards import SHARDS, ShardSet, save_head, save_shard
from pathdex.training.checkpointing import ITEM_ARRAYS, Checkpointer
from pathdex.training.distributed.group import Group


class ShardedCheckpointer(Checkpointer):
    """Each worker writes its rows, then the first one makes the checkpoint valid. The folder must be shared."""

    def __init__(self, path: Path, identity: Mapping[str, Any], group: Group, total: int) -> None:
        super().__init__(path, identity)
        self.group, self.total, self._serial = group, total, 0

    def claim(self) -> None:
        self._together(super().claim)

    def due(self) -> bool:
        return self.group.agree(super().due())

    def save(self, values: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        self.mark()
        self._serial += 1
        token = self.group.describe(secrets.token_hex(8))[0]
        shards = ShardSet(self._serial, self.group.size, self.total, token)
        own = {name: array for name, array in arrays.items() if name in ITEM_ARRAYS}
        rest = {name: array for name, array in arrays.items() if name not in ITEM_ARRAYS}
        self._together(lambda: save_shard(self.path, shards, self.group.rank, own))
        self.group.first_only(lambda: save_head(self.path, shards, {**self.identity, **values}, rest))

    def load(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        found: list[tuple[dict[str, Any], dict[str, NDArray[Any]]]] = []
        self._together(lambda: found.append(self.load_part(self.group.rank, self.group.size)))
        values, arrays = found[0]
        if SHARDS in values:
            self._serial = ShardSet(*values[SHARDS]).serial
        return values, arrays

    def _together(self, work: Any) -> None:
        """Do something on every worker; if it fails on one, all stop."""
        problem = None
        try:
            work()
        except Exception as error:
            problem = error
        failed = self.group.gather(np.array([problem is not None]))
        if problem is not None:
            raise problem
        for rank, one in enumerate(failed):
            if one[0]:
                raise WorkerError(f"worker {rank} cannot use the checkpoint {self.path}; see what it printed")
