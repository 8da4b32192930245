"""When to write a checkpoint, and what it must match to be resumed."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor

from pathdex.errors import RunError
from pathdex.storage.checkpoint import load_checkpoint, save_checkpoint
from pathdex.storage.checkpoint_shards import SHARDS, load_rows, remove_shards

ITEM_ARRAYS = frozenset(
    ("network.items", "best.items", "rows.first", "rows.second", "paths", "table.codes", "table.scores")
)
"""Arrays with a row per item, which several workers share."""
CHECKPOINT_SECONDS = 300.0
"""Longest time between checkpoints."""


class Checkpointer:
    """Saves the state of one training to one file.

    `identity` describes the training (configuration, seed, data). `load` rejects a checkpoint of another training.
    """

    def __init__(self, path: Path, identity: Mapping[str, Any]) -> None:
        self.path, self.identity = path, dict(identity)
        self._saved = time.monotonic()
        self._loaded = self._had_shards = False

    def claim(self) -> None:
        """Raise `RunError` if the file holds the state of a training that is not being resumed."""
        if self.path.exists() and not self._loaded:
            raise RunError(f"the checkpoint {self.path} exists; pass resume=True to continue from it, or another path")

    def due(self) -> bool:
        """Whether it is time for a checkpoint."""
        return time.monotonic() - self._saved > CHECKPOINT_SECONDS

    def mark(self) -> None:
        """Count the time to the next checkpoint from now."""
        self._saved = time.monotonic()

    def save(self, values: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        self.mark()
        save_checkpoint(self.path, {**self.identity, **values}, dict(arrays))
        if self._had_shards:
            remove_shards(self.path)

    def load(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """The state and the arrays, also of a training on several workers."""
        return self.load_part(0, 1)

    def load_part(self, rank: int, size: int) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """`load` for one of several workers: of `ITEM_ARRAYS`, only its own rows."""
        if not self.path.exists():
            raise RunError(f"there is no checkpoint at {self.path}; train without --resume or resume=True")
        values, arrays = load_checkpoint(self.path)
        differing = [
            _describe(name, values.get(name), own)
            for name, own in self.identity.items()
            if name in values and _differs(values[name], own)
        ]
        if differing:
            raise RunError(
                f"the checkpoint {self.path} was written with a different {' and '.join(differing)}; "
                "resume with the same, or train into a new folder"
            )
        self._loaded, self._had_shards = True, SHARDS in values
        return values, {**arrays, **load_rows(self.path, values, arrays, ITEM_ARRAYS, rank, size)}


def _differs(before: Any, now: Any) -> bool:
    """Whether two values differ; entries that a checkpoint of an earlier version lacks do not count."""
    if isinstance(before, Mapping) and isinstance(now, Mapping):
        return any(now.get(key) != one for key, one in before.items())
    return bool(before != now)


def _describe(name: str, before: Any, now: Any) -> str:
    """`config (epochs 3, now 4)`: which entries of a mapping differ."""
    if not isinstance(before, Mapping) or not isinstance(now, Mapping):
        return name
    changed = [
        f"{key} {before.get(key)!r}, now {one!r}" for key, one in now.items() if key in before and before[key] != one
    ]
    return f"{name} ({'; '.join(changed)})"


def optimizer_arrays(name: str, optimizer: torch.optim.Optimizer) -> dict[str, NDArray[Any]]:
    """The state of an optimizer as arrays `name.PARAMETER.KEY`."""
    return {
        f"{name}.{number}.{key}": value.cpu().numpy()
        for number, values in optimizer.state_dict()["state"].items()
        for key, value in values.items()
    }


def load_optimizer_arrays(name: str, optimizer: torch.optim.Optimizer, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Load what `optimizer_arrays` returned."""
    state: dict[int, dict[str, Tensor]] = {}
    for key, array in arrays.items():
        if key.startswith(f"{name}."):
            _, number, part = key.split(".")
            state.setdefault(int(number), {})[part] = torch.from_numpy(array)
    optimizer.load_state_dict({**optimizer.state_dict(), "state": state})
