"""Where a new item starts among items that it is like."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def weighted_start(
    vectors: NDArray[np.float32], paths: NDArray[np.int64], weights: Sequence[float]
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """The weighted mean of (item, dim) vectors, and the J paths that weigh most over (item, J) paths of these items.

    Items come best first: of paths that weigh the same, the one of the better item is taken.
    """
    share = np.asarray(weights, np.float32)
    votes: dict[int, float] = {}
    for row, weight in zip(paths.tolist(), weights, strict=True):
        for path in row:
            votes[path] = votes.get(path, 0.0) + weight
    chosen = sorted(votes, key=lambda path: -votes[path])[: paths.shape[1]]
    return (share[:, None] * vectors).sum(axis=0) / share.sum(), np.array([chosen], np.int64)


def mean_length(vectors: NDArray[np.float32]) -> float:
    """The mean Euclidean length of (item, dim) vectors."""
    return float(np.linalg.norm(vectors, axis=1).mean())


def scale_to(vector: NDArray[np.float32], length: float) -> NDArray[np.float32]:
    """The vector with another length: the mean of several vectors is shorter than they are, and would score lower."""
    return vector * np.float32(length / max(float(np.linalg.norm(vector)), 1e-12))
