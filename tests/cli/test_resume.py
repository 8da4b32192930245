"""A run that is killed in the middle and resumed gives the same result as an uninterrupted one."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tests.cli.conftest import TINY, Pathdex, files_under

COMMAND = "from pathdex.cli import main; main()"
DIES = """
import os, signal
from pathdex.training import callbacks, checkpointing

checkpointing.CHECKPOINT_SECONDS = 0.0

def on_step_end(self, progress):
    if (progress.phase, progress.epoch, progress.step) == {moment}:
        os.kill(os.getpid(), signal.SIGKILL)

callbacks.JsonLines.on_step_end = on_step_end
"""
"""Writes a checkpoint after every step, and kills the process with SIGKILL after one of them."""


def process(*arguments: Any, before: str = "", code: int = 0) -> str:
    """Run `pathdex ARGUMENTS` in a new process."""
    command = [sys.executable, "-c", before + COMMAND, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def whole(pathdex: Pathdex, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An uninterrupted run, next to its data, `rows.parquet`."""
    folder = tmp_path_factory.mktemp("story")
    pathdex("data", "generate", folder / "rows.parquet", "--users", 60, "--items", 40, "--interactions", 800)
    pathdex("train", folder / "rows.parquet", "--out", folder / "whole", *TINY)
    return folder / "whole"


def killed(whole: Path, phase: str, number: int, step: int) -> Path:
    """A run like `whole`, killed after a step of epoch `number` of a phase."""
    run = whole.with_name(f"killed-in-{phase}")
    before = DIES.format(moment=(phase, number, step))
    process("train", whole.with_name("rows.parquet"), "--out", run, *TINY, before=before, code=-signal.SIGKILL)
    assert not (run / "bundle").exists()
    return run


def figures(run: Path) -> list[dict[str, Any]]:
    """The log without the times, which differ from run to run."""
    lines = [json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()]
    return [{name: value for name, value in line.items() if not name.endswith("seconds")} for line in lines]


def test_a_run_killed_in_the_encoder_phase_resumes_to_the_same_bundle(whole: Path) -> None:
    run = killed(whole, "encoder", 2, 3)
    # Resuming does not need the data.
    assert f"Evaluate it with: pathdex evaluate {run}" in process("train", "--out", run, "--resume")
    assert files_under(run / "bundle") == files_under(whole / "bundle")
    assert figures(run) == figures(whole)


def test_a_run_killed_in_the_structure_phase_resumes_and_is_used(pathdex: Pathdex, whole: Path, tmp_path: Path) -> None:
    run = killed(whole, "structure", 2, 3)
    pathdex("train", "--out", run, "--resume")
    assert files_under(run / "bundle") == files_under(whole / "bundle")
    assert figures(run) == figures(whole)
    pathdex("evaluate", run, "--n", 3, "--candidates", "5,20", "--json", tmp_path / "figures.json")
    assert len(json.loads((tmp_path / "figures.json").read_text())["results"]) == 2 * 5
    rows = whole.with_name("rows.parquet")
    pathdex("recommend", run, "--input", rows, "--output", tmp_path / "recs.parquet", "--n", 4)
    assert pl.read_parquet(tmp_path / "recs.parquet").height == 60 * 4
    assert "paths in use" in pathdex("inspect", run).stdout
