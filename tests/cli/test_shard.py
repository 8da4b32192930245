"""`pathdex shard`, and the options of `pathdex serve` that belong to routers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

import pathdex
from pathdex.cli.app import app
from pathdex.server import routed_model
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


def shard(*arguments: object) -> Result:
    return runner.invoke(app, ["shard", *map(str, arguments)])


def test_another_number_of_shards_is_reported(model: Path, tmp_path: Path) -> None:
    out, facts = tmp_path / "shards", tmp_path / "facts.json"
    assert shard(model, "--shards", 3, "--out", out).exit_code == 0
    same = shard(model, "--shards", 3, "--out", out, "--overwrite")
    assert same.exit_code == 0
    assert "routers" not in same.output.lower()
    fewer = shard(model, "--shards", 2, "--out", out, "--overwrite", "--json", facts)
    assert fewer.exit_code == 0
    text = " ".join(fewer.output.split())
    assert "The folder held 3 shards before." in text
    assert "serve all 2, and restart such routers with all their URLs" in text
    assert json.loads(facts.read_text())["replaced"] == 3
    assert sorted(path.name for path in out.iterdir()) == ["shard-1", "shard-2", "shards.json"]


@pytest.mark.parametrize("name", ["notes.txt", "shard-4", "shard-2/notes.txt"])
def test_files_of_others_are_not_deleted(model: Path, tmp_path: Path, name: str) -> None:
    out = tmp_path / "shards"
    assert shard(model, "--shards", 3, "--out", out).exit_code == 0
    (out / name).write_text("mine")
    refused = shard(model, "--shards", 2, "--out", out, "--overwrite")
    assert refused.exit_code == 1
    text = " ".join(refused.output.split())
    assert f"({name})" in text.replace("- ", "-")
    assert "so it is not overwritten; move them away" in text
    assert (out / name).read_text() == "mine"
    (out / name).unlink()
    assert shard(model, "--shards", 2, "--out", out, "--overwrite").exit_code == 0


def test_a_folder_whose_shards_are_not_bundles_is_not_overwritten(model: Path, tmp_path: Path) -> None:
    out = tmp_path / "shards"
    (out / "shard-1").mkdir(parents=True)
    for listing in ("", "[]", '{"shards": "2"}', '{"shards": 2}'):
        (out / "shards.json").write_text(listing)
        refused = shard(model, "--shards", 2, "--out", out, "--overwrite")
        assert refused.exit_code == 1
        assert "not overwritten" in " ".join(refused.output.split())


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
def test_wrong_options_of_a_router(
    arguments: list[str], message: str, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(routed_model, "REACH_SECONDS", 0.5)
    given = [one.format(model=model) for one in arguments]
    result = runner.invoke(app, ["serve", *given])
    assert result.exit_code == 1
    assert message in " ".join(result.output.split())
