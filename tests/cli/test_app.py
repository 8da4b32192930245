"""What all commands share."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import pathdex as package
from pathdex.errors import DataError
from tests.cli.conftest import Pathdex

COMMANDS = [
    "demo", "data describe", "data validate", "data fetch", "data generate", "train", "evaluate", "compare",
    "reproduce", "recommend", "inspect", "serve", "verify", "warmup", "doctor",
    "live status", "live compact", "live rollback",
]  # fmt: skip


def test_the_version(pathdex: Pathdex) -> None:
    assert pathdex("--version").stdout == f"pathdex {package.__version__}\n"


def test_help_lists_every_command(pathdex: Pathdex) -> None:
    pages = {group: pathdex(*group, "--help").stdout for group in ((), ("data",), ("live",))}
    for command in COMMANDS:
        *group, name = command.split()
        assert f" {name} " in pages[tuple(group)]


@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_of_each_command_shows_an_example(pathdex: Pathdex, command: str) -> None:
    text = pathdex(*command.split(), "--help").stdout
    assert re.search(rf"Examples?:\s+pathdex {command}", text)


@pytest.mark.parametrize(
    "arguments", [["tain"], ["train"], ["train", "--depth", "three", "--out", "x"], ["evaluate", "x", "--beans", "3"]]
)
def test_a_usage_error_exits_with_2(pathdex: Pathdex, arguments: list[str]) -> None:
    assert pathdex(*arguments, fails=2).stderr


def test_an_error_is_one_message_without_a_traceback(pathdex: Pathdex) -> None:
    outcome = pathdex("data", "describe", "nowhere.csv", fails=1)
    assert outcome.stderr == "Error: nowhere.csv does not exist; check the path\n"
    assert outcome.stdout == ""


def test_debug_shows_the_traceback(pathdex: Pathdex) -> None:
    outcome = pathdex("data", "describe", "nowhere.csv", "--debug", fails=1)
    assert isinstance(outcome.exception, DataError)


def test_an_unexpected_error_is_not_swallowed(pathdex: Pathdex, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("pathdex.data.read", fail)
    assert isinstance(pathdex("data", "describe", "x.csv", fails=1).exception, ZeroDivisionError)


def test_ctrl_c_exits_with_130(pathdex: Pathdex, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("pathdex.data.read", interrupt)
    assert pathdex("data", "describe", "x.csv", fails=130).stderr == "Interrupted.\n"


def test_the_entry_point_runs_as_a_process(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "from pathdex.cli import main; main()", "data", "describe", "nowhere.csv"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "Error: nowhere.csv does not exist; check the path\n"
