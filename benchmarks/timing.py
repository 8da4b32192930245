"""Timing several implementations: warmed up, in turns, repeated."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

WARM_CALLS = 20
"""Warm-up calls."""

Seconds: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True)
class Task:
    """A function, called with 0, 1, ..., `calls` - 1 in each repeat."""

    call: Callable[[int], Any]
    calls: int
    prepare: Callable[[], Any] = lambda: None
    """Called before each repeat and not timed."""


@dataclass(frozen=True, eq=False)
class Times:
    """The times of the calls of a task."""

    seconds: Seconds
    """Wall-clock seconds of every call: (repeat, call)."""
    cpu: Seconds | None = None
    """CPU seconds of the mean call on this thread: (repeat,). Below wall-clock time if the core was shared."""

    @property
    def means(self) -> Seconds:
        """The mean call of each repeat."""
        return self.seconds.mean(axis=1)

    @property
    def microseconds(self) -> float:
        """The mean call, median over the repeats."""
        return 1e6 * float(np.median(self.means))

    def to_dict(self) -> dict[str, Any]:
        each = 1e6 * self.means
        p50, p99 = np.percentile(1e6 * self.seconds, (50, 99))
        return {
            "microseconds": round(self.microseconds, 2),
            **({} if self.cpu is None else {"cpu_microseconds": round(1e6 * float(np.median(self.cpu)), 2)}),
            "range": [round(float(each.min()), 2), round(float(each.max()), 2)],
            "p50": round(float(p50), 2),
            "p99": round(float(p99), 2),
            "calls": int(self.seconds.shape[1]),
            "repeats": int(self.seconds.shape[0]),
        }


def alternate(tasks: Mapping[str, Task], repeats: int) -> dict[str, Times]:
    """Run the tasks in turn, `repeats` times, so that other load on the machine affects all alike."""
    for task in tasks.values():
        task.prepare()
        for argument in range(min(WARM_CALLS, task.calls)):
            task.call(argument)
    rounds: dict[str, list[tuple[Seconds, float]]] = {name: [] for name in tasks}
    for _ in range(repeats):
        for name, task in tasks.items():
            task.prepare()
            rounds[name].append(clock(task))
    return {name: Times(*map(np.array, zip(*rows, strict=True))) for name, rows in rounds.items()}


def clock(task: Task) -> tuple[Seconds, float]:
    """One repeat: seconds of each call, and CPU seconds of the mean call."""
    spent = np.empty(task.calls)
    started = time.thread_time()
    for argument in range(task.calls):
        begin = time.perf_counter()
        task.call(argument)
        spent[argument] = time.perf_counter() - begin
    return spent, (time.thread_time() - started) / task.calls


def ratio(slow: Times, fast: Times, digits: int = 3) -> dict[str, Any]:
    """The ratio of the mean calls: median and range over the repeats."""
    each = slow.means / fast.means
    figures: dict[str, Any] = {
        "median": round(float(np.median(each)), digits),
        "range": [round(float(each.min()), digits), round(float(each.max()), digits)],
    }
    if slow.cpu is not None and fast.cpu is not None:
        figures["cpu"] = round(float(np.median(slow.cpu / fast.cpu)), digits)
    return figures


def shown(figures: Mapping[str, Any]) -> str:
    """A ratio as text: median (lowest to highest)."""
    low, high = figures["range"]
    return f"{figures['median']:.3g} ({low:.3g} to {high:.3g})"
