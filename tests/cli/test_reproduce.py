"""`pathdex reproduce` on a tiny data set, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import SETTINGS, Pathdex

METHODS = ["--methods", "popularity,deep-retrieval"]
TINY = [
    word
    for name, value in SETTINGS.items()
    if name != "threads"
    for word in ("--set", f"deep-retrieval.{name}={value}")
]


def test_a_quick_run_is_written_and_resumed(pathdex: Pathdex, planted: Path, tmp_path: Path) -> None:
    folder = tmp_path / "report"
    command = ["reproduce", planted, "--out", folder, "--quick", *METHODS, *TINY, "--no-sensitivity", "--threads", 1]
    outcome = pathdex(*command, "--n", 3, "--test-users", 8)
    assert "[1/6] split, seed 0" in outcome.stderr
    assert "0 left" in outcome.stderr
    assert "deep-retrieval" in outcome.stdout
    assert f"{folder / 'report.html'}\n{folder / 'report.md'}\n{folder / 'results.json'}\n" in outcome.stdout
    content = json.loads((folder / "results.json").read_text())
    assert content["methods"] == ["popularity", "deep-retrieval"]
    assert "pathdex reproduce rows.parquet --out" in content["provenance"]["command"]
    assert content["sensitivity"] is None
    assert "\x1b" not in outcome.stderr + outcome.stdout
    again = pathdex(*command, "--n", 3, "--test-users", 8)
    assert "6 steps, 6 already finished" in again.stderr
    text = pathdex(*command, "--n", 4, "--test-users", 8, fails=1).stderr
    assert "cannot be resumed with other options: n=4, but the report has 3" in text


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--seeds", "0,x"], "--seeds='0,x': must be whole numbers of at least 0; separate them by commas"),
        (["--set", "tdm.epochs"], "--set='tdm.epochs': must be METHOD.NAME=VALUE; write tdm.epochs=2"),
        (["--set", "tdm=2"], "must be METHOD.NAME=VALUE"),
        (["--set", "tdm.node_model=dnn"], "'dnn' is not JSON; write text as '\"dnn\"'"),
        (["--methods", "item-fc"], "did you mean 'item-cf'?"),
        (["--preset", "books"], "preset='books': must be one of"),
        (["--split", "random"], "split='random': must be one of users, temporal, leave-last"),
    ],
)
def test_bad_options(pathdex: Pathdex, planted: Path, tmp_path: Path, flags: list[Any], message: str) -> None:
    assert message in pathdex("reproduce", planted, "--out", tmp_path / "report", *flags, fails=1).stderr
    assert list(tmp_path.iterdir()) == []


def test_ctrl_c_says_how_to_resume(
    pathdex: Pathdex, planted: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("pathdex.experiments.steps.StepStore.run", interrupt)
    folder = tmp_path / "report"
    text = pathdex("reproduce", planted, "--out", folder, "--methods", "popularity", fails=130).stderr
    assert "Interrupted. Re-run the command to resume; finished steps are skipped." in text
