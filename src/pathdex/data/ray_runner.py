"""Runs the tasks of a preparation one after the other, or on Ray Data."""

from __future__ import annotations

import contextlib
import importlib
import logging
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

from pathdex.data.user_ranges import Report
from pathdex.errors import ConfigError, MissingExtraError, PathdexError, Problem

CONNECT_SECONDS, JOIN_SECONDS = 10.0, 60.0
"""How long an address may take to accept a connection, and a cluster to accept a client."""
_OWN = ("local", "auto")
_REMEDY = "check that the cluster runs (`ray status`), or pass local to start one on this machine"


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
    ray = _joined(address)
    try:
        yield lambda function, tasks, report=_ignore: _run_on_ray(ray, function, tasks, report)
    finally:
        ray.shutdown()


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


def _joined(address: str) -> Any:
    """The `ray` package, connected to a cluster; a `ConfigError` in bounded time if there is none."""
    try:
        importlib.import_module("cloudpickle")
        importlib.import_module("ray.data")
        ray: Any = importlib.import_module("ray")
    except ImportError as error:
        raise MissingExtraError("ray", "ray", "running on Ray") from error
    if address not in _OWN:
        _check_address(address)
    options = {"include_dashboard": False} if address == "local" else {}
    logging.getLogger("ray.data").setLevel(logging.WARNING)
    try:
        ray.init(address=address, log_to_driver=False, logging_level=logging.WARNING, **options)
    except (ConnectionError, RuntimeError, ValueError, OSError) as error:
        raise _refusal(address, str(error).split("\n")[0]) from error
    return ray


def _check_address(address: str) -> None:
    """Connect once in another process: the client of Ray ends its process where a cluster does not answer."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not host or not port.isdecimal():
        rule = "must be local, auto, HOST:PORT or ray://HOST:PORT"
        raise ConfigError([Problem(rule, "ray", address, _REMEDY)])
    try:
        socket.create_connection((host.strip("[]"), int(port)), CONNECT_SECONDS).close()
    except (OSError, OverflowError) as error:
        raise _refusal(address, str(error)) from error
    command = [sys.executable, "-c", f"import ray; ray.init(address={address!r}, log_to_driver=False)"]
    with contextlib.suppress(subprocess.TimeoutExpired):
        joined = subprocess.run(command, capture_output=True, timeout=JOIN_SECONDS, check=False)
        if joined.returncode == 0:
            return
    raise _refusal(address, "what listens there is not a Ray cluster of this version")


def _refusal(address: str, reason: str) -> ConfigError:
    return ConfigError([Problem(f"does not answer ({reason})", "ray", address, _REMEDY)])
