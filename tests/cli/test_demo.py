"""`pathdex demo` with a smaller shop."""

from __future__ import annotations

from pathlib import Path

import pytest

import pathdex as package
from pathdex.cli import demo
from tests.cli.conftest import SETTINGS, Pathdex, files_under


def test_it_trains_evaluates_and_recommends(pathdex: Pathdex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "PARAMETERS", SETTINGS)
    folder = tmp_path / "demo"
    outcome = pathdex("demo", "--users", 200, "--items", 400, "--seed", 1, "--out", folder)
    text = outcome.stdout
    for words in (
        "'dark chocolate', which belongs to food and gifts",
        "deep-retrieval",
        "brute-force",
        "item-cf",
        "popularity",
        "paths in use",
        "items on paths of their own interest",
        "items with two interests on paths of both",
        "p(path | history)",
    ):
        assert words in text
    assert text.count("\nAfter ") == demo.SHOWN_USERS
    assert "encoder 1  softmax" in outcome.stderr
    assert "\x1b" not in outcome.stderr + text
    assert isinstance(package.load(folder), package.DeepRetrieval)


def test_the_settings_are_a_valid_configuration() -> None:
    package.DeepRetrieval(**demo.PARAMETERS)


def test_an_existing_folder_is_refused_first(pathdex: Pathdex, tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("keep")
    assert "exists; choose another folder" in pathdex("demo", "--out", tmp_path, fails=1).stderr
    assert files_under(tmp_path) == {"mine": b"keep"}


def test_sizes_out_of_range_are_refused(pathdex: Pathdex) -> None:
    assert "items=3: must be a whole number of at least" in pathdex("demo", "--items", 3, fails=1).stderr
