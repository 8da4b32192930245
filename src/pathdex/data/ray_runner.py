"""Runs the tasks of a preparation one after the other, or on Ray Data."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

from pathdex.data.user_ranges import Report
from pathdex.errors import PathdexError
from pathdex.ray_cluster import ray_cluster


class Runner(Protocol):
    """Calls a function with each of some tasks and a report of rows; gives the results in the order of the tasks."""

    def __call__(
        self, function: Callable[[Any, Report], Any], tasks: Sequence[Any], report: Report = ...
    ) -> Iterator[Any]: ...


@contextmanager
def runner(address: str | None) -> Iterator[Runner]:
    """A runner on this process, or on the Ray cluster at an address."""
    if address is None:
        yield _run_here
        return
    with ray_cluster(address, "cloudpickle", "ray.data") as ray:
        yield lambda function, tasks, report=_ignore: _run_on_ray(ray, function, tasks, report)


def _ignore(rows: int) -> None:
    return


def _run_here(function: Callable[[Any, Report], Any], tasks: Sequence[Any], report: Report = _ignore) -> Iterator[Any]:
    return (function(task, report) for task in tasks)


def _run_on_ray(
    ray: Any, function: Callable[[Any, Report], Any], tasks: Sequence[Any], report: Report
) -> Iterator[Any]:
    cloudpickle: Any = importlib.import_module("cloudpickle")
    ray.data.DataContext.get_current().enable_progress_bars = False
    shared = cloudpickle.dumps(function)

    def call(row: dict[str, Any]) -> dict[str, Any]:
        rows: list[int] = []
        try:
            found = cloudpickle.loads(shared)(cloudpickle.loads(row["task"]), rows.append)
        except (PathdexError, OSError) as error:  # Known failures, which the caller raises again.
            found = _Failure(error)
        return {"number": row["number"], "found": cloudpickle.dumps(found), "rows": sum(rows)}

    sent = [{"number": number, "task": cloudpickle.dumps(task)} for number, task in enumerate(tasks)]
    results: list[Any] = [None] * len(sent)
    data = ray.data.from_items(sent, override_num_blocks=max(1, len(sent)))
    for row in data.map(call).iter_rows():
        found = cloudpickle.loads(row["found"])
        if isinstance(found, _Failure):
            raise found.error
        results[row["number"]] = found
        report(row["rows"])
    return iter(results)


class _Failure:
    """An error that travels back as a result, since Ray would wrap it."""

    def __init__(self, error: Exception) -> None:
        self.error = error
