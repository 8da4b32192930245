"""`pathdex train --sharded-bundle`: the shards and the figures of the whole model, and clear errors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from pathdex.cli.app import app
from tests.cli.test_train_workers import SMALL, run, source

__all__ = ["source"]


@pytest.mark.slow
def test_shards_and_their_evaluation_are_those_of_the_whole_model(source: Path, tmp_path: Path) -> None:
    whole, sharded = tmp_path / "whole", tmp_path / "sharded"
    given = ["pathdex", "train", str(source), *SMALL, "--neighbours", "5", "--workers", "2", "--out"]
    assert run(*given, str(whole)).returncode == 0
    done = run(*given, str(sharded), "--sharded-bundle", "--json", str(tmp_path / "result.json"))
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "result.json").read_text())["model"] == str(sharded / "shards")
    assert run("pathdex", "shard", str(whole), "--shards", "2", "--out", str(tmp_path / "split")).returncode == 0
    for number in (1, 2):
        split, own = (folder / f"shard-{number}" for folder in (tmp_path / "split", sharded / "shards"))
        assert {file.name for file in own.iterdir()} == {file.name for file in split.iterdir()}
        for file in split.iterdir():
            if file.name != "manifest.json":
                assert (own / file.name).read_bytes() == file.read_bytes()
        assert content(own) == content(split)
        assert run("pathdex", "verify", str(own)).returncode == 0
    for folder in (whole, sharded):
        evaluated = run("pathdex", "evaluate", str(folder), "--json", str(folder / "figures.json"))
        assert evaluated.returncode == 0, evaluated.stderr
    rows = json.loads((whole / "figures.json").read_text())["results"]
    assert json.loads((sharded / "figures.json").read_text())["results"] == [
        row for row in rows if row["method"] != "brute-force"
    ]
    for command, message in (
        (["recommend", str(sharded), "--history", "4"], "was trained with --sharded-bundle, so it has no whole model"),
        (["evaluate", str(sharded), "--methods", "brute-force"], "brute-force takes the vectors of all items"),
        (["evaluate", str(sharded), "--loss-json", "x"], "--loss-json takes brute force"),
    ):
        failed = run("pathdex", *command)
        assert failed.returncode == 1
        assert message in failed.stderr
    assert "already finished" in run("pathdex", "train", "--out", str(sharded), "--resume").stderr


def content(folder: Path) -> Any:
    """The manifest of a shard without the version of the whole model."""
    manifest = json.loads((folder / "manifest.json").read_text())
    del manifest["settings"]["shard"]["version"], manifest["digest"]
    return manifest


def test_one_worker_has_nothing_to_share(source: Path, tmp_path: Path) -> None:
    train = ["train", str(source), "--out", str(tmp_path / "run")]
    found = CliRunner().invoke(app, [*train, "--sharded-bundle"])
    assert found.exit_code == 1
    assert "--sharded-bundle writes a shard per worker, so it is for several workers; set --workers" in found.output
    assert not (tmp_path / "run").exists()
