"""The parts of a query, timed inside one compiled call, beside the limits of the machine.

What `rank` takes longer than its parts is the call itself: checks of arguments, results, and handing over arrays.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from rich.table import Table

from benchmarks.limits import Peaks, measure_peaks, work_of_query
from benchmarks.query_clock import PARTS, TimedQuery
from benchmarks.query_plots import draw_parts
from benchmarks.report import Report
from benchmarks.timing import WARM_CALLS, Seconds, Task, Times, clock

if TYPE_CHECKING:
    from benchmarks.query import Workload

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
    draw_parts(figures, len(flat.model.items), report)


def _breakdown(workload: Workload, peaks: Peaks) -> dict[str, Any]:
    sizes, model = workload.sizes, workload.model
    query = TimedQuery(model.retriever, n=sizes.n, beam=sizes.beam)
    for history in workload.histories[:WARM_CALLS]:
        query(history)
    rounds, calls = [], []
    for _ in range(sizes.repeats):
        rounds.append(_time_parts(query, workload))
        calls.append(clock(Task(workload.rank, sizes.queries))[0])
    whole = Times(np.array(calls))
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


def _time_parts(query: TimedQuery, workload: Workload) -> Seconds:
    """Seconds (part, query)."""
    spent = np.empty((len(PARTS), len(workload.histories)))
    for number, history in enumerate(workload.histories):
        spent[:, number] = 1e-9 * query(history)[0]
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
