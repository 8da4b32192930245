"""When bases were written, how many items they have, and which one counts."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pathdex.errors import BundleError
from pathdex.recommenders.live_publisher import LivePublisher
from pathdex.recommenders.live_status import live_status
from tests.random_model import random_model


def test_every_base_has_a_date_and_a_number_of_items(tmp_path: Path) -> None:
    live = tmp_path / "live"
    with LivePublisher.create(live, random_model(20)) as publisher:
        publisher.publish_base(random_model(1_300))
        publisher.rollback()
    os.utime(live / "base-000001" / "manifest.json", (0, 0))
    os.utime(live / "CURRENT", (60, 60))
    status = live_status(live)
    assert [(one.number, one.items, one.is_current) for one in status.bases] == [(1, 20, True), (2, 1_300, False)]
    assert str(status.current) == "base-000001, written 1970-01-01 00:00:00 UTC, 20 items"
    assert str(status.bases[1]).endswith(", 1,300 items")
    assert (status.base, status.published) == ("base-000001", "1970-01-01 00:01:00 UTC")
    assert status.to_dict()["bases"][1]["name"] == "base-000002"


def test_a_base_that_cannot_be_read_is_shown_as_such(tmp_path: Path) -> None:
    LivePublisher.create(tmp_path / "live", random_model(20)).close()
    (tmp_path / "live" / "base-000001" / "manifest.json").write_text("{")
    assert str(live_status(tmp_path / "live").current) == "base-000001 (it cannot be read)"


def test_another_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BundleError, match="is not a live folder"):
        live_status(tmp_path)
