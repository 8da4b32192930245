"""`pathdex tune`: what it prints, writes and resumes."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from rich.console import Console
from rich.progress import Progress as RichProgress

from pathdex.cli.tune import TuneBar, TuneLines
from pathdex.config import Config
from pathdex.experiments import tune as module
from pathdex.experiments.trials import TuneTrial
from pathdex.system import OPTUNA, Feature
from tests.cli.conftest import TINY, Pathdex, files_under

FLAGS = [*TINY, "--valid-users", 6, "--test-users", 5, "--search", "dropout", "--trials", 2]


def test_the_best_values_train_a_run(pathdex: Pathdex, planted: Path, tmp_path: Path) -> None:
    study = tmp_path / "study"
    outcome = pathdex("tune", planted, "--out", study, *FLAGS, "--json", tmp_path / "trials.json")
    assert "2 trials, 0 already finished" in outcome.stderr
    assert "[1/2] dropout=0.5" in outcome.stderr
    assert "best: trial" in outcome.stderr
    assert "0 (defaults)" in outcome.stdout
    command = next(line for line in outcome.stdout.splitlines() if line.startswith("Train with it:"))
    assert command.endswith(f"--config {study / 'best.toml'} --valid-users 6 --test-users 5")
    found = json.loads((tmp_path / "trials.json").read_text())
    best = found["trials"][found["best"]]["parameters"]

    pathdex("train", planted, "--out", tmp_path / "tuned", "--config", study / "best.toml")
    request = json.loads((tmp_path / "tuned" / "run.json").read_text())
    assert request["config"] == {**Config().to_dict(), **found["fixed"], **best}


def test_resuming_runs_only_the_missing_trials(pathdex: Pathdex, planted: Path, tmp_path: Path) -> None:
    study = tmp_path / "study"
    pathdex("tune", planted, "--out", study, *FLAGS)
    before = files_under(study)["best.toml"]
    outcome = pathdex("tune", planted, "--out", study, *FLAGS, "--json", "-")
    assert "2 trials, 2 already finished" in outcome.stderr
    assert len(json.loads(outcome.stdout)["trials"]) == 2
    assert files_under(study)["best.toml"] == before
    text = pathdex("tune", planted, "--out", study, *FLAGS, "--min-interactions", 2, fails=1).stderr
    assert "cannot be resumed with other options: " in text
    assert "reading=" in text


def test_wrong_options_are_reported_before_data_is_read(pathdex: Pathdex, tmp_path: Path) -> None:
    text = pathdex("tune", tmp_path / "no.csv", "--out", tmp_path / "x", "--search", "drop", fails=1).stderr
    assert "did you mean 'dropout'?" in text
    text = pathdex(
        *("tune", tmp_path / "no.csv", "--out", tmp_path / "x", "--search", "dropout", "--dropout", 0.1), fails=1
    ).stderr
    assert "dropout is fixed to 0.1" in text
    for wrong in (("--trials", 0), ("--n", 0), ("--minutes", "nan")):
        text = pathdex("tune", tmp_path / "no.csv", "--out", tmp_path / "x", *wrong, fails=1).stderr
        assert text.startswith(f"Error: {wrong[0][2:]}={wrong[1]}: must be ")
    assert list(tmp_path.iterdir()) == []


def test_a_missing_optuna_is_reported(pathdex: Pathdex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pathdex.system.OPTUNA", Feature(OPTUNA.purpose, "no_such_package", "tune"))
    text = pathdex("tune", tmp_path / "x.csv", "--out", tmp_path / "study", fails=1).stderr
    assert "needs no_such_package; install it with: pip install 'pathdex[tune]'" in text


def test_ctrl_c_says_how_to_resume(
    pathdex: Pathdex, planted: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "tune", interrupt)
    text = pathdex("tune", planted, "--out", tmp_path / "study", *FLAGS, fails=130).stderr
    assert "Re-run the command to resume; finished trials are kept." in text


def test_a_terminal_shows_a_bar_and_a_log_shows_lines() -> None:
    trial = TuneTrial(0, "finished", {"dropout": 0.5}, 0.1, 2.0)
    failed = TuneTrial(1, "failed", {}, None, 0.0, "too large")
    for terminal in (True, False):
        stream = io.StringIO()
        console = Console(file=stream, force_terminal=terminal, width=80)
        with RichProgress(console=console) as bars:
            from pathdex.cli.progress import Log

            one = TuneBar(bars) if terminal else TuneLines(Log(console))
            one.on_begin(0, 2)
            one.on_trial_begin(0, {"dropout": 0.25})
            one.on_epoch({"phase": "encoder", "number": 1, "held_out_f": 0.05})
            one.on_trial_end(trial, trial)
            one.on_trial_end(failed, None)
        assert "dropout=0.25" in stream.getvalue()
        assert "F 10.00% in 2 s; best: trial 0, F 10.00%" in stream.getvalue()
        assert "failed: too large" in stream.getvalue()
