"""Servers of shards, for the tests of routers."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from pathdex.errors import ServerError
from pathdex.recommenders.sharding import write_shards
from pathdex.server.limits import RouterLimits
from pathdex.server.options import ServerOptions
from pathdex.server.serving import listen
from pathdex.server.worker import Worker
from tests.random_model import random_model
from tests.server.conftest import Running, running

PATIENT = RouterLimits(shard_timeout=60.0, hedge_after=0.0)


@contextmanager
def serving(folders: list[Path], **options: Any) -> Iterator[list[Running]]:
    """A server for each folder."""
    with ExitStack() as stack:
        yield [stack.enter_context(running(folder, **options)) for folder in folders]


def failure(*urls: str) -> str:
    """The message of a router that does not start."""
    worker = Worker(ServerOptions(shards=urls, port=0, router=PATIENT))
    with listen("127.0.0.1", 0) as listening, pytest.raises(ServerError) as caught:
        worker.serve_on(listening)
    return str(caught.value)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Path]]:
    root = tmp_path_factory.mktemp("shards")
    for seed in (0, 1):
        random_model(60, seed=seed, neighbours=3).save(root / f"model-{seed}")
    return {
        "two": write_shards(root / "model-0", 2, root / "two").folders,
        "other": write_shards(root / "model-1", 2, root / "other").folders,
        "three": write_shards(root / "model-0", 3, root / "three").folders,
        "whole": [root / "model-0"],
    }


def wait_for(rule: Any) -> None:
    deadline = time.monotonic() + 60
    while not rule():
        assert time.monotonic() < deadline
        time.sleep(0.01)
