"""Start a training from an earlier model: its network, and the vectors and paths of the items that both know."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from pathdex.config import Config
from pathdex.data.vocabulary import UNKNOWN
from pathdex.errors import ConfigError, Problem
from pathdex.model.network import ITEM_ROWS, Network

SHARED = ("encoder", "embedding_dim", "history_length", "shared_items")
"""Hyper-parameters that must agree to reuse an encoder's weights."""
SHAPE = (*SHARED, "structure", "structure_hidden", "node_dim", "num_nodes", "depth", "paths_per_item")
"""Those that must agree to reuse a whole network and its paths."""
BLOCK = 4096
"""New items whose nearest known item is looked for at a time."""


@dataclass(frozen=True)
class WarmStart:
    """An earlier model, and where its items are in the new catalogue."""

    config: Config
    weights: Mapping[str, NDArray[np.float32]]
    """Of its network, with its item table."""
    paths: NDArray[np.int64]
    codes: NDArray[np.int64]
    """The earlier code of each item, `UNKNOWN` for a new one."""

    @property
    def known(self) -> NDArray[np.bool_]:
        """Which items the earlier model has."""
        found: NDArray[np.bool_] = self.codes != UNKNOWN
        return found

    def identity(self) -> int:
        """A number that differs between models, for checkpoints."""
        return zlib.crc32(np.ascontiguousarray(self.weights[ITEM_ROWS]).tobytes(), zlib.crc32(self.codes.tobytes()))

    def check(self, config: Config) -> None:
        """Raise `ConfigError` unless a training with this configuration can start here."""
        check_same(self.config, config, SHAPE)

    def restore(self, network: Network, bias: NDArray[np.float32] | None) -> None:
        """Give a new network the earlier weights. New items keep their random vectors and get the given biases."""
        known, rows = self.known, network.export()[ITEM_ROWS].copy()
        rows[known] = self.weights[ITEM_ROWS][self.codes[known]]
        if bias is not None:
            rows[~known, -1] = bias[~known]
        dense = {name: value for name, value in self.weights.items() if name != ITEM_ROWS}
        network.restore({**dense, ITEM_ROWS: rows})

    def place(self, paths: NDArray[np.int64], vectors: NDArray[np.float32]) -> NDArray[np.int64]:
        """The earlier paths of known items; those of its nearest known item, by cosine similarity, for a new one."""
        known = self.known
        placed = paths.copy()
        placed[known] = self.paths[self.codes[known]]
        old, new = np.flatnonzero(known), np.flatnonzero(~known)
        unit = torch.nn.functional.normalize(torch.from_numpy(np.ascontiguousarray(vectors)), dim=1)
        for begin in range(0, len(new), BLOCK):
            part = new[begin : begin + BLOCK]
            nearest = (unit[torch.from_numpy(part)] @ unit[torch.from_numpy(old)].T).argmax(dim=1).numpy()
            placed[part] = placed[old[nearest]]
        return placed


def check_same(earlier: Config, config: Config, names: tuple[str, ...]) -> None:
    """Raise `ConfigError` for each of the hyper-parameters that two configurations do not share."""
    differing: list[Problem | str] = [
        Problem(
            f"the earlier model has {getattr(earlier, name)!r}",
            name,
            getattr(config, name),
            "choose the same, or train from scratch",
        )
        for name in names
        if getattr(earlier, name) != getattr(config, name)
    ]
    if differing:
        raise ConfigError(differing)


def without_popularity(rows: NDArray[np.float32], weight: float | None, log_counts: NDArray[Any]) -> NDArray[Any]:
    """An item table of a model without what its `popularity_weight` added to the biases after training."""
    if not weight:
        return rows
    rows = rows.copy()
    rows[:, -1] -= np.float32(weight) * log_counts
    return rows
