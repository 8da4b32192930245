"""A tiny data set, a tiny trained run, and a way to call the command."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

import pytest
from typer.testing import CliRunner

from pathdex.cli.app import app
from pathdex.data import generate

TINY = [
    "--num-nodes",
    "4",
    "--depth",
    "2",
    "--paths-per-item",
    "2",
    "--embedding-dim",
    "8",
    "--structure-hidden",
    "8",
    "--node-dim",
    "4",
    "--history-length",
    "8",
    "--epochs",
    "2",
    "--rounds",
    "2",
    "--final-epochs",
    "1",
    "--batch-size",
    "128",
    "--candidate-paths",
    "8",
    "--score-beam",
    "8",
    "--threads",
    "1",
]


class Outcome(Protocol):
    """What a call of the command left."""

    exit_code: int
    stdout: str
    stderr: str
    exception: BaseException | None


class Pathdex(Protocol):
    def __call__(self, *arguments: Any, fails: int = 0) -> Outcome: ...


def call(*arguments: Any, fails: int = 0) -> Outcome:
    """Run `pathdex ARGUMENTS` here and check its exit code."""
    outcome = CliRunner().invoke(app, [str(one) for one in arguments])
    assert outcome.exit_code == fails, (outcome.stdout, outcome.stderr, outcome.exception)
    return outcome


@pytest.fixture(scope="session")
def pathdex() -> Pathdex:
    return call


@pytest.fixture(scope="session")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """60 users, 40 items, 800 rows."""
    return generate(tmp_path_factory.mktemp("planted") / "rows.parquet", users=60, items=40, interactions=800)


@pytest.fixture(scope="session")
def run(planted: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run; tests only read it."""
    folder = tmp_path_factory.mktemp("runs") / "tiny"
    call("train", planted, "--out", folder, *TINY, "--valid-users", 5, "--test-users", 6)
    return folder


def files_under(folder: Path) -> dict[str, bytes]:
    """Every file and what it holds, to show that nothing was touched."""
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}
