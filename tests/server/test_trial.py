"""New models are tried in a process of their own, once per version."""

from __future__ import annotations

import shutil
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pathdex.errors import BundleError, ServerError
from pathdex.recommenders.live_publisher import LivePublisher
from pathdex.server import trial
from pathdex.server.model_loader import ModelLoader
from pathdex.server.trial import run_trial, stop_trials, try_model
from pathdex.storage.bundle import bundle_version
from tests.bundle_edits import sign_files
from tests.random_deltas import changed_model, random_delta
from tests.random_model import random_model


@pytest.fixture
def bundle(tmp_path: Path, popular: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PATHDEX_CACHE", str(tmp_path / "cache"))
    return Path(shutil.copytree(popular, tmp_path / "bundle"))


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The trials that ran."""
    made: list[Any] = []
    real = trial.run_trial

    def counted(loader: ModelLoader) -> str:
        made.append(loader)
        return real(loader)

    monkeypatch.setattr(trial, "run_trial", counted)
    return made


def spoil(bundle: Path) -> None:
    """Content that breaks the rules, with valid checksums."""
    np.save(bundle / "counts.npy", np.full(32, -1))
    sign_files(bundle)


def test_a_good_model_is_tried_once(bundle: Path, runs: list[Any]) -> None:
    loader = ModelLoader(bundle)
    assert {try_model(loader) for _ in range(3)} == {bundle_version(bundle)}
    assert len(runs) == 1


def test_a_live_model_is_tried_once_per_base(tmp_path: Path, runs: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATHDEX_CACHE", str(tmp_path / "cache"))
    random, model, loader = np.random.default_rng(0), random_model(20), ModelLoader(tmp_path / "live")
    with LivePublisher.create(loader.model, model) as publisher:
        for _ in range(2):
            publisher.publish(delta := random_delta(model, random))
            model = changed_model(model, delta)
            try_model(loader)
        assert len(runs) == 1
        publisher.compact()
        try_model(loader)
        assert len(runs) == 2


def test_a_bad_model_is_refused_with_the_reason_and_tried_once(bundle: Path, runs: list[Any]) -> None:
    spoil(bundle)
    for _ in range(2):
        with pytest.raises(BundleError, match="is damaged: counts: holds -1, must hold no value below 0"):
            try_model(ModelLoader(bundle))
    assert len(runs) == 1


def test_a_refusal_does_not_count_forever(bundle: Path, runs: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    spoil(bundle)
    monkeypatch.setattr(trial, "REFUSED_SECONDS", 0.0)
    for _ in range(2):
        with pytest.raises(BundleError, match="is damaged"):
            try_model(ModelLoader(bundle))
    assert len(runs) == 2


def test_without_a_cache_every_trial_runs(bundle: Path, runs: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATHDEX_CACHE", "")
    for _ in range(2):
        try_model(ModelLoader(bundle))
    assert len(runs) == 2


def python_that(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, script: str) -> None:
    (tmp_path / "python").write_text(f"#!/bin/sh\n{script}\n")
    (tmp_path / "python").chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))


def test_a_model_that_crashes_its_process_is_refused(
    bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    python_that(monkeypatch, tmp_path, "echo trouble >&2; kill -SEGV $$")
    with pytest.raises(BundleError, match="ended the process that tried it with code -11; train it again"):
        run_trial(ModelLoader(bundle))
    assert "trouble" in caplog.text


def test_a_model_that_takes_too_long_is_refused(bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    python_that(monkeypatch, tmp_path, "exec sleep 60")
    with pytest.raises(BundleError, match=r"was not loaded and tested within 0.2 s; train it again"):
        run_trial(ModelLoader(bundle), 0.2)


def test_a_server_that_stops_does_not_wait_for_a_trial(
    bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = sys.executable
    python_that(monkeypatch, tmp_path, f"touch {tmp_path / 'began'}; exec sleep 60")

    def stop() -> None:
        while not (tmp_path / "began").exists():
            time.sleep(0.01)
        stop_trials()

    threading.Thread(target=stop).start()
    with pytest.raises(ServerError, match=r"the server stopped while .* was tried"):
        try_model(ModelLoader(bundle))
    monkeypatch.setattr(sys, "executable", python)
    assert try_model(ModelLoader(bundle)) == bundle_version(bundle)  # It was no verdict.


def test_the_catalogue_table_is_part_of_the_trial(bundle: Path, tmp_path: Path) -> None:
    table = tmp_path / "shop.csv"
    table.write_text("item_id,colour\nitem 1,red\n")
    assert run_trial(ModelLoader(bundle, table)) == bundle_version(bundle)
    table.write_text("")
    with pytest.raises(BundleError):
        run_trial(ModelLoader(bundle, table))
