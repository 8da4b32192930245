"""`pathdex compare`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import TINY, Pathdex


@pytest.fixture(scope="module")
def other(pathdex: Pathdex, planted: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "other"
    pathdex("train", planted, "--out", folder, *TINY, "--epochs", 0, "--valid-users", 5, "--test-users", 6)
    return folder


def test_tables_and_json(pathdex: Pathdex, run: Path, other: Path, tmp_path: Path) -> None:
    outcome = pathdex("compare", run, other, "--n", 3, "--json", tmp_path / "d.json")
    assert "seen items removed" in outcome.stdout
    assert "seen items kept" in outcome.stdout
    assert "95% interval" in outcome.stdout
    assert f"A: {run}\nB: {other}\n6 test users, candidates 30\n" in outcome.stderr
    content = json.loads((tmp_path / "d.json").read_text())
    assert len(content["differences"]) == 14


def test_beam_and_candidates_exclude_each_other(pathdex: Pathdex, run: Path, other: Path) -> None:
    assert "5 valid users, beam 2" in pathdex("compare", run, other, "--beam", 2, "--on", "valid").stderr
    text = pathdex("compare", run, other, "--beam", 2, "--candidates", 20, fails=1).stderr
    assert "--beam=2: cannot be combined with --candidates=20; leave one of them out" in text


def test_runs_that_cannot_be_compared(pathdex: Pathdex, run: Path, tmp_path: Path) -> None:
    assert "pass two runs" in pathdex("compare", run, run, fails=1).stderr
    assert "is not a run folder" in pathdex("compare", run, tmp_path / "no", fails=1).stderr
