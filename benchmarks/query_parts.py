"""The parts of a query, timed inside whole queries, beside the limits of the machine."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.table import Table

from benchmarks.limits import Peaks, measure_peaks, work_of_query
from benchmarks.plots import bars
from benchmarks.report import Report
from benchmarks.timing import WARM_CALLS, Seconds, Task, Times, alternate
from pathdex.kernels.beam import beam_search
from pathdex.kernels.candidates import ALL_ITEMS, gather_items, rerank
from pathdex.kernels.layout import as_readonly

if TYPE_CHECKING:
    from benchmarks.query import Workload

PARTS = ("encode", "beam", "gather", "rerank")
COUNTED = 50
"""Queries over which the work is averaged."""


def measure(flat: Workload, peaked: Workload, report: Report) -> None:
    """Time and limit of every part, for flat and for peaked path probabilities."""
    peaks = measure_peaks(flat.model.retriever.table)
    report.say(f"one core: {peaks.multiply_adds / 1e9:.1f} GMAC/s, memory {peaks.memory_bytes / 1e9:.1f} GB/s")
    figures: dict[str, Any] = {"peaks": peaks.to_dict()}
    for name, workload in (("flat", flat), ("peaked", peaked)):
        figures[name] = _breakdown(workload, peaks)
    report.add("breakdown", figures, _table(figures, peaks))
    rows = figures["flat"]["parts"]
    bars(
        report.plot_file("-breakdown"),
        list(PARTS),
        {"measured": [rows[part]["microseconds"] for part in PARTS], "limit": [rows[part]["limit"] for part in PARTS]},
        "microseconds",
        f"One query of {len(flat.model.items):,} items, one thread",
    )


def _breakdown(workload: Workload, peaks: Peaks) -> dict[str, Any]:
    sizes, model = workload.sizes, workload.model
    rounds = [_time_parts(workload) for _ in range(sizes.repeats)]
    whole = alternate({"whole": Task(workload.rank, sizes.queries)}, sizes.repeats)["whole"]
    users = np.array([model.retriever.encoder.encode(one[0]).vector for one in workload.histories[:COUNTED]])
    candidates = float(np.mean([workload.rank(query).candidates[0] for query in range(sizes.queries)]))
    work = work_of_query(model, users, sizes.beam, sizes.history, candidates)
    parts: dict[str, Any] = {}
    for number, part in enumerate(PARTS):
        times = Times(np.array([one[number] for one in rounds]))
        limits = work[part].limits(peaks)
        limit = max(limits.values())
        parts[part] = {
            **times.to_dict(),
            "work": vars(work[part]),
            "limits": limits,
            "limit": limit,
            "times_limit": times.microseconds / limit,
        }
    total = sum(one["microseconds"] for one in parts.values())
    return {
        "parts": parts,
        "sum": total,
        "limit": sum(one["limit"] for one in parts.values()),
        "whole": whole.to_dict(),
        "around": whole.microseconds - total,
        "sharpest_path": float(np.mean([np.exp(model.retriever.search_paths(user, 1)[1][0]) for user in users])),
    }


def _time_parts(workload: Workload) -> Seconds:
    """Seconds (part, query). The parts run one after the other, so that caches are as in a whole query."""
    sizes, retriever = workload.sizes, workload.model.retriever
    weight = np.float32(workload.model.config.path_weight)
    spent = np.empty((len(PARTS), sizes.queries))
    for query in [*range(min(WARM_CALLS, sizes.queries)), *range(sizes.queries)]:
        history = workload.histories[query][0]
        seen = as_readonly(history, np.int32)
        ticks = [time.perf_counter()]
        user = retriever.encoder.encode(history).vector
        ticks.append(time.perf_counter())
        positions, log_p = beam_search(retriever.structure, retriever.trie, user, sizes.beam, retriever.structure.depth)
        ticks.append(time.perf_counter())
        items, log_probability = gather_items(retriever.on_paths, positions, log_p, seen, ALL_ITEMS, retriever.compact)
        ticks.append(time.perf_counter())
        rerank(retriever.table, retriever.compact, user, items, weight * log_probability, sizes.n)
        ticks.append(time.perf_counter())
        spent[:, query] = np.diff(ticks)
    return spent


def _table(figures: dict[str, Any], peaks: Peaks) -> Table:
    title = (
        f"one query in microseconds; one core: {peaks.multiply_adds / 1e9:.1f} G multiply-adds/s, "
        f"cache {peaks.cache_bytes / 1e9:.0f} GB/s, memory {peaks.memory_bytes / 1e9:.1f} GB/s, random row "
        f"{1e9 * peaks.row_seconds:.0f} ns, line {1e9 * peaks.line_seconds:.0f} ns, "
        f"latency {1e9 * peaks.latency_seconds:.0f} ns"
    )
    columns = ("paths", "part", "time", "range", "arithmetic", "cache", "memory", "time / limit")
    table = Table(*columns, title=title)
    for name in ("flat", "peaked"):
        one = figures[name]
        for part, row in one["parts"].items():
            low, high = row["range"]
            limits = [f"{value:.1f}" for value in row["limits"].values()]
            times = f"{row['times_limit']:.1f}"
            table.add_row(name, part, f"{row['microseconds']:.1f}", f"{low:.1f} to {high:.1f}", *limits, times)
        table.add_row(name, "around them", f"{one['around']:.1f}")
        whole = one["whole"]["microseconds"]
        table.add_row(name, "whole", f"{whole:.1f}", "", "", "", "", f"{whole / one['limit']:.1f}", end_section=True)
    return table
