"""One explorer per model; recordings only of the same training."""

from __future__ import annotations

import logging
import shutil
from pathlib import Path

import pytest

import pathdex
from pathdex.server.explorers import Explorers, open_explorer, read_recording
from pathdex.server.model_loader import ModelLoader
from tests.random_model import random_model


def test_a_model_has_one_explorer_with_its_recording(run_folder: Path) -> None:
    served = ModelLoader(run_folder).load()
    explorers = Explorers(run_folder)
    found = explorers.of(served)
    assert explorers.of(served) is found
    assert (found.version, found.recording.num_rounds, found.other) == (served.version, 2, None)
    other = ModelLoader(run_folder).load()
    assert explorers.of(other) is not found


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
