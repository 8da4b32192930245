"""Workers as threads of one process, for what needs no torch."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Result = TypeVar("Result")


class ThreadPeers:
    """The place of one thread among `size`."""

    def __init__(self, rank: int, size: int, barrier: threading.Barrier, board: list[Any]) -> None:
        self.rank, self.size, self._barrier, self._board = rank, size, barrier, board

    def gather(self, array: NDArray[Any]) -> list[NDArray[Any]]:
        self._board[self.rank] = np.array(array)
        self._barrier.wait()
        found = list(self._board)
        self._barrier.wait()
        return found

    def stack(self, array: NDArray[Any]) -> NDArray[Any]:
        return np.stack(self.gather(array))

    def total(self, array: NDArray[Any] | float) -> NDArray[Any]:
        return np.sum(self.gather(np.asarray(array)), axis=0)


def run_peers(size: int, work: Callable[[ThreadPeers], Result]) -> list[Result]:
    """The results of all workers."""
    barrier, board = threading.Barrier(size, timeout=60), [None] * size
    peers = [ThreadPeers(rank, size, barrier, board) for rank in range(size)]

    def guarded(one: ThreadPeers) -> Result:
        try:
            return work(one)
        except BaseException:
            barrier.abort()
            raise

    with ThreadPoolExecutor(size) as pool:
        return list(pool.map(guarded, peers))
