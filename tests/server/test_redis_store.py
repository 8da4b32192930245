"""The user store in Redis: errors. test_stores.py has the contract."""

from __future__ import annotations

import socket

import pytest

from pathdex.errors import ConfigError, MissingExtraError, StorageError
from pathdex.server.stores import open_store
from tests.server.test_stores import use


def test_an_invalid_url() -> None:
    with pytest.raises(
        ConfigError,
        match=r"user_store='redis://host:port/0': is not a Redis URL \(.*\); write it as redis://host:6379/0",
    ):
        open_store("redis://host:port/0", 5)


def test_a_missing_package_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pathdex.system.Feature.available", False)
    with pytest.raises(MissingExtraError, match=r"needs redis; install it with: pip install 'pathdex\[redis\]'"):
        open_store("redis://localhost", 5)


def test_an_unreachable_server() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        address = f"redis://127.0.0.1:{taken.getsockname()[1]}/0"
        with pytest.raises(StorageError, match=r"user store in Redis: .*; check that Redis is running and reachable"):
            use(address, lambda store: store.append([("ada", [1])]))
