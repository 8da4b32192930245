"""A checkpoint whose rows of size V are in one file per worker.

RUN/checkpoint.safetensors              everything else, and which shards belong to it
RUN/checkpoint.7.0-of-2.safetensors     the rows 0, 2, 4 ... of its arrays

The shards of a checkpoint are written first, under new names. Replacing the first file makes them valid, and the old
shards are removed after that: a kill at any moment leaves one whole checkpoint. Any number of workers reads it.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pathdex.errors import RunError
from pathdex.storage.checkpoint import load_checkpoint, save_checkpoint
from pathdex.storage.staging import remove_stale_in

SHARDS = "shards"
"""The entry of the state that describes the shards."""


class ShardSet(NamedTuple):
    """The shards of one checkpoint: `size` files with the rows of `total` items; `token` is in each of them."""

    serial: int
    size: int
    total: int
    token: str

    def file(self, checkpoint: Path, rank: int) -> Path:
        """The file of one worker."""
        return checkpoint.with_name(f"{checkpoint.stem}.{self.serial}.{rank}-of-{self.size}{checkpoint.suffix}")


def save_shard(checkpoint: Path, shards: ShardSet, rank: int, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write the rows of one worker beside the checkpoint to which they will belong."""
    save_checkpoint(shards.file(checkpoint, rank), {"token": shards.token}, dict(arrays))


def save_head(checkpoint: Path, shards: ShardSet, state: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Make the shards valid, and remove all others. Every shard must be on disk."""
    save_checkpoint(checkpoint, {**state, SHARDS: list(shards)}, dict(arrays))
    remove_shards(checkpoint, keep=shards)


def load_rows(
    checkpoint: Path, state: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], names: frozenset[str],
    rank: int, size: int,
) -> dict[str, NDArray[Any]]:  # fmt: skip
    """The rows of worker `rank` of `size` in the arrays `names`, from a checkpoint with or without shards."""
    if SHARDS not in state:
        return {name: arrays[name][rank::size] for name in names if name in arrays}
    shards, found = ShardSet(*state[SHARDS]), dict[str, NDArray[Any]]()
    for old in range(shards.size):
        file = shards.file(checkpoint, old)
        if not file.exists():
            raise RunError(f"{file} is missing, which is a part of {checkpoint}; restore it or train into a new folder")
        facts, rows = load_checkpoint(file)
        if facts.get("token") != shards.token:
            raise RunError(f"{file} is not of the same checkpoint as {checkpoint}; restore it, or train again")
        codes = np.arange(old, shards.total, shards.size)
        own = codes % size == rank
        for name, part in rows.items():
            if name not in found:
                found[name] = np.empty((len(range(rank, shards.total, size)), *part.shape[1:]), part.dtype)
            found[name][codes[own] // size] = part[own]
    return found


def remove_shards(checkpoint: Path, keep: ShardSet | None = None) -> None:
    """Remove shards that no checkpoint needs. What cannot be removed is tried again later."""
    kept = set() if keep is None else {keep.file(checkpoint, rank) for rank in range(keep.size)}
    for file in checkpoint.parent.glob(f"{checkpoint.stem}.*-of-*{checkpoint.suffix}"):
        if file not in kept:
            with suppress(OSError):
                file.unlink()
    remove_stale_in(checkpoint.parent)
