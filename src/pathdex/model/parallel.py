"""Work on blocks of rows on several threads.

Torch's own threads spin while they wait for work, which costs a loaded machine most of its time, and each operator is
too short to be worth two threads. Here a thread takes a whole block through several operators and sleeps in between.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import TypeVar

import torch
from torch import Tensor

ROWS = 512
"""Rows of a product that a thread computes at once."""

Result = TypeVar("Result")
_threads = 1


def blocks(rows: int, size: int) -> list[slice]:
    """Consecutive blocks of `size` rows; the last one may be shorter. Depends on the numbers only."""
    return [slice(first, min(first + size, rows)) for first in range(0, max(rows, 1), size)]


@contextmanager
def own_threads(*, enabled: bool = True) -> Iterator[None]:
    """Let `run_blocks` use as many threads as torch has, and torch itself only one meanwhile."""
    global _threads
    before, torch_threads = _threads, torch.get_num_threads()
    if not enabled or torch_threads == 1:
        yield
        return
    _threads = torch_threads
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(torch_threads)
        _threads = before


def run_blocks(work: Callable[[slice], Result], parts: list[slice]) -> list[Result]:
    """Results of `work` on each part, within `own_threads` on several threads."""
    if _threads == 1 or len(parts) == 1:
        return [work(part) for part in parts]
    return list(_pool(_threads).map(torch.no_grad()(work), parts))  # Gradients are on in a new thread.


def sum_in_order(tensors: tuple[Tensor, ...]) -> Tensor:
    """The sum of tensors, added in the given order; changes the first."""
    total = tensors[0]
    for one in tensors[1:]:
        total += one
    return total


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix="pathdex", initializer=torch.set_num_threads, initargs=(1,))
