"""`pathdex live` on a folder of three publishes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pathdex.recommenders.live_publisher import LivePublisher
from tests.cli.conftest import Pathdex
from tests.random_deltas import random_delta
from tests.random_model import random_model


@pytest.fixture
def live(tmp_path: Path) -> Path:
    model = random_model(20)
    with LivePublisher.create(tmp_path / "live", model) as publisher:
        publisher.publish(random_delta(model, np.random.default_rng(0)))
    return tmp_path / "live"


def test_status_compact_and_rollback(pathdex: Pathdex, live: Path) -> None:
    text = pathdex("live", "status", str(live)).stdout
    assert "base-000001" in text
    assert "1 to 1" in text
    assert "has the base base-000002" in pathdex("live", "compact", str(live)).stdout
    assert "none" in pathdex("live", "status", str(live)).stdout
    assert "is back at the base base-000001" in pathdex("live", "rollback", str(live)).stdout
    assert "is back at the base base-000002" in pathdex("live", "rollback", str(live), "--base", "2").stdout
    assert "holds no base 9" in pathdex("live", "rollback", str(live), "--base", "9", fails=1).stderr


def test_a_folder_that_is_published_is_not_changed(pathdex: Pathdex, live: Path) -> None:
    with LivePublisher(live):
        assert "is in use by a publisher" in pathdex("live", "rollback", str(live), fails=1).stderr


def test_another_folder_is_refused(pathdex: Pathdex, tmp_path: Path) -> None:
    assert "is not a live folder" in pathdex("live", "status", str(tmp_path), fails=1).stderr
