"""Negative sampling for the reranker's loss."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Negatives:
    """Sorted distinct items and their log inclusion probabilities; None for the whole catalogue."""

    items: NDArray[np.int64]
    log_inclusion: NDArray[np.float32] | None = None


class NegativeSampler:
    """Draws the negatives of a batch.

    The correction of an item is its probability of being drawn at least once, so distributions can be mixed.
    """

    def __init__(self, kind: str, counts: NDArray[np.int64], number: int) -> None:
        self.kind, self.number = kind, number
        self.num_items = len(counts)
        self.share = counts / max(1, counts.sum())
        self.cumulative = np.cumsum(self.share)
        if kind != "full" and number >= self.num_items:
            self.kind = "full"

    def draw(self, targets: NDArray[np.int64], generator: np.random.Generator) -> Negatives:
        """Negatives for a batch with these targets."""
        return _SOURCES[self.kind](self, targets, generator)

    def _full(self, targets: NDArray[np.int64], generator: np.random.Generator) -> Negatives:
        return Negatives(np.arange(self.num_items))

    def _uniform(self, targets: NDArray[np.int64], generator: np.random.Generator) -> Negatives:
        items = np.unique(generator.integers(0, self.num_items, self.number))
        return self._corrected(items, uniform=self.number)

    def _popularity(self, targets: NDArray[np.int64], generator: np.random.Generator) -> Negatives:
        drawn = np.searchsorted(self.cumulative, generator.random(self.number) * self.cumulative[-1], side="right")
        return self._corrected(np.unique(np.minimum(drawn, self.num_items - 1)), popular=self.number)

    def _in_batch(self, targets: NDArray[np.int64], generator: np.random.Generator) -> Negatives:
        return self._corrected(np.unique(targets), popular=len(targets))

    def _mixed(self, targets: NDArray[np.int64], generator: np.random.Generator) -> Negatives:
        half = max(1, self.number // 2)
        shared = generator.choice(targets, min(half, len(targets)), replace=False)
        uniform = generator.integers(0, self.num_items, half)
        return self._corrected(np.unique(np.concatenate([shared, uniform])), uniform=half, popular=len(shared))

    def _corrected(self, items: NDArray[np.int64], *, uniform: int = 0, popular: int = 0) -> Negatives:
        """With log(1 - P(never drawn)) for `uniform` uniform draws and `popular` draws by item count."""
        missed = uniform * np.log1p(-1 / self.num_items) + popular * np.log1p(-np.minimum(self.share[items], 1 - 1e-9))
        return Negatives(items, np.log(-np.expm1(missed) + 1e-12).astype(np.float32))


_SOURCES: dict[str, Callable[[NegativeSampler, NDArray[np.int64], np.random.Generator], Negatives]] = {
    "full": NegativeSampler._full,
    "uniform": NegativeSampler._uniform,
    "popularity": NegativeSampler._popularity,
    "in-batch": NegativeSampler._in_batch,
    "mixed": NegativeSampler._mixed,
}
