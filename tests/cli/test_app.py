"""What all commands share."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

import pathdex as package
from pathdex.cli.app import app
from pathdex.errors import DataError
from tests.cli.conftest import Pathdex

COMMANDS = [
    "demo", "data describe", "data validate", "data fetch", "data generate", "train", "evaluate", "compare",
    "reproduce", "recommend", "inspect", "serve", "verify", "warmup", "doctor",
    "live status", "live compact", "live rollback", "tune", "similar", "explain", "why-not", "shard", "simulate",
    "data prepare", "stream",
]  # fmt: skip
RUNNING = ("serve", "stream", "explore")
"""They run until they are stopped, and have no result to print."""


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


def every_command() -> dict[str, TyperCommand]:
    """All commands with their parameters, by name: `data describe`."""
    root = get_command(app)
    assert isinstance(root, TyperGroup)
    found = {}
    for name, one in root.commands.items():
        parts = one.commands.items() if isinstance(one, TyperGroup) else [("", one)]
        found |= {f"{name} {part}".strip(): command for part, command in parts}
    return found


def options_of(name: str) -> set[str]:
    return {flag for parameter in every_command()[name].params for flag in parameter.opts}


@pytest.mark.parametrize("name", sorted(every_command()))
def test_every_command_takes_quiet_and_debug_and_those_with_a_result_json(name: str) -> None:
    assert {"--quiet", "--debug"} <= options_of(name)
    assert ("--json" in options_of(name)) == (name not in RUNNING)


def test_a_command_that_fails_still_prints_its_result_as_json(pathdex: Pathdex, tmp_path: Path) -> None:
    file = tmp_path / "rows.csv"
    file.write_text("user,item\nada,1\n,2\n")
    printed = json.loads(pathdex("data", "validate", file, "--json", "-", fails=1).stdout)
    assert printed["errors"] == 1
    assert [one["code"] for one in printed["findings"] if one["level"] == "error"] == ["D201"]


def test_what_makes_files_says_which_as_json(pathdex: Pathdex, planted: Path, run: Path, tmp_path: Path) -> None:
    def printed(*arguments: object) -> dict[str, Any]:
        content: dict[str, Any] = json.loads(pathdex(*arguments, "--json", "-").stdout)
        return content

    sizes = ("--users", 30, "--items", 20, "--interactions", 300)
    made = printed("data", "generate", tmp_path / "made.parquet", *sizes)
    assert Path(made["file"]).exists()
    assert (made["users"], made["interactions"]) == (30, 300)
    prepared = printed("data", "prepare", planted, "--out", tmp_path / "prepared")
    assert (prepared["users"], prepared["interactions"]) == (60, 800)
    shards = printed("shard", run, "--shards", 2, "--out", tmp_path / "shards")
    assert [Path(one).name for one in shards["folders"]] == ["shard-1", "shard-2"]
    batch = printed("recommend", run, "--input", planted, "--output", tmp_path / "all.csv")
    assert (batch["users"], batch["rows"]) == (60, 600)


@pytest.mark.parametrize(
    ("words", "expected"), [("pathdex rec", "recommend"), ("pathdex evaluate --cand", "--candidates")]
)
def test_the_shell_completes_commands_and_options(words: str, expected: str) -> None:
    parts = words.split()
    variables = {
        "_PATHDEX_COMPLETE": "complete_bash",
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(parts) - 1),
    }
    command = [sys.executable, "-c", "import sys; sys.argv[0] = 'pathdex'; from pathdex.cli import main; main()"]
    done = subprocess.run(command, env={**os.environ, **variables}, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.split() == [expected]
