"""One explorer per model; recordings only of the same training."""

from __future__ import annotations

import gc
import logging
import shutil
import time
import weakref
from collections.abc import Callable
from pathlib import Path

import pytest

import pathdex
from pathdex.server import explorers as module
from pathdex.server.explorers import Explorers, open_explorer, read_recording
from pathdex.server.model_loader import ModelLoader
from tests.random_model import random_model
from tests.recommenders.test_live_reader import Feed
from tests.server.conftest import running


def test_a_model_has_one_explorer_with_its_recording(run_folder: Path) -> None:
    served = ModelLoader(run_folder).load()
    explorers = Explorers(run_folder)
    found = explorers.of(served)
    assert explorers.of(served) is found
    assert (found.version, found.recording.num_rounds, found.other) == (served.version, 2, None)
    other = ModelLoader(run_folder).load()
    assert explorers.of(other) is not found


def wait_until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_it_is_prepared_in_the_background(run_folder: Path) -> None:
    explorers = Explorers(run_folder)
    found = explorers.of(ModelLoader(run_folder).load())
    wait_until(lambda: "search" in found._kept)
    wait_until(lambda: found.doing is None)


def test_a_server_for_the_explorer_prepares_it_before_the_first_request(run_folder: Path) -> None:
    with running(run_folder, explorer=True) as server:
        explorers = server.worker.context.explorers
        wait_until(lambda: explorers._current is not None and "search" in explorers._current._kept)
    with running(run_folder) as server:
        assert server.get("/explore/").status in (200, 404)
        assert server.worker.context.explorers._current is None
        assert server.get("/v1/explore/status").json["model"]
        assert server.worker.context.explorers._current is not None


def test_the_next_version_of_a_live_model_is_prepared_while_the_last_one_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "RENEW_SECONDS", 0.0)
    monkeypatch.setattr(module, "RENEW_FACTOR", 0.0)
    feed = Feed(tmp_path / "live")
    loader, explorers = ModelLoader(feed.path), Explorers(feed.path)
    served = loader.load()
    first = explorers.of(served)
    wait_until(lambda: "search" in first._kept and first.doing is None)
    feed.publish()
    updated = loader.update(served)
    assert updated is not None
    newer, count = updated
    assert (count, newer.recommender) == (1, served.recommender)
    wait_until(lambda: explorers.of(newer) is not first)
    second = explorers.of(newer)
    assert (second.version, "search" in second._kept) == (newer.version, True)
    assert explorers.of(served) is second  # A request that came before is not answered with less.
    feed.publisher.close()


def test_a_model_that_is_no_longer_served_is_freed(run_folder: Path) -> None:
    explorers = Explorers(run_folder)
    old = ModelLoader(run_folder).load()
    alive = weakref.ref(explorers.of(old))
    new = ModelLoader(run_folder).load()
    explorers.on_swap(new)
    wait_until(lambda: gc.collect() >= 0 and alive() is None)
    late = explorers.of(old)  # A request that began before the swap.
    assert explorers.of(old) is not late
    assert explorers.of(new) is explorers.of(new)


def test_a_second_model_is_opened_for_comparison(run_folder: Path, tmp_path: Path) -> None:
    bundle = random_model().save(tmp_path / "other")
    found = open_explorer(run_folder, bundle)
    assert found.other is not None
    assert found.other.recording.num_rounds == 0
    served = ModelLoader(run_folder).load()
    assert Explorers(run_folder, bundle).of(served).other is not None


def test_a_recording_of_another_training_is_left_out(
    run_folder: Path,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    folder = shutil.copytree(run_folder, tmp_path / "run")
    with caplog.at_level(logging.WARNING, "pathdex.server"):
        assert read_recording(folder, random_model()).num_rounds == 0
    assert "is of another model" in caplog.text


def test_a_damaged_recording_is_left_out(
    run_folder: Path,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    folder = shutil.copytree(run_folder, tmp_path / "run")
    (folder / "recording" / "items.npy").write_bytes(b"x")
    with caplog.at_level(logging.WARNING, "pathdex.server"):
        assert read_recording(folder, pathdex.load(folder / "bundle")).num_rounds == 0
    assert "damaged" in caplog.text
