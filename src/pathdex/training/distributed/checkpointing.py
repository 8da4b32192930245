"""Checkpoints of a training on several workers."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from numpy.typing import NDArray

from pathdex.storage.checkpoint_shards import SHARDS, ShardSet, save_head, save_shard
from pathdex.training.checkpointing import ITEM_ARRAYS, Checkpointer
from pathdex.training.distributed.group import Group

Result = TypeVar("Result")


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
        values, arrays = self._together(lambda: self.load_part(self.group.rank, self.group.size))
        if SHARDS in values:
            self._serial = ShardSet(*values[SHARDS]).serial
        return values, arrays

    def _together(self, work: Callable[[], Result]) -> Result:
        return self.group.together(work, f"cannot use the checkpoint {self.path}")
