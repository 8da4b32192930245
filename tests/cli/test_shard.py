"""`pathdex shard`, and the options of `pathdex serve` that belong to routers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

import pathdex
from pathdex.cli.app import app
from tests.random_model import random_model

runner = CliRunner()


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return random_model(20).save(tmp_path / "model")


def test_it_writes_a_folder_for_each_shard(model: Path, tmp_path: Path) -> None:
    result = runner.invoke(app, ["shard", str(model), "--shards", "3", "--out", str(tmp_path / "shards")])
    assert result.exit_code == 0
    assert "Wrote 3 shards of model" in result.output
    listing = json.loads((tmp_path / "shards" / "shards.json").read_text())
    assert listing["shards"] == 3
    assert len(pathdex.load(tmp_path / "shards" / "shard-1").items) == 7
    again = runner.invoke(app, ["shard", str(model), "--shards", "2", "--out", str(tmp_path / "shards")])
    assert again.exit_code == 1
    assert "--overwrite" in again.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "exactly one of RUN and --shards is required"),
        (["{model}", "--shards", "http://127.0.0.1:1"], "exactly one of RUN and --shards is required"),
        (["--shards", "127.0.0.1:1"], "must be an HTTP URL without a path"),
        (["--shards", "http://a:1,http://a:1/"], "is there twice"),
        (["{model}", "--partial"], "is for routers"),
        (["--shards", "http://a:1", "--events", "x.jsonl"], "cannot be used with shards"),
        (["--shards", "http://a:1", "--catalogue", "x.csv"], "belongs to the shards"),
        (["--shards", "http://a:1", "--shard-timeout", "0"], "shard_timeout"),
        (["--shards", "http://127.0.0.1:1", "--port", "0"], "1 of 1 shards cannot be reached"),
    ],
)
def test_wrong_options_of_a_router(arguments: list[str], message: str, model: Path) -> None:
    given = [one.format(model=model) for one in arguments]
    result = runner.invoke(app, ["serve", *given])
    assert result.exit_code == 1
    assert message in " ".join(result.output.split())
