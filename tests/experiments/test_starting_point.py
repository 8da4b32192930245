"""Runs and bundles to start from."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from pathdex.errors import RunError
from pathdex.experiments.run_request import TrainOptions, make_run_request
from pathdex.experiments.starting_point import StartingPoint
from pathdex.recommenders.registry import load
from tests.cli.conftest import SETTINGS, TINY, Pathdex, pathdex, planted, run, titled_run

__all__ = ["pathdex", "planted", "run", "titled_run"]


def test_a_run_gives_its_options_and_its_split(run: Path) -> None:
    found = StartingPoint.open(run)
    assert {name: found.config[name] for name in SETTINGS if name != "threads"} == {
        name: value for name, value in SETTINGS.items() if name != "threads"
    }
    assert found.split is not None
    assert (len(found.split.valid), len(found.split.test)) == (5, 6)


def test_a_bundle_gives_its_shape_alone(run: Path, tmp_path: Path) -> None:
    load(run).save(tmp_path / "saved")
    found = StartingPoint.open(tmp_path / "saved")
    assert found.config["num_nodes"] == 4
    assert "epochs" not in found.config
    assert found.split is None


def test_an_unfinished_run_is_refused(run: Path, tmp_path: Path) -> None:
    shutil.copytree(run, tmp_path / "half", ignore=shutil.ignore_patterns("bundle"))
    with pytest.raises(RunError, match="is not finished; finish it first"):
        StartingPoint.open(tmp_path / "half")


def test_a_run_from_a_run_holds_out_the_same_users(
    pathdex: Pathdex, planted: Path, titled_run: Path, tmp_path: Path
) -> None:
    outcome = pathdex("train", planted, "--out", tmp_path / "next", "--from", titled_run, "--epochs", 4)
    assert "it knows 40 of 40 items" in outcome.stderr
    assert "figures of this run can be too good" not in outcome.stderr
    request = json.loads((tmp_path / "next" / "run.json").read_text())
    assert request["from"] == str(titled_run)
    assert (request["config"]["epochs"], request["config"]["embedding_dim"]) == (4, 8)
    before, now = (StartingPoint.open(path) for path in (titled_run, tmp_path / "next"))
    assert before.split is not None
    assert now.split is not None
    assert sorted(before.split.test.users.first_ids(9)) == sorted(now.split.test.users.first_ids(9))
    # Titles are those of the earlier run.
    assert now.model.recommend([1], 1)[0].title is not None
    text = pathdex("train", "--out", tmp_path / "next", "--resume", "--from", planted, fails=1).stderr
    assert f"from='{planted}', but the run has '{titled_run}'" in text


def test_a_run_from_a_bundle_warns_about_its_figures(
    pathdex: Pathdex, planted: Path, run: Path, tmp_path: Path
) -> None:
    load(run).save(tmp_path / "saved")
    flags = ["--from", tmp_path / "saved", "--epochs", 2, "--rounds", 1, "--batch-size", 128]
    outcome = pathdex("train", planted, "--out", tmp_path / "next", *flags)
    assert "may have been trained on users who are held out now" in outcome.stderr
    own = pathdex("train", planted, "--out", tmp_path / "own", "--from", run, "--test-users", 7)
    assert "may have been trained on users who are held out now" in own.stderr


def test_filters_of_the_run_apply_unless_others_are_given(pathdex: Pathdex, planted: Path, tmp_path: Path) -> None:
    pathdex("train", planted, "--out", tmp_path / "a", *TINY, "--min-interactions", 5)
    options = TrainOptions(planted, start=tmp_path / "a")
    assert make_run_request(options).reading["min_interactions"] == 5
    given = TrainOptions(planted, {"min_interactions": 3}, start=tmp_path / "a")
    assert make_run_request(given).reading["min_interactions"] == 3
