"""Counters and gauges in the text form of Prometheus, summed over all worker processes.

Each worker owns a row of 64-bit integers in a file that all of them map, so whichever worker is asked knows the whole.
A worker that replaces a dead one goes on with its row: counters never fall. Times are kept in nanoseconds.
"""

from __future__ import annotations

import mmap
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from pathlib import Path

from pathdex.server.routes import NAMES

STATUSES = (200, 400, 401, 404, 405, 408, 413, 415, 422, 429, 431, 499, 500, 503, 504)
BUCKETS = (0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Upper bounds of the latency histogram, in seconds."""
_NANOSECONDS = [round(bound * 1e9) for bound in BUCKETS]

COUNTERS = {
    "pathdex_queries_total": "Queries answered; a request may hold many.",
    "pathdex_unknown_items_total": "History items that the catalogue did not hold.",
    "pathdex_events_total": "Events stored.",
    "pathdex_store_errors_total": "Failed calls of the user store.",
    "pathdex_model_swaps_total": "New model versions taken over.",
    "pathdex_model_refusals_total": "New model versions refused.",
    "pathdex_worker_starts_total": "Starts of worker processes.",
}
GAUGES = {
    "pathdex_requests_in_flight": "Requests that are being answered.",
    "pathdex_workers_ready": "Worker processes that are ready.",
    "pathdex_resident_bytes": "Resident memory of the worker processes; pages that they share count in each.",
}
_VERSION, _ITEMS, _LOADED = "version", "items", "loaded"


def _layout() -> dict[tuple[object, ...], int]:
    keys: list[tuple[object, ...]] = [(name,) for name in (*COUNTERS, *GAUGES, _VERSION, _ITEMS, _LOADED)]
    keys += [("requests", route, status) for route in NAMES for status in STATUSES]
    keys += [("bucket", route, place) for route in NAMES for place in range(len(BUCKETS) + 1)]
    keys += [("seconds", route) for route in NAMES]
    return {key: place for place, key in enumerate(keys)}


LAYOUT = _layout()
_SIZE = 8 * len(LAYOUT)


class Metrics:
    """One worker's figures, and those of its siblings in the same folder."""

    def __init__(self, folder: Path | None = None, slot: int = 0) -> None:
        self._folder = folder
        if folder is None:
            self._map = mmap.mmap(-1, _SIZE)
        else:
            with (folder / f"worker-{slot}").open("a+b") as file:
                file.truncate(_SIZE)
                self._map = mmap.mmap(file.fileno(), _SIZE)
        self._row = memoryview(self._map).cast("q")
        for name in (*GAUGES, _VERSION, _ITEMS, _LOADED):
            self._row[LAYOUT[name,]] = 0

    def add(self, name: str, number: int = 1) -> None:
        """Raise a counter, or move a gauge."""
        self._row[LAYOUT[name,]] += number

    def put(self, name: str, number: int) -> None:
        """Set a gauge."""
        self._row[LAYOUT[name,]] = number

    def observe(self, route: str, status: int, nanoseconds: int) -> None:
        """Count one request."""
        row = self._row
        row[LAYOUT["requests", route, status if status in STATUSES else 500]] += 1
        row[LAYOUT["bucket", route, bisect_left(_NANOSECONDS, nanoseconds)]] += 1
        row[LAYOUT["seconds", route]] += nanoseconds

    def serve(self, version: str, items: int, loaded: float) -> None:
        """Say which model is served; a version is twelve hex digits."""
        self.put(_VERSION, int(version, 16))
        self.put(_ITEMS, items)
        self.put(_LOADED, int(loaded))

    def render(self) -> bytes:
        """Everything, in the text form 0.0.4."""
        rows = list(self._rows())
        total = [sum(values) for values in zip(*rows, strict=True)]
        lines: list[str] = []
        for names, kind in ((COUNTERS, "counter"), (GAUGES, "gauge")):
            for name, help in names.items():
                lines += [*_head(name, help, kind), f"{name} {total[LAYOUT[name,]]}"]
        lines += _requests(total)
        lines += _models(rows)
        return ("\n".join(lines) + "\n").encode()

    def _rows(self) -> Iterator[Sequence[int]]:
        if self._folder is None:
            yield self._row.tolist()
            return
        for file in sorted(self._folder.glob("worker-*")):
            content = file.read_bytes()
            if len(content) == _SIZE:
                yield memoryview(content).cast("q").tolist()


def _head(name: str, help: str, kind: str) -> list[str]:
    return [f"# HELP {name} {help}", f"# TYPE {name} {kind}"]


def _requests(total: Sequence[int]) -> list[str]:
    lines = _head("pathdex_requests_total", "Requests by route and status.", "counter")
    for route in NAMES:
        for status in STATUSES:
            if number := total[LAYOUT["requests", route, status]]:
                lines.append(f'pathdex_requests_total{{route="{route}",status="{status}"}} {number}')
    name = "pathdex_request_seconds"
    lines += _head(name, "Time from the head of a request to its answer, by route.", "histogram")
    for route in NAMES:
        counts = [total[LAYOUT["bucket", route, place]] for place in range(len(BUCKETS) + 1)]
        if not sum(counts):
            continue
        running = 0
        for bound, count in zip((*BUCKETS, "+Inf"), counts, strict=True):
            running += count
            lines.append(f'{name}_bucket{{route="{route}",le="{bound}"}} {running}')
        lines.append(f'{name}_sum{{route="{route}"}} {total[LAYOUT["seconds", route]] / 1e9:.9f}')
        lines.append(f'{name}_count{{route="{route}"}} {running}')
    return lines


def _models(rows: Sequence[Sequence[int]]) -> list[str]:
    served = [row for row in rows if row[LAYOUT[_LOADED,]]]
    lines = _head("pathdex_model_workers", "Workers by the model version that they serve.", "gauge")
    versions = [f"{row[LAYOUT[_VERSION,]]:012x}" for row in served]
    lines += [
        f'pathdex_model_workers{{version="{version}"}} {versions.count(version)}' for version in sorted(set(versions))
    ]
    lines += _head("pathdex_model_items", "Items of the model that was opened last.", "gauge")
    lines += _head("pathdex_model_loaded_seconds", "When it was opened, in seconds since 1970.", "gauge")
    if served:
        latest = max(served, key=lambda row: row[LAYOUT[_LOADED,]])
        lines.insert(-2, f"pathdex_model_items {latest[LAYOUT[_ITEMS,]]}")
        lines.append(f"pathdex_model_loaded_seconds {latest[LAYOUT[_LOADED,]]}")
    return lines
