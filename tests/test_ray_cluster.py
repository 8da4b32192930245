"""Connections to Ray clusters, and to what is none."""

from __future__ import annotations

import importlib.util
import os
import signal
import socket
import subprocess
import sys
from types import SimpleNamespace

import pytest

from pathdex.errors import ConfigError, MissingExtraError
from pathdex.ray_cluster import ray_cluster

needs_ray = pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="needs the extra ray")


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def test_without_ray_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'pathdex\[ray\]'"), ray_cluster("local"):
        pass


@needs_ray
@pytest.mark.parametrize("address", ["nonsense", "127.0.0.1", "127.0.0.1:port"])
def test_what_is_no_address(address):
    rule = f"ray='{address}': must be local, auto, HOST:PORT or ray://HOST:PORT"
    with pytest.raises(ConfigError, match=rule), ray_cluster(address):
        pass


@needs_ray
@pytest.mark.parametrize("scheme", ["", "ray://"])
def test_an_address_that_does_not_answer(scheme):
    rule = r"does not answer .*Connection refused.*; check that the cluster runs"
    with pytest.raises(ConfigError, match=rule), ray_cluster(f"{scheme}127.0.0.1:{free_port()}"):
        pass


@needs_ray
def test_a_listener_that_is_no_cluster(monkeypatch):
    def time_out(*_: object, **__: object) -> None:
        raise subprocess.TimeoutExpired("ray", 60)

    monkeypatch.setattr(subprocess, "run", time_out)
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(ConfigError, match="what listens there is not a Ray cluster"), ray_cluster(address):
            pass


class FakeRay(SimpleNamespace):
    """Takes SIGTERM for itself, as Ray does."""

    def __init__(self) -> None:
        super().__init__(options={}, connected=False)

    def init(self, **options: object) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        self.options, self.connected = options, True

    def shutdown(self) -> None:
        self.connected = False


def test_sigterm_stays_ours_and_the_cluster_ends_with_the_block(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", fake := FakeRay())
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "1")
    monkeypatch.delenv("RAY_USAGE_STATS_ENABLED")
    before = signal.getsignal(signal.SIGTERM)
    with ray_cluster("local", object_store_memory=7) as ray:
        assert ray.connected
        assert signal.getsignal(signal.SIGTERM) is before
    assert not fake.connected
    assert fake.options["object_store_memory"] == 7
    assert os.environ["RAY_USAGE_STATS_ENABLED"] == "0"


def test_only_a_cluster_that_is_started_here_gets_options(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", fake := FakeRay())
    with ray_cluster("auto", object_store_memory=7):
        assert set(fake.options) == {"address", "log_to_driver", "logging_level"}
