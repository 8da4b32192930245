"""Options that several commands share."""

from __future__ import annotations

import dataclasses
import inspect
import json
from pathlib import Path

import pytest

from pathdex.cli.options import READING, RUN, SPLIT, parameter_options, takes_split
from pathdex.config import Config, RunOptions
from pathdex.data.readers import read
from pathdex.experiments.splitting import SPLIT_OPTIONS
from tests.cli.conftest import TINY, Pathdex

FIELDS = {spec.name: spec for spec in dataclasses.fields(Config)}


def test_there_is_one_flag_per_field_with_its_help_and_default() -> None:
    made = {flag.name: flag for flag in parameter_options()}
    assert list(made) == list(FIELDS)
    for name, flag in made.items():
        option = flag.annotation.__metadata__[0]
        assert option.help.startswith(FIELDS[name].metadata["help"])
        assert flag.default is None
        if FIELDS[name].default is not None:
            assert f"default {str(FIELDS[name].default).lower()}" in option.help


def test_switches_have_a_second_name(pathdex: Pathdex) -> None:
    text = pathdex("train", "--help").stdout
    assert "--shared-items" in text
    assert "--no-shared-items" in text


def test_the_help_shows_every_flag_in_full(pathdex: Pathdex) -> None:
    text = pathdex("train", "--help").stdout
    assert [name for name in FIELDS if f"--{name.replace('_', '-')} " not in text] == []


@pytest.fixture
def config_file(tmp_path: Path) -> Path:
    file = tmp_path / "mine.toml"
    file.write_text('epochs = 3\nrounds = 5\npreset = "default"\n')
    return file


def test_flags_override_the_file_and_the_file_overrides_the_preset(
    pathdex: Pathdex, planted: Path, config_file: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    tiny = [*TINY, "--epochs", 1, "--rounds", 0, "--no-shared-items"]
    pathdex("train", planted, "--out", run, "--preset", "small", "--config", config_file, *tiny)
    kept = json.loads((run / "run.json").read_text())["config"]
    assert (kept["epochs"], kept["rounds"], kept["shared_items"]) == (1, 0, False)
    assert kept["num_nodes"] == 4


def test_all_invalid_flags_are_listed(pathdex: Pathdex, planted: Path, config_file: Path, tmp_path: Path) -> None:
    command = ["train", planted, "--out", tmp_path / "run", "--preset", "small", "--config", config_file]
    text = pathdex(*command, "--beam-size", 0, "--depth", 99, fails=1).stderr
    assert "2 problems in the configuration" in text
    assert not (tmp_path / "run").exists()


def test_every_option_of_read_is_a_flag() -> None:
    parameters = inspect.signature(read).parameters
    assert {option.name for option in READING} == parameters.keys() - {"source", "like"}


def test_every_option_of_every_split_is_a_flag() -> None:
    names = {name for names in SPLIT_OPTIONS.values() for name in names}
    assert {option.name for option in SPLIT} == {"split", *names}


def test_every_run_option_is_a_flag() -> None:
    assert {option.name for option in RUN} == {spec.name for spec in dataclasses.fields(RunOptions)}


def test_flags_are_none_if_not_given() -> None:
    assert {option.default for option in (*READING, *SPLIT, *RUN)} == {None}


def test_the_kind_of_a_split_is_stored_under_its_own_name() -> None:
    found: list[dict[str, object]] = []

    @takes_split
    def command(split: dict[str, object]) -> None:
        found.append(split)

    nothing = dict.fromkeys(option.name for option in SPLIT)
    command(**{**nothing, "split": "leave-last", "k": 2})
    command(**nothing)
    assert found == [{"kind": "leave-last", "k": 2}, {}]
