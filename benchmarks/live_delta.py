"""Apply deltas to a mapped model while a thread queries it: seconds per delta, and the queries' latency meanwhile.

`python -m benchmarks live-delta --items 1000000,10000000`. Ten million items need about 5 GB of temporary disk.
"""

from __future__ import annotations

import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.table import Table
from threadpoolctl import threadpool_limits

from benchmarks.query import Sizes
from benchmarks.report import Report, arguments_parser, open_report
from benchmarks.synthetic import random_histories, save_synthetic
from pathdex.data.vocabulary import Vocabulary
from pathdex.kernels.compact import compact_items
from pathdex.kernels.layout import as_readonly
from pathdex.recommenders.live_model import LiveModel
from pathdex.recommenders.model_delta import ModelDelta
from pathdex.retrieval.filters import Filters

NEW, REMOVED = 20, 10
"""New and removed items of a delta, besides the changed ones."""
NODES = {1_000_000: 100, 10_000_000: 150}


@dataclass(frozen=True)
class LiveSizes:
    """Sizes of the measurement."""

    changed: int = 1000
    deltas: int = 40
    pause: float = 0.1
    """Seconds between two deltas."""
    histories: int = 500


def make_delta(model: LiveModel, changed: int, random: np.random.Generator) -> ModelDelta:
    """Random items with new rows and counts; each moves to the paths of some other item. A few are new or removed."""
    state, size = model.model_state, len(model.items)
    chosen = random.choice(size, changed + REMOVED, replace=False)
    removed = np.setdiff1d(chosen[:REMOVED], model.items.removed)
    kept = np.setdiff1d(chosen[REMOVED:], model.items.removed)
    fresh = np.arange(size, size + NEW)
    items = np.sort(np.concatenate([kept, fresh]))
    paths = state.paths[random.choice(size, len(items))].copy()
    unplaced = paths[:, 0] < 0
    paths[unplaced] = state.paths[np.flatnonzero(state.paths[:1000, 0] >= 0)[0]]
    # Some go to paths that no item was on.
    config = model.config
    assert config.num_nodes is not None
    paths[::10, 0] = random.integers(0, config.num_nodes**config.depth, len(paths[::10]))
    ordered = np.sort(paths, axis=1)
    repeated = (np.diff(ordered, axis=1) == 0).any(axis=1)
    paths[repeated] = np.arange(config.paths_per_item)
    return ModelDelta(
        num_items=size + NEW,
        items=items,
        rows=(random.standard_normal((len(items), state.rows.shape[1])) / 8).astype(np.float32),
        paths=paths,
        counts=random.integers(1, 100, len(items)),
        id_codes=fresh,
        ids=Vocabulary(fresh),
        removed=removed,
    )


class QueryThread:
    """Queries a model until it is stopped, and keeps when each began and how long it took."""

    def __init__(self, model: LiveModel, sizes: Sizes, histories: int) -> None:
        self._model, self._sizes = model, sizes
        self._histories = random_histories(len(model.items), histories, sizes.history)
        self._filters = [Filters(exclude=one) for one in self._histories]
        self._stop = threading.Event()
        self._times: list[tuple[float, float]] = []
        self._thread = threading.Thread(target=self._run)

    def start(self) -> QueryThread:
        self._thread.start()
        return self

    def _run(self) -> None:
        query = 0
        while not self._stop.is_set():
            place = query % len(self._histories)
            began = time.perf_counter()
            self._model.rank(self._histories[place], self._sizes.n, self._filters[place], beam=self._sizes.beam)
            self._times.append((began, time.perf_counter() - began))
            query += 1

    def stop(self) -> NDArray[np.float64]:
        """(query, [began, seconds])"""
        self._stop.set()
        self._thread.join()
        return np.array(self._times)


def measure(items: int, live: LiveSizes, sizes: Sizes, folder: Path, report: Report) -> None:
    """One size of the catalogue."""
    nodes = NODES.get(items, sizes.num_nodes)
    parameters = {**sizes.parameters(), "num_nodes": nodes}
    saved = save_synthetic(folder / str(items), items, path_size=sizes.path_size, **parameters)
    report.say(f"made a model of {items:,} items")
    began = time.perf_counter()
    model = LiveModel.open(saved)
    opened = time.perf_counter() - began
    model.set_threads(1)
    model.warmup()
    random = np.random.default_rng(1)
    model.apply(make_delta(model, live.changed, random))
    quiet = _idle(model, sizes, live)
    queries = QueryThread(model, sizes, live.histories).start()
    applied, waits, spans, cpu = [], [], [], []
    for _ in range(live.deltas):
        time.sleep(live.pause)
        delta = make_delta(model, live.changed, random)
        time.sleep(0.02)
        used, began = time.thread_time(), time.perf_counter()
        waits.append(model.apply(delta))
        cpu.append(time.thread_time() - used)
        applied.append(time.perf_counter() - began)
        spans.append((began, began + applied[-1]))
    times = queries.stop()
    during = _within(times, spans)
    beside = _beside_work(model, sizes, live, float(np.median(cpu)))
    figures = {
        "items": items,
        "paths": len(model.postings),
        "open_seconds": round(opened, 3),
        "apply_ms": _percentiles(1e3 * np.array(applied)),
        "apply_cpu_ms": _percentiles(1e3 * np.array(cpu)),
        "exclusive_ms": _percentiles(1e3 * np.array(waits)),
        "query_us_idle": _percentiles(1e6 * quiet),
        "query_us_beside_work": _percentiles(1e6 * beside),
        "query_us_during": _percentiles(1e6 * during),
        "query_us_all": _percentiles(1e6 * times[:, 1]),
        "queries_during": len(during),
        "p99_ratio": round(float(np.percentile(during, 99) / np.percentile(quiet, 99)), 2),
        "p99_ratio_to_other_work": round(float(np.percentile(during, 99) / np.percentile(beside, 99)), 2),
        "wanted": "apply at most 50 ms, p99 ratio at most 1.5",
    }
    table = Table("", "p50", "p99", "most", title=f"{items:,} items, deltas of {live.changed:,} changed items")
    for name, label in (
        ("apply_ms", "apply a delta, ms"),
        ("apply_cpu_ms", "of which on a core, ms"),
        ("exclusive_ms", "of which queries wait, ms"),
        ("query_us_idle", "query without deltas, us"),
        ("query_us_beside_work", "query while a thread computes as long, us"),
        ("query_us_during", "query during a delta, us"),
        ("query_us_all", "query, one delta every 0.1 s, us"),
    ):
        table.add_row(label, *(f"{figures[name][key]:,.2f}" for key in ("p50", "p99", "max")))  # type: ignore[index]
    report.add(f"{items}", figures, table)


def _idle(model: LiveModel, sizes: Sizes, live: LiveSizes) -> NDArray[np.float64]:
    """The seconds of queries while nothing is applied."""
    queries = QueryThread(model, sizes, live.histories).start()
    time.sleep(live.deltas * live.pause)
    seconds: NDArray[np.float64] = queries.stop()[20:, 1]
    return seconds


def _within(times: NDArray[np.float64], spans: list[tuple[float, float]]) -> NDArray[np.float64]:
    """The seconds of the queries that overlap a span."""
    return np.concatenate([times[(times.sum(axis=1) > a) & (times[:, 0] < b), 1] for a, b in spans])


def _beside_work(model: LiveModel, sizes: Sizes, live: LiveSizes, seconds: float) -> NDArray[np.float64]:
    """The seconds of queries while another thread uses a core for as long as a delta does.

    It needs neither the model nor the interpreter, so this is what queries lose to the machine alone.
    """
    rows = as_readonly(np.ones((2000, sizes.parameters()["embedding_dim"] + 1), np.float32))
    compact_items(rows, rows.shape[1] - 1)
    queries, spans = QueryThread(model, sizes, live.histories).start(), []
    for _ in range(live.deltas):
        time.sleep(live.pause + 0.02)
        began, used = time.perf_counter(), time.thread_time()
        while time.thread_time() - used < seconds:
            compact_items(rows, rows.shape[1] - 1)
        spans.append((began, time.perf_counter()))
    return _within(queries.stop(), spans)


def _percentiles(values: NDArray[np.float64]) -> dict[str, float]:
    p50, p99 = np.percentile(values, (50, 99))
    return {"p50": round(float(p50), 3), "p99": round(float(p99), 3), "max": round(float(values.max()), 3)}


def main(arguments: list[str]) -> None:
    parser = arguments_parser("live-delta", __doc__)
    parser.add_argument("--items", default="1000000", help="catalogue sizes, comma-separated")
    parser.add_argument("--changed", type=int, default=LiveSizes.changed, help="changed items per delta")
    given: Any = parser.parse_args(arguments)
    sizes = Sizes.quick() if given.quick else Sizes()
    live = LiveSizes(given.changed, 5, 0.02, 50) if given.quick else LiveSizes(given.changed)
    report = open_report("live-delta", given)
    counts = [sizes.items] if given.quick else [int(one) for one in given.items.split(",")]
    with threadpool_limits(1), tempfile.TemporaryDirectory(prefix="pathdex-bench-") as folder:
        for items in counts:
            measure(items, live, sizes, Path(folder), report)
