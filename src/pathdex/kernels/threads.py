"""Ranges of independent rows on several threads.

Numba's own parallel loops do the same. But it compiles such a loop several times, which takes seconds in a new
installation.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numba

RANGES_PER_THREAD = 4
"""So that one slow range does not keep the other threads waiting."""


def run_ranges(work: Callable[[int, int], None], count: int, *, least: int) -> None:
    """Call `work(first, end)` for ranges that cover 0 .. `count` - 1, on as many threads as numba has.

    `work` calls compiled code that releases the GIL. Ranges have at least `least` rows, so that a thread is worth it.
    """
    threads = numba.get_num_threads()
    ranges = min(RANGES_PER_THREAD * threads, count // least)
    if threads == 1 or ranges < 2:
        work(0, count)
        return
    cuts = [count * one // ranges for one in range(ranges + 1)]
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(work, cuts[:-1], cuts[1:]))
