"""`pathdex live` on a folder of three publishes."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from pathdex.recommenders.live_publisher import LivePublisher
from pathdex.storage.folder_lock import folder_lock
from tests.cli.conftest import Pathdex
from tests.random_deltas import random_delta
from tests.random_model import random_model


@pytest.fixture
def live(tmp_path: Path) -> Path:
    model = random_model(20)
    with LivePublisher.create(tmp_path / "live", model) as publisher:
        publisher.publish(random_delta(model, np.random.default_rng(0)))
    return tmp_path / "live"


def test_status_compact_and_rollback(pathdex: Pathdex, live: Path, tmp_path: Path) -> None:
    text = pathdex("live", "status", str(live), "--json", tmp_path / "status.json").stdout
    assert "base-000001" in text
    assert "1 to 1" in text
    assert "1 (current)" in text
    status = json.loads((tmp_path / "status.json").read_text())
    assert (status["base"], status["bases"][0]["items"], status["bases"][0]["is_current"]) == ("base-000001", 20, True)
    assert status["bases"][0]["written"] in text
    assert status["published"] in text
    assert "has the base base-000002" in pathdex("live", "compact", str(live)).stdout
    assert "none" in pathdex("live", "status", str(live)).stdout
    told = pathdex("live", "rollback", str(live)).stdout
    assert f"is back at the base base-000001, written {status['bases'][0]['written']}, 20 items" in told
    assert "stream" not in told
    assert "1 (current)" in pathdex("live", "status", str(live)).stdout
    alone = pathdex("live", "rollback", str(live), fails=1).stderr
    assert "keeps no base before the current one, 1; there is nothing to go back to" in " ".join(alone.split())
    assert "is back at the base base-000002" in pathdex("live", "rollback", str(live), "--base", "2").stdout
    wrong = pathdex("live", "rollback", str(live), "--base", "9", fails=1).stderr
    assert "keeps no base 9; choose one of: 1, 2" in " ".join(wrong.split())


def test_a_folder_that_is_published_is_not_changed(pathdex: Pathdex, live: Path) -> None:
    for holder in ("a publisher", "pathdex stream"):
        with folder_lock(live, holder):
            told = " ".join(pathdex("live", "rollback", str(live), fails=1).stderr.split())
            assert f"is in use by {holder} (process " in told
            assert told.endswith("; stop it first")


def test_rolling_back_a_stream_says_what_happens_if_it_continues(pathdex: Pathdex, live: Path) -> None:
    pathdex("live", "compact", str(live))
    (live / "stream.json").write_text("{}")
    told = pathdex("live", "rollback", str(live)).stdout
    assert f"it publishes its own state again. To learn on from this base, start a new stream --from {live}." in told


@pytest.mark.parametrize("command", ["status", "compact", "rollback"])
def test_another_folder_is_refused_and_left_alone(pathdex: Pathdex, tmp_path: Path, command: str) -> None:
    assert "is not a live folder" in pathdex("live", command, str(tmp_path), fails=1).stderr
    assert "is not a live folder" in pathdex("live", command, str(tmp_path / "nothing"), fails=1).stderr
    assert not list(tmp_path.iterdir())


def test_a_stream_that_has_not_published_says_so(pathdex: Pathdex, tmp_path: Path) -> None:
    (tmp_path / "stream.json").write_text("{}")
    for command in ("status", "compact", "rollback"):
        told = " ".join(pathdex("live", command, tmp_path, fails=1).stderr.split())
        assert told.endswith("is a stream that has not published a model yet; wait for its first events")


def test_the_deltas_of_the_only_base_can_be_dropped(pathdex: Pathdex, live: Path) -> None:
    told = " ".join(pathdex("live", "rollback", live, fails=1).stderr.split())
    assert f"to drop the delta after it, run: pathdex live rollback {live} --base 1" in told
    pathdex("live", "rollback", live, "--base", 1)
    assert "none" in pathdex("live", "status", live).stdout
