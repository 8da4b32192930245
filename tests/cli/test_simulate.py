"""`pathdex simulate` on a tiny platform, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Pathdex

TINY = [
    *("--users", 300, "--creators", 20, "--videos", 80, "--requests-per-minute", 300, "--warmup-minutes", 2),
    *("--minutes", 2, "--retrain-minutes", 1, "--build-minutes", 0.5, "--tick-seconds", 20, "--broker", "file"),
]


def test_a_report_is_written(pathdex: Pathdex, tmp_path: Path) -> None:
    folder = tmp_path / "report"
    outcome = pathdex("simulate", "--out", folder, "--arms", "oracle,popularity,random", *TINY)
    assert f"{folder / 'report.html'}\n{folder / 'report.md'}\n{folder / 'results.json'}\n" in outcome.stdout
    assert "oracle" in outcome.stdout
    content = json.loads((folder / "results.json").read_text())
    assert content["options"]["users"] == 300
    assert not content["quick"]
    assert "\x1b" not in outcome.stderr + outcome.stdout


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--users", 3], "users=3: must be at least 10"),
        (["--arms", "streeming,frozen"], "did you mean 'streaming'?"),
        (["--arms", "frozen"], "must be at least two"),
        (["--arms", ","], "--arms=',': must name at least one"),
        (["--build-minutes", 60], "must be at most retrain_minutes=15"),
        (["--broker", "kafka://host/topic"], "is not a Redis"),
    ],
)
def test_bad_options(pathdex: Pathdex, tmp_path: Path, flags: list[Any], message: str) -> None:
    assert message in pathdex("simulate", "--out", tmp_path / "report", *flags, fails=1).stderr


def test_ctrl_c_says_that_nothing_was_written(
    pathdex: Pathdex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("pathdex.experiments.simulate.run.run_simulation", interrupt)
    text = pathdex("simulate", "--out", tmp_path / "report", fails=130).stderr
    assert "Interrupted. No report was written; run the command again to start over" in text
