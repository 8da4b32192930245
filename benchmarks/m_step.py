"""Time of the M-step by catalogue size.

    python -m benchmarks m-step                              # 10^5, 10^6 and 10^7 items
    python -m benchmarks m-step --items 100000 --items 1000000
    python -m benchmarks m-step --items 1000000 --threads 2   # the clock, on one thread and on two in turn
    python -m benchmarks m-step --out-of-core 20000000 --folder DISK --memory 5   # a table on disk, 5 GB of memory

One M-step is one call of `assign_paths`: check a table of V x S scored paths, assign path ids, then run T iterations of
Algorithm 2. Times are CPU seconds of one thread, so they do not depend on other load.
10^7 items need about 8 GB of memory. Out of core, a table takes 1,000 bytes per item of disk until the end.
"""

from __future__ import annotations

import argparse
import gc
import json
import resource
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numba
import numpy as np
from numba import njit

from benchmarks.machine import describe_machine, peak_memory
from pathdex.index.coordinate_descent import assign_paths
from pathdex.index.out_of_core import assign_paths_out_of_core
from pathdex.kernels.types import Floats, Ints

ITEMS = (100_000, 1_000_000, 10_000_000)
PATHS_PER_ITEM, CANDIDATE_PATHS, ITERATIONS, PENALTY = 3, 50, 4, 0.01


@dataclass(frozen=True)
class MStepTime:
    """CPU seconds of one M-step, one per repeat."""

    items: int
    seconds: tuple[float, ...]
    mean_size: float
    top_size: int

    @property
    def items_per_second(self) -> float:
        """Items per second of one core, through a whole M-step."""
        return self.items / float(np.median(self.seconds))

    @property
    def spread(self) -> float:
        """Half the range of the repeats, relative to their median."""
        return (max(self.seconds) - min(self.seconds)) / 2 / float(np.median(self.seconds))


def run(items: Sequence[int] = ITEMS, *, repeats: int = 3) -> list[MStepTime]:
    """Time the M-step on synthetic tables of these sizes, each `repeats` times on one thread."""
    threads = numba.get_num_threads()
    numba.set_num_threads(1)
    try:
        _time(1000, 1)  # compile
        return [_time(size, repeats) for size in items]
    finally:
        numba.set_num_threads(threads)


def report(times: Sequence[MStepTime]) -> str:
    """A text table; growth is the time per item relative to the first row."""
    lines = [
        f"M-step: J={PATHS_PER_ITEM}, S={CANDIDATE_PATHS}, T={ITERATIONS} iterations, one core",
        f"{'items':>12} {'seconds':>9} {'spread':>8} {'items/s':>10} {'updates/s':>11} {'growth':>7}   path size",
    ]
    for one in times:
        growth = times[0].items_per_second / one.items_per_second
        lines.append(
            f"{one.items:>12,} {np.median(one.seconds):>9.2f} {one.spread:>7.0%} {one.items_per_second:>11,.0f} "
            f"{one.items_per_second * ITERATIONS:>11,.0f} {growth:>7.2f}   mean {one.mean_size:.1f}, top {one.top_size}"
        )
    return "\n".join(lines)


def _time(items: int, repeats: int) -> MStepTime:
    codes, scores, counts, current = synthetic_table(items)
    seconds = []
    for _ in range(repeats):
        begin = time.process_time()
        paths = assign_paths(codes, scores, counts, current, penalty=PENALTY, iterations=ITERATIONS)
        seconds.append(time.process_time() - begin)
    sizes = np.unique(paths, return_counts=True)[1]
    del codes, scores
    gc.collect()
    return MStepTime(items, tuple(seconds), float(sizes.mean()), int(sizes.max()))


def thread_scaling(items: int, threads: int, repeats: int) -> dict[int, list[float]]:
    """Seconds by the clock of an M-step on one thread and on several, in turn."""
    before = numba.get_num_threads()
    codes, scores, counts, current = synthetic_table(items)
    seconds: dict[int, list[float]] = {1: [], threads: []}
    try:
        for repeat in range(repeats + 1):
            for number in seconds:
                numba.set_num_threads(number)
                begin = time.perf_counter()
                assign_paths(codes, scores, counts, current, penalty=PENALTY, iterations=ITERATIONS)
                if repeat > 0:  # The first one compiles.
                    seconds[number].append(time.perf_counter() - begin)
    finally:
        numba.set_num_threads(before)
    return seconds


def report_threads(items: int, seconds: dict[int, list[float]]) -> str:
    """A line per number of threads, and the ratio of each pair of runs."""
    lines = [
        f"{items:,} items, {number} threads: median {np.median(times):.2f} s ({min(times):.2f} to {max(times):.2f})"
        for number, times in seconds.items()
    ]
    one, several = seconds.values()
    ratios = np.divide(one, several)
    lines.append(f"ratio: median {np.median(ratios):.2f} ({ratios.min():.2f} to {ratios.max():.2f})")
    return "\n".join(lines)


def synthetic_table(
    items: int,
) -> tuple[Ints, Floats, Floats, Ints]:
    """Scored paths that crowd around popular ones, as many paths as items: codes, scores, counts, paths."""
    codes = np.empty((items, CANDIDATE_PATHS), np.int64)
    scores = np.empty((items, CANDIDATE_PATHS), np.float32)
    _fill(codes, scores, 7, items)
    counts = np.random.default_rng(7).geometric(0.1, items).astype(np.float32)
    return codes, scores, counts, codes[:, -PATHS_PER_ITEM:].copy()


@njit(cache=True)
def _fill(codes: Ints, scores: Floats, seed: int, items: int) -> None:
    np.random.seed(seed)
    for v in range(len(codes)):
        # Squares crowd the items towards path 0; scores fall in random steps, so that rows are sorted.
        path = np.int64(np.random.random() ** 2 * items)
        log_score = 0.0
        for s in range(codes.shape[1]):
            codes[v, s] = path % items
            scores[v, s] = np.exp(log_score)
            path += 1 + np.random.randint(0, 8)
            log_score -= 0.3 * np.random.random()


def out_of_core(items: int, folder: Path, memory: float) -> dict[str, Any]:
    """An M-step over a table on disk, with at most `memory` GB that are not mapped from it; enforced by the kernel."""
    resource.setrlimit(resource.RLIMIT_DATA, (int(memory * 2**30), int(memory * 2**30)))
    with tempfile.TemporaryDirectory(dir=folder) as place:
        shape, part = (items, CANDIDATE_PATHS), 1_000_000
        files = Path(place, "codes.npy"), Path(place, "scores.npy")
        current = np.empty((items, PATHS_PER_ITEM), np.int64)
        for first in range(0, items, part):
            codes = np.empty((min(part, items - first), shape[1]), np.int64)
            scores = np.empty(codes.shape, np.float32)
            _fill(codes, scores, 7 + first, items)
            current[first : first + part] = codes[:, -PATHS_PER_ITEM:]
            for file, rows, kind in zip(files, (codes, scores), (np.int64, np.float32), strict=True):
                mode = "w+" if first == 0 else "r+"
                np.lib.format.open_memmap(file, mode, kind, shape)[first : first + part] = rows
        counts = np.random.default_rng(7).geometric(0.1, items).astype(np.float32)
        marks: dict[str, tuple[float, float]] = {}

        def mark(step: str, done: int, total: int) -> None:
            marks[step] = time.process_time(), time.perf_counter()

        mark("begin", 0, 0)
        codes, scores = (np.load(file, mmap_mode="r") for file in files)
        options: dict[str, Any] = {"penalty": PENALTY, "iterations": ITERATIONS, "folder": place}
        assign_paths_out_of_core(codes, scores, counts, current, progress=mark, **options)
        mark("end", 0, 0)
    steps = list(marks)
    spent = {b: [marks[b][i] - marks[a][i] for i in (0, 1)] for a, b in pairwise(steps)}
    cpu, wall = (marks["end"][i] - marks["begin"][i] for i in (0, 1))
    return {"items": items, "memory_limit_gb": memory, "cpu": cpu, "elapsed": wall, "steps": spent}


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, action="append", help="catalogue size; repeat for several")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, help="compare one thread with so many, by the clock")
    parser.add_argument("--out-of-core", type=int, help="this many items in a table on disk instead")
    parser.add_argument("--folder", type=Path, help="where the table goes; default: the system's temporary folder")
    parser.add_argument("--memory", type=float, default=5.0, help="GB of memory for --out-of-core")
    parser.add_argument("--out", type=Path, help="write the figures as JSON")
    given = parser.parse_args(arguments)
    figures: dict[str, Any] = {"machine": describe_machine()}
    if given.out_of_core:
        _time(1000, 1)  # compile
        numba.set_num_threads(1)
        figures["out_of_core"] = out_of_core(given.out_of_core, given.folder, given.memory)
        print(json.dumps(figures["out_of_core"], indent=1))
    elif given.threads:
        for items in given.items or ITEMS[:2]:
            scaling = thread_scaling(items, given.threads, given.repeats)
            print(report_threads(items, scaling), flush=True)
            figures.setdefault("threads", []).append({"items": items, "seconds": scaling})
    else:
        times = run(given.items or ITEMS, repeats=given.repeats)
        print(report(times))
        figures["sizes"] = [{"items": one.items, "cpu": one.seconds} for one in times]
        figures["peak_memory_gb"] = peak_memory()
    if given.out is not None:
        given.out.write_text(json.dumps(figures, indent=1) + "\n")
