"""A tiny data set, a tiny trained run, and a function that calls the command."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

import pytest
from typer.testing import CliRunner

from pathdex.cli.app import app
from pathdex.data import generate

SETTINGS = {
    "num_nodes": 4, "depth": 2, "paths_per_item": 2, "embedding_dim": 8, "structure_hidden": 8, "node_dim": 4,
    "history_length": 8, "epochs": 2, "rounds": 2, "final_epochs": 1, "batch_size": 128, "structure_batch_size": 128,
    "candidate_paths": 8, "score_beam": 8, "threads": 1,
}  # fmt: skip
TINY = [word for name, value in SETTINGS.items() for word in (f"--{name.replace('_', '-')}", str(value))]
"""Flags of a run that trains in a second."""


class Outcome(Protocol):
    """The result of a call."""

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
def titled_run(planted: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run with an item table, which lacks items from 30 on; tests only read it."""
    folder = tmp_path_factory.mktemp("titled")
    rows = [f"{item},Item {item},{'a|b' if item % 2 else 'b'},{1960 + item}" for item in range(1, 30)]
    (folder / "items.csv").write_text("\n".join(["item_id,title,genres,year", *rows]) + "\n")
    flags = ["--items", folder / "items.csv", "--valid-users", 5, "--test-users", 6]
    call("train", planted, "--out", folder / "run", *TINY, *flags)
    return folder / "run"


@pytest.fixture(scope="session")
def run(planted: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run; tests only read it."""
    folder = tmp_path_factory.mktemp("runs") / "tiny"
    call("train", planted, "--out", folder, *TINY, "--valid-users", 5, "--test-users", 6)
    return folder


@pytest.fixture
def ratings(tmp_path: Path) -> Path:
    """40 rows of 4 users and 7 items, with uncommon column names."""
    file = tmp_path / "ratings.csv"
    file.write_text("who,what,stars,timestamp\n" + "".join(f"u{n % 4},i{n % 7},{n % 5},{n}\n" for n in range(40)))
    return file


def files_under(folder: Path) -> dict[str, bytes]:
    """Every file and its content, to check that nothing changed."""
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}
