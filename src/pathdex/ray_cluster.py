"""Connects to a Ray cluster, or starts one on this machine (extra `ray`)."""

from __future__ import annotations

import contextlib
import importlib
import logging
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pathdex.errors import ConfigError, MissingExtraError, Problem

CONNECT_SECONDS, JOIN_SECONDS = 10.0, 60.0
"""How long an address may take to accept a connection, and a cluster to accept a client."""
_OWN = ("local", "auto")
_REMEDY = "check that the cluster runs (`ray status`), or pass local to start one on this machine"


@contextmanager
def ray_cluster(address: str, *needed: str, **local: Any) -> Iterator[Any]:
    """The `ray` package, connected to a cluster while the block runs.

    `local` starts one on this machine, with the options `local` of `ray.init`, and ends it; `auto` finds one. Raises
    `ConfigError` in bounded time if there is none, and `MissingExtraError` without the modules `needed`.
    """
    ray = _imported(*needed)
    if address not in _OWN:
        _check_address(address)
    _join(ray, address, local)
    try:
        yield ray
    finally:
        ray.shutdown()


def _imported(*needed: str) -> Any:
    try:
        for name in needed:
            importlib.import_module(name)
        return importlib.import_module("ray")
    except ImportError as error:
        raise MissingExtraError("ray", "ray", "running on Ray") from error


def _join(ray: Any, address: str, local: dict[str, Any]) -> None:
    options: dict[str, Any] = {}
    if address == "local":
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # Nothing is sent from a cluster that nobody asked for.
        options = {"include_dashboard": False, **local}
    for name in ("ray", "ray.data", "ray.train"):
        logging.getLogger(name).setLevel(logging.ERROR)
    try:
        with _own_sigterm():
            ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR, **options)
    except (ConnectionError, RuntimeError, ValueError, OSError) as error:
        raise _refusal(address, str(error).split("\n")[0]) from error


@contextmanager
def _own_sigterm() -> Iterator[None]:
    """Keep the handler of SIGTERM, which Ray replaces."""
    handler = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread() and handler is not None:
            signal.signal(signal.SIGTERM, handler)


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
    raise _refusal(address, "what listens there is not a Ray cluster of this version, or it has no node here")


def _refusal(address: str, reason: str) -> ConfigError:
    return ConfigError([Problem(f"does not answer ({reason})", "ray", address, _REMEDY)])
