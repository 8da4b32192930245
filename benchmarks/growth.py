"""Query time by catalogue size at a fixed path size, and the time to open a large bundle."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.table import Table

from benchmarks.exhaustive import Exhaustive
from benchmarks.query_plots import draw_growth
from benchmarks.report import Report
from benchmarks.synthetic import open_model, save_synthetic
from benchmarks.timing import Task, alternate, ratio, shown

if TYPE_CHECKING:
    from benchmarks.query import Sizes

# Opens a bundle, answers two queries and prints seconds and memory as JSON.
OPENING = """
import json, sys, time
begin = time.perf_counter()
import pathdex.recommenders.registry, pathdex.recommenders.deep_retrieval
imported = time.perf_counter()
model = pathdex.load(sys.argv[1])
opened = time.perf_counter()
history = list(range(0, len(model.items), len(model.items) // 69))[:69]
model.recommend(history, 200)
first = time.perf_counter()
model.recommend(history[::-1], 200)
second = time.perf_counter()
with open("/proc/self/status") as file:
    status = dict(line.split(":", 1) for line in file)
memory = {name: int(status[name].split()[0]) / 1024 for name in ("VmRSS", "RssAnon", "RssFile")}
print(json.dumps({"import": imported - begin, "load": opened - imported, "first_answer": first - opened,
                  "second_answer": second - first, "torch": "torch" in sys.modules, "memory_mb": memory}))
"""


def measure(sizes: Sizes, folder: Path, report: Report, *, times: bool, opening: bool) -> None:
    """Save a bundle of every size and measure them together."""
    saved: dict[int, Path] = {}
    for items in sizes.growth_items if times else sizes.growth_items[-1:]:
        parameters = {**sizes.parameters(), "num_nodes": sizes.growth_nodes}
        saved[items] = save_synthetic(folder / f"items-{items}", items, path_size=sizes.path_size, **parameters)
        gc.collect()
        report.say(f"saved a bundle of {items:,} items")
    if times:
        _time(sizes, saved, report)
        gc.collect()
    if opening:
        _open(saved[sizes.growth_items[-1]], sizes.growth_items[-1], sizes.repeats, report)


def _time(sizes: Sizes, saved: dict[int, Path], report: Report) -> None:
    from benchmarks.query import Workload

    workload = {items: Workload.of(open_model(folder), sizes) for items, folder in saved.items()}
    times = alternate({str(items): Task(one.rank, sizes.queries) for items, one in workload.items()}, sizes.repeats)
    exhaustive = {}
    for items, one in workload.items():
        exact = Exhaustive(one.model)

        def brute(query: int, exact: Exhaustive = exact, workload: Workload = one) -> Any:
            return exact.best(exact.users[query % 8], workload.histories[query][0], sizes.n)

        exhaustive[str(items)] = alternate({"brute": Task(brute, sizes.slow_queries)}, sizes.repeats)["brute"]
        del exact, brute
        gc.collect()
    smallest = str(min(saved))
    figures = {
        name: {
            "paths": len(workload[int(name)].model.postings),
            "candidates": float(np.mean([workload[int(name)].rank(query).candidates[0] for query in range(20)])),
            "query": times[name].to_dict(),
            "query_over_smallest": ratio(times[name], times[smallest]),
            "brute_force": exhaustive[name].to_dict(),
            "brute_force_over_smallest": ratio(exhaustive[name], exhaustive[smallest]),
        }
        for name in times
    }
    table = Table("items", "paths", "query, us", "growth", "brute force, us", "growth", title="fixed path size")
    for name, row in figures.items():
        table.add_row(
            f"{int(name):,}",
            f"{row['paths']:,}",
            f"{row['query']['microseconds']:,.0f}",
            shown(row["query_over_smallest"]),
            f"{row['brute_force']['microseconds']:,.0f}",
            shown(row["brute_force_over_smallest"]),
        )
    report.add("growth", {"sizes": figures, "wanted": "growth of at most 2 over 100 times the items"}, table)
    draw_growth(figures, report)


def _open(folder: Path, items: int, repeats: int, report: Report) -> None:
    """Open the bundle in fresh processes, with its files in the page cache and without."""
    runs: dict[str, list[dict[str, Any]]] = {"warm": [], "cold": []}
    for _ in range(max(3, repeats // 2)):
        for kind in runs:
            if kind == "cold":
                _forget(folder)
            runs[kind].append(_in_process(folder))
    size = sum(file.stat().st_size for file in folder.iterdir())
    table = Table("files", "load, s", "first answer, s", "second, ms", "resident, MB", "anonymous, MB")
    table.title = f"opening a bundle of {items:,} items, {size / 1e9:.2f} GB"
    figures: dict[str, Any] = {"items": items, "bytes": size, "runs": runs}
    for kind, row in runs.items():
        middle = {name: float(np.median([one[name] for one in row])) for name in row[0] if name != "memory_mb"}
        memory = {name: float(np.median([one["memory_mb"][name] for one in row])) for name in row[0]["memory_mb"]}
        figures[kind] = {**middle, "memory_mb": memory}
        answers = (f"{middle['first_answer']:.3f}", f"{1e3 * middle['second_answer']:.2f}")
        table.add_row(kind, f"{middle['load']:.3f}", *answers, f"{memory['VmRSS']:,.0f}", f"{memory['RssAnon']:,.0f}")
    report.add("opening", figures, table)


def _in_process(folder: Path) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-c", OPENING, str(folder)], capture_output=True, text=True, check=True, cwd=Path.cwd()
    )
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def _forget(folder: Path) -> None:
    """Drop the folder's files from the page cache."""
    for file in folder.iterdir():
        handle = os.open(file, os.O_RDONLY)
        try:
            os.fsync(handle)
            os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(handle)
