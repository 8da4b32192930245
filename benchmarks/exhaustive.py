"""Exact search by one matrix-vector product, as fast as numpy and its BLAS can."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from benchmarks.timing import Task, clock
from pathdex.kernels.types import Floats, Ints
from pathdex.recommenders.deep_retrieval import DeepRetrieval


class Exhaustive:
    """Scores every item in one matrix-vector product and takes the best n.

    The matrix is stored item by item or feature by feature, whichever this BLAS multiplies faster. The bias is one more
    feature. The best are found by a partial sort of the scores and one pass for those that reach the n-th.
    """

    def __init__(self, model: DeepRetrieval) -> None:
        generator = np.random.default_rng(4)
        dim = model.config.embedding_dim
        self.users = generator.standard_normal((8, dim), dtype=np.float32)
        by_item = np.empty((len(model.items), dim + 1), np.float32)
        by_item[:, :dim], by_item[:, dim] = model.item_vectors, model.item_bias
        self._scores = np.empty(len(by_item), np.float32)
        self._matrix, self._by_item = by_item, True
        spent = self._seconds()
        self._matrix, self._by_item = np.ascontiguousarray(by_item.T), False
        if self._seconds() > spent:
            self._matrix, self._by_item = by_item, True

    def describe(self) -> str:
        return f"float32 matrix-vector product, {'item by item' if self._by_item else 'feature by feature'}"

    def scores(self, user: Floats) -> Floats:
        """x . y_v + b_v of all items; overwritten by the next call."""
        extended = np.append(user, np.float32(1.0))
        first, second = (self._matrix, extended) if self._by_item else (extended, self._matrix)
        return np.dot(first, second, out=self._scores)

    def best(self, user: Floats, seen: NDArray[np.integer], n: int) -> Ints:
        """The n best items except the seen ones, best first."""
        scores = self.scores(user)
        scores[seen] = -np.inf
        position = len(scores) - n
        found = np.flatnonzero(scores >= np.partition(scores, position)[position])
        order: Ints = found[np.argsort(-scores[found], kind="stable")][:n]
        return order

    def _seconds(self) -> float:
        task = Task(lambda query: self.scores(self.users[query]), len(self.users))
        clock(task)
        return float(np.median(clock(task)[0]))
