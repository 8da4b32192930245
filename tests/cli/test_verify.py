"""`pathdex verify` on good and damaged folders."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from tests.cli.conftest import Pathdex
from tests.snippets import ROOT

GOLDEN = ROOT / "tests" / "golden"


def test_a_good_bundle(pathdex: Pathdex) -> None:
    assert "no problems, everything checked" in pathdex("verify", str(GOLDEN / "bundles" / "item-cf")).stdout


def test_a_finished_run(pathdex: Pathdex) -> None:
    assert "no problems, 3 parts checked" in pathdex("verify", str(GOLDEN / "runs" / "finished")).stdout


def test_all_problems_are_listed(pathdex: Pathdex, tmp_path: Path) -> None:
    path = Path(shutil.copytree(GOLDEN / "bundles" / "item-cf", tmp_path / "bundle"))
    (path / "order.npy").unlink()
    (path / "offsets.npy").write_bytes(b"x")
    text = pathdex("verify", str(path), fails=1).stderr
    assert "- " in text
    assert "order.npy is missing" in text
    assert "offsets.npy has 1 bytes" in text
    assert "2 problems" in text


def test_problems_as_json_and_with_quiet(pathdex: Pathdex, tmp_path: Path) -> None:
    path = Path(shutil.copytree(GOLDEN / "bundles" / "item-cf", tmp_path / "bundle"))
    (path / "order.npy").unlink()
    outcome = pathdex("verify", path, "--quiet", "--json", "-", fails=1)
    assert len(json.loads(outcome.stdout)["problems"]) == 1
    assert "order.npy is missing" in outcome.stderr


def test_what_is_no_model(pathdex: Pathdex, tmp_path: Path) -> None:
    assert "is not a Pathdex bundle" in pathdex("verify", str(tmp_path), fails=1).stderr
    assert "does not exist" in pathdex("verify", str(tmp_path / "nothing"), fails=1).stderr


def test_a_stream(pathdex: Pathdex, tmp_path: Path) -> None:
    file = tmp_path / "events.jsonl"
    file.write_text("")
    pathdex("stream", file, "--out", tmp_path / "live", "--num-nodes", "4", "--embedding-dim", "8")
    text = pathdex("verify", tmp_path / "live").stdout
    assert "checkpoints 1 to 1" in text
    assert "The stream has not published a model yet." in text
    file.write_text("".join(f'{{"user": "ada", "item": {item}}}\n' for item in range(9)))
    pathdex("stream", file, "--out", tmp_path / "live", "--num-nodes", "4", "--embedding-dim", "8")
    text = pathdex("verify", tmp_path / "live").stdout
    assert "state/histories.sqlite" in text
    assert "base-000001" in text
    assert "not published" not in text
    (tmp_path / "live" / "state" / "full-000000001.safetensors").write_bytes(b"x")
    assert "full-000000001.safetensors is damaged" in pathdex("verify", tmp_path / "live", fails=1).stderr
