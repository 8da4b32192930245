"""Metrics in the text format of Prometheus, summed over all worker processes.

Each worker owns a row of 64-bit integers in a mapped file without a name, and any worker can read all rows. A
replacement worker takes over the row of the worker that died, so counters never decrease. The file is gone with the
last process that has it open, however it ends. Durations are kept in nanoseconds.
"""

from __future__ import annotations

import mmap
import os
import tempfile
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from functools import cache
from itertools import accumulate

from pathdex.server.routes import ROUTES

STATUSES = (200, 202, 304, 307, 400, 401, 404, 405, 408, 409, 413, 415, 421, 422, 429, 431, 499, 500, 503, 504)
BUCKETS = (0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Upper bounds of the duration histogram, in seconds."""
_NANOSECONDS = [round(bound * 1e9) for bound in BUCKETS]
OTHER = "other"
"""The label `route` of requests that match no route."""
LABELS = (*dict.fromkeys(route.path for route in ROUTES), OTHER)

REQUESTS, DURATION = "pathdex_http_requests_total", "pathdex_http_request_duration_seconds"
COUNTERS = {
    "pathdex_queries_total": "Queries answered; a request may contain many.",
    "pathdex_unknown_history_items_total": "History items that are not in the catalogue.",
    "pathdex_user_events_total": "Events appended to the user store.",
    "pathdex_user_store_errors_total": "Failed calls to the user store.",
    "pathdex_sink_events_total": "Events appended to the stream.",
    "pathdex_sink_item_changes_total": "Items added to and removed from the stream.",
    "pathdex_sink_errors_total": "Failed or timed-out appends to the stream.",
    "pathdex_model_reloads_total": "New model versions loaded, counted in each worker.",
    "pathdex_model_reload_failures_total": "New model versions rejected, counted in each worker.",
    "pathdex_model_verification_failures_total": "Served models with a wrong checksum, counted in each worker.",
    "pathdex_model_deltas_total": "Deltas of a live folder applied, counted in each worker.",
    "pathdex_worker_starts_total": "Worker processes started.",
}
GAUGES = {
    "pathdex_http_requests_in_flight": "Requests being processed.",
    "pathdex_workers_ready": "Worker processes that are ready.",
    "pathdex_workers_resident_memory_bytes": "Resident memory of the workers; shared pages count in each.",
}
HELP = {
    **COUNTERS,
    **GAUGES,
    REQUESTS: "HTTP requests by route and status.",
    DURATION: "Time from the end of the request headers to the end of the response.",
    "pathdex_model_info": "Version of the model loaded last.",
    "pathdex_model_workers": "Workers by the model version they serve.",
    "pathdex_model_delta_seconds": "Time to read and apply a delta, of the last update of the slowest worker.",
    "pathdex_model_items": "Catalogue items of the model loaded last.",
    "pathdex_model_loaded_timestamp_seconds": "Unix time at which the last model was loaded.",
}
PARTIAL = "pathdex_router_partial_answers_total"
SHARD_COUNTERS = {
    "requests": "Calls",
    "failures": "Failed calls",
    "retries": "Repeated calls",
    "hedges": "Hedged calls",
}
SHARD_DURATION = "pathdex_shard_duration_seconds"
ROUTER_HELP = {
    PARTIAL: "Answers of a router that lack the items of a shard.",
    SHARD_DURATION: "Time until a shard answered, retries included.",
    **{f"pathdex_shard_{name}_total": f"{text} of a shard." for name, text in SHARD_COUNTERS.items()},
}
_VERSION, _ITEMS, _LOADED, _DELTA = "version", "items", "loaded", "delta"


def _layout() -> dict[tuple[object, ...], int]:
    keys: list[tuple[object, ...]] = [(name,) for name in (*COUNTERS, *GAUGES, _VERSION, _ITEMS, _LOADED, _DELTA)]
    keys += [("requests", route, status) for route in LABELS for status in STATUSES]
    keys += [("bucket", route, place) for route in LABELS for place in range(len(BUCKETS) + 1)]
    keys += [("seconds", route) for route in LABELS]
    return {key: place for place, key in enumerate(keys)}


LAYOUT = _layout()


@cache
def _layout_with(shards: int) -> dict[tuple[object, ...], int]:
    """The layout of a router, which has cells for each shard behind those of every server."""
    keys: list[tuple[object, ...]] = [(PARTIAL,)] if shards else []
    keys += [(name, shard) for name in (*SHARD_COUNTERS, "seconds") for shard in range(shards)]
    keys += [("bucket", shard, place) for shard in range(shards) for place in range(len(BUCKETS) + 1)]
    return {**LAYOUT, **{key: len(LAYOUT) + place for place, key in enumerate(keys)}}


def new_metrics_file(workers: int, shards: int = 0) -> int:
    """The descriptor of an empty file for so many workers and, of a router, shards.

    It is in memory if the system allows it: with a full disk, the first write to a mapped file on disk would end the
    process.
    """
    if hasattr(os, "memfd_create"):
        handle = os.memfd_create("pathdex-metrics")
    else:
        with tempfile.TemporaryFile() as file:
            handle = os.dup(file.fileno())
    os.ftruncate(handle, workers * 8 * len(_layout_with(shards)))
    return handle


class ServerMetrics:
    """The metrics of one worker, and those of its siblings in the same file."""

    def __init__(self, file: int = -1, slot: int = 0, workers: int = 1, shards: int = 0) -> None:
        """`file` is what `new_metrics_file` returned; without it, this is the only worker."""
        self._shards, self._cells = shards, _layout_with(shards)
        width = len(self._cells)
        cells = memoryview(mmap.mmap(file, workers * 8 * width)).cast("q")
        self._rows = [cells[place * width : (place + 1) * width] for place in range(workers)]
        self._row = self._rows[slot]
        for name in (*GAUGES, _VERSION, _ITEMS, _LOADED, _DELTA):
            self._row[LAYOUT[name,]] = 0

    def add(self, name: str, number: int = 1) -> None:
        """Increase a counter, or change a gauge."""
        self._row[LAYOUT[name,]] += number

    def set(self, name: str, number: int) -> None:
        """Set a gauge."""
        self._row[LAYOUT[name,]] = number

    def observe(self, route: str, status: int, nanoseconds: int) -> None:
        """Record one request."""
        row = self._row
        row[LAYOUT["requests", route, status if status in STATUSES else 500]] += 1
        row[LAYOUT["bucket", route, bisect_left(_NANOSECONDS, nanoseconds)]] += 1
        row[LAYOUT["seconds", route]] += nanoseconds

    def set_model(self, version: str, items: int, loaded: float) -> None:
        """Record the model of this worker; a version is twelve hex digits."""
        self.set(_VERSION, int(version, 16))
        self.set(_ITEMS, items)
        self.set(_LOADED, int(loaded))

    def set_delta(self, seconds: float) -> None:
        """Record the time of a delta."""
        self.set(_DELTA, round(1e9 * seconds))

    def add_router(self, name: str) -> None:
        """Increase a counter of a router."""
        self._row[self._cells[name,]] += 1

    def add_shard(self, name: str, shard: int) -> None:
        """Increase a counter of a shard."""
        self._row[self._cells[name, shard]] += 1

    def observe_shard(self, shard: int, nanoseconds: int) -> None:
        """Record one call of a shard."""
        self._row[self._cells["bucket", shard, bisect_left(_NANOSECONDS, nanoseconds)]] += 1
        self._row[self._cells["seconds", shard]] += nanoseconds

    def render(self) -> bytes:
        """All metrics of all workers, in text format 0.0.4."""
        rows = [row.tolist() for row in self._rows]
        total = [sum(values) for values in zip(*rows, strict=True)]
        lines = [line for name in (*COUNTERS, *GAUGES) for line in _family(name, [f" {total[LAYOUT[name,]]}"])]
        routed = self._routed(total) if self._shards else []
        return "\n".join([*lines, *_requests(total), *_models(rows), *routed, ""]).encode()

    def _routed(self, total: Sequence[int]) -> list[str]:
        """The metrics of a router, by shard."""
        cells, shards = self._cells, range(self._shards)
        lines = _family(PARTIAL, [f" {total[cells[PARTIAL,]]}"])
        for name in SHARD_COUNTERS:
            samples = [f'{{shard="{shard + 1}"}} {total[cells[name, shard]]}' for shard in shards]
            lines += _family(f"pathdex_shard_{name}_total", samples)
        durations = []
        for shard in shards:
            counts = [total[cells["bucket", shard, place]] for place in range(len(BUCKETS) + 1)]
            durations += _histogram(f'shard="{shard + 1}"', counts, total[cells["seconds", shard]])
        return lines + _family(SHARD_DURATION, durations)


def _family(name: str, samples: Sequence[str]) -> list[str]:
    """The lines of one metric; a sample is its labels and its value."""
    kind = "counter" if name.endswith("_total") else "histogram" if name in (DURATION, SHARD_DURATION) else "gauge"
    return [
        f"# HELP {name} {HELP.get(name) or ROUTER_HELP[name]}",
        f"# TYPE {name} {kind}",
        *(name + sample for sample in samples),
    ]


def _requests(total: Sequence[int]) -> list[str]:
    numbers = {(route, status): total[LAYOUT["requests", route, status]] for route in LABELS for status in STATUSES}
    samples = [
        f'{{route="{route}",status="{status}"}} {number}' for (route, status), number in numbers.items() if number
    ]
    durations = []
    for route in LABELS:
        counts = [total[LAYOUT["bucket", route, place]] for place in range(len(BUCKETS) + 1)]
        if any(counts):
            durations += _histogram(f'route="{route}"', counts, total[LAYOUT["seconds", route]])
    return _family(REQUESTS, samples) + _family(DURATION, durations)


def _histogram(label: str, counts: Sequence[int], nanoseconds: int) -> list[str]:
    """The samples of one histogram."""
    bounds = zip((*BUCKETS, "+Inf"), accumulate(counts), strict=True)
    return [
        *(f'_bucket{{{label},le="{bound}"}} {running}' for bound, running in bounds),
        f"_sum{{{label}}} {nanoseconds / 1e9:.9f}",
        f"_count{{{label}}} {sum(counts)}",
    ]


def _models(rows: Sequence[Sequence[int]]) -> list[str]:
    """Which models the workers serve; rows without a model are left out."""
    facts = [[row[LAYOUT[name,]] for name in (_LOADED, _VERSION, _ITEMS)] for row in rows]
    served = sorted((loaded, f"{version:012x}", items) for loaded, version, items in facts if loaded)
    slowest = max((row[LAYOUT[_DELTA,]] for row in rows), default=0)
    last, workers = served[-1:], sorted(Counter(version for _, version, _ in served).items())
    return [
        *_family("pathdex_model_info", [f'{{version="{version}"}} 1' for _, version, _ in last]),
        *_family("pathdex_model_workers", [f'{{version="{version}"}} {number}' for version, number in workers]),
        *_family("pathdex_model_delta_seconds", [f" {1e-9 * slowest:.9f}"] if slowest else []),
        *_family("pathdex_model_items", [f" {items}" for _, _, items in last]),
        *_family("pathdex_model_loaded_timestamp_seconds", [f" {loaded}" for loaded, _, _ in last]),
    ]
