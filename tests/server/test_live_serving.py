"""A server follows a live folder: new deltas change its answers without a reload."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from pathdex.recommenders.live_publisher import LivePublisher
from pathdex.server import model_manager, service
from pathdex.server.errors import RequestError
from pathdex.server.metrics import ServerMetrics
from pathdex.server.model_loader import ModelLoader
from pathdex.server.model_manager import ModelManager
from pathdex.storage.live_folder import delta_folder
from tests.random_deltas import changed_model, random_delta
from tests.random_model import random_model
from tests.recommenders.test_live_publisher import answers
from tests.server.conftest import running


def metric(metrics: ServerMetrics, name: str) -> float:
    lines = metrics.render().decode().splitlines()
    return next(float(line.split()[-1]) for line in lines if line.startswith(f"{name} "))


def wait_for(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_deltas_are_applied_and_a_broken_chain_is_loaded_again(tmp_path: Path) -> None:
    random, model, metrics = np.random.default_rng(0), random_model(20), ServerMetrics()
    live = tmp_path / "live"

    async def follow() -> None:
        nonlocal model
        manager = ModelManager(ModelLoader(live), metrics, watch=0)
        served = await manager.start()
        first = served.recommender
        with LivePublisher(live) as publisher:
            for _ in range(3):
                delta = random_delta(model, random)
                model = changed_model(model, delta)
                publisher.publish(delta)
            assert await manager.check_for_update()
            assert manager.current is not None
            assert manager.current.recommender is first
            assert manager.current.version == publisher.version.digest[:12] != served.version
            assert answers(first) == answers(model)
            assert manager.current.info.items == model.items.num_ids
            assert metric(metrics, "pathdex_model_deltas_total") == 3
            assert metric(metrics, "pathdex_model_delta_seconds") > 0
            assert metric(metrics, "pathdex_model_reloads_total") == 0
            assert not await manager.check_for_update()
            publisher.compact()
            assert not await manager.check_for_update()  # The same state in another form.
            publisher.rollback(1)
            assert await manager.check_for_update()
            assert manager.current.recommender is not first
            assert metric(metrics, "pathdex_model_reloads_total") == 1
        await manager.close()

    with LivePublisher.create(live, model):
        pass
    asyncio.run(follow())


def test_a_damaged_delta_keeps_the_model_that_is_served(tmp_path: Path) -> None:
    random, model, metrics, live = np.random.default_rng(0), random_model(20), ServerMetrics(), tmp_path / "live"

    async def follow() -> None:
        manager = ModelManager(ModelLoader(live), metrics, watch=0)
        await manager.start()
        with LivePublisher(live) as publisher:
            publisher.publish(random_delta(model, random))
            (delta_folder(live, 1) / "delta.safetensors").write_bytes(b"")
            await manager.check_for_update()
            assert manager.current is not None
            assert answers(manager.current.recommender) == answers(model)
        await manager.close()

    with LivePublisher.create(live, model):
        pass
    asyncio.run(follow())


def test_a_server_answers_with_a_new_item(tmp_path: Path) -> None:
    random, model, live = np.random.default_rng(0), random_model(20), tmp_path / "live"
    with LivePublisher.create(live, model) as publisher, running(live, watch=0.02) as server:
        assert server.request("GET", "/v1/items/120").status == 404
        publisher.publish(random_delta(model, random, new=1, removed=0, reused=0, unplaced=0))
        wait_for(lambda: server.request("GET", "/v1/items/120").status == 200)


def test_an_unknown_item_is_told_the_number_of_items_without_free_places(tmp_path: Path) -> None:
    random, model, live = np.random.default_rng(0), random_model(20), tmp_path / "live"
    delta = random_delta(model, random, new=0, removed=3, reused=0, unplaced=0)
    with LivePublisher.create(live, model) as publisher:
        publisher.publish(delta)
    served = ModelLoader(live).load()
    assert len(served.recommender.items) == 20
    with pytest.raises(RequestError, match="is not in the catalogue of 17 items; request a known id"):
        service.item_info(served, "nothing")


def test_a_folder_that_disappears_is_logged_once_and_once_when_it_is_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    live, away, metrics = tmp_path / "live", tmp_path / "away", ServerMetrics()
    LivePublisher.create(live, random_model(20)).close()

    async def follow() -> None:
        manager = ModelManager(ModelLoader(live), metrics, watch=0)
        version = (await manager.start()).version
        live.rename(away)
        await manager.check_for_update()
        assert "disappeared" not in caplog.text  # It may be about to be replaced.
        monkeypatch.setattr(model_manager, "MISSING_SECONDS", 0.0)
        for _ in range(3):
            await manager.check_for_update()
        assert caplog.text.count(f"{live} has disappeared; still serving model {version}") == 1
        away.rename(live)
        for _ in range(2):
            await manager.check_for_update()
        assert caplog.text.count(f"{live} is back") == 1
        live.rename(away)
        await manager.check_for_update()
        assert caplog.text.count("has disappeared") == 2
        await manager.close()

    asyncio.run(follow())


def test_a_missing_catalogue_table_is_named(tmp_path: Path) -> None:
    table = tmp_path / "films.csv"
    loader = ModelLoader(tmp_path / "live", table)
    assert loader.missing_path() == table
    table.write_text("")
    assert loader.missing_path() == tmp_path / "live"
