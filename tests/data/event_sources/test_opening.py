"""Opening a source by its place."""

from __future__ import annotations

from pathlib import Path

import pytest

import pathdex.data.event_sources
from pathdex.data.event_sources import DeadLetters, open_source
from pathdex.data.event_sources.line_source import LineSource
from pathdex.data.event_sources.parquet_source import ParquetSource
from pathdex.errors import ConfigError, DataError


def test_public_names_are_sorted_and_exist() -> None:
    names = pathdex.data.event_sources.__all__
    assert names == sorted(names)
    assert all(hasattr(pathdex.data.event_sources, name) for name in names)


@pytest.mark.parametrize("name", ["a.jsonl", "a.ndjson", "a.csv", "a.tsv", "a.JSONL"])
def test_files_are_recognised_by_their_suffix(tmp_path: Path, name: str, letters: Path) -> None:
    (tmp_path / name).touch()
    source = open_source(str(tmp_path / name), dead_letters=DeadLetters(letters))
    assert isinstance(source, LineSource)
    source.close()


def test_a_folder_is_parquet(tmp_path: Path) -> None:
    assert isinstance(open_source(tmp_path, follow=True), ParquetSource)


def test_places_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no.jsonl does not exist; check the path, or create the file first"):
        open_source(tmp_path / "no.jsonl")
    (tmp_path / "a.txt").touch()
    with pytest.raises(
        DataError, match=r"the suffix '.txt' is unknown; known are .jsonl, .*; rename the file, or pipe"
    ):
        open_source(tmp_path / "a.txt")
    with pytest.raises(
        ConfigError, match=r"the scheme reddis:// is unknown; known are redis://.*did you mean 'rediss?'"
    ):
        open_source("reddis://host?stream=events")


def test_a_failure_closes_the_dead_letters(tmp_path: Path, letters: Path) -> None:
    dead = DeadLetters(letters)
    (tmp_path / "a.jsonl.gz").touch()
    with pytest.raises(ConfigError, match="a compressed file cannot grow"):
        open_source(tmp_path / "a.jsonl.gz", follow=True, dead_letters=dead)
    assert dead._handle == -1
