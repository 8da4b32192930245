"""Large batches of queries on several threads: compiled code releases the interpreter's lock."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

CORES = os.cpu_count() or 1
QUERIES_PER_THREAD = 8
"""Minimum number of queries per thread."""
PARTS_PER_THREAD = 4
"""Parts of a batch per thread, so that one slow part does not keep the others waiting."""


def in_threads(answer: Callable[[range], None], count: int, threads: int | None) -> None:
    """Call `answer` for 0..count-1 in parts, on at most `threads` threads; None for one per core."""
    threads = min(threads or CORES, count // QUERIES_PER_THREAD)
    if threads < 2:
        answer(range(count))
        return
    cuts = [count * part // (PARTS_PER_THREAD * threads) for part in range(PARTS_PER_THREAD * threads + 1)]
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(lambda first, end: answer(range(first, end)), cuts[:-1], cuts[1:]))
