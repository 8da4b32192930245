"""The last good version, kept as open files."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from pathdex.recommenders.live_model import LiveModel
from pathdex.recommenders.live_publisher import LivePublisher
from pathdex.recommenders.live_reader import LiveReader
from pathdex.server.last_good import LastGood
from pathdex.server.model_loader import ModelLoader
from pathdex.storage.bundle import bundle_version
from tests.random_deltas import random_delta
from tests.random_model import random_model


@pytest.fixture
def bundle(tmp_path: Path, popular: Path) -> Path:
    return Path(shutil.copytree(popular, tmp_path / "bundle"))


def test_a_removed_model_is_loaded_from_its_files(bundle: Path) -> None:
    loader = ModelLoader(bundle)
    served = loader.load()
    kept = LastGood.keep(loader, served.version)
    assert kept is not None
    shutil.rmtree(bundle)
    again = LastGood.from_json(kept.to_json())
    assert again == kept
    loaded = loader.load_handles(again.path, again.files, again.position)
    assert loaded.version == served.version
    assert loaded.recommender.recommend([], 5) == served.recommender.recommend([], 5)
    kept.close()
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(kept.files["manifest.json"])
    assert loaded.recommender.recommend([], 5) == served.recommender.recommend([], 5)


def test_another_version_is_not_kept(bundle: Path, tmp_path: Path) -> None:
    assert LastGood.keep(ModelLoader(bundle), "another") is None
    assert LastGood.keep(ModelLoader(tmp_path / "nothing"), bundle_version(bundle)) is None


def test_no_file_stays_open(bundle: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    kept = LastGood.keep(ModelLoader(bundle), bundle_version(bundle))
    assert kept is not None
    kept.close()
    LastGood.keep(ModelLoader(bundle), "another")
    assert len(os.listdir("/proc/self/fd")) == before


def test_the_base_of_a_live_folder_and_its_deltas(tmp_path: Path) -> None:
    live = tmp_path / "live"
    with LivePublisher.create(live, random_model(12)) as publisher:
        loader = ModelLoader(live)
        kept = LastGood.keep(loader, "any")
        assert kept is not None
        publisher.publish(random_delta(random_model(12), np.random.default_rng(0)))
        current = loader.load()
        shutil.rmtree(live / publisher.version.base.name)
        loaded = loader.load_handles(kept.path, kept.files, kept.position)
        assert isinstance(loaded.recommender, LiveModel)
        assert loaded.version == current.version
        assert loaded.recommender.recommend([100], 9) == current.recommender.recommend([100], 9)
        kept.close()


def test_a_base_is_served_whatever_its_deltas_raise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    live, model = tmp_path / "live", random_model(12)
    with LivePublisher.create(live, model) as publisher:
        loader = ModelLoader(live)
        kept = LastGood.keep(loader, "any")
        assert kept is not None
        publisher.publish(random_delta(model, np.random.default_rng(0)))

        def fail(*_: object) -> None:
            raise ValueError("embedded null byte")

        monkeypatch.setattr(LiveReader, "update", fail)
        loaded = loader.load_handles(kept.path, kept.files, kept.position)
        kept.close()
    assert loaded.recommender.recommend([100], 9) == model.recommend([100], 9)
    assert "are left out" in caplog.text
