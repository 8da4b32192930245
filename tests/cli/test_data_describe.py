"""`pathdex data describe`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Pathdex, files_under


def test_describe_prints_the_figures_and_writes_them(pathdex: Pathdex, ratings: Path, tmp_path: Path) -> None:
    columns = ["--user", "who", "--item", "what", "--rating", "stars", "--min-rating", 2, "--min-interactions", 2]
    text = pathdex("data", "describe", ratings, *columns, "--json", tmp_path / "figures.json").stdout
    figures = json.loads((tmp_path / "figures.json").read_text())
    assert figures["interactions"] == 24
    assert "interactions                24" in text
    assert "dropped low rating          16" in text


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "Error: {file} cannot be read"),
        (b"user_id,item_id,timestamp\n", "Error: {file} has no rows"),
        (b"user_id,thing\n1,2\n", "Error: no item column found in {file}; its columns are: user_id, thing"),
        (b"user_id,item_id\n1,\n2,5\n", "Error: column 'item_id' of {file}: 1 of 2 rows have no item id"),
        (b"user_id,item_id,time\n1,2,NaN\n", "Error: column 'time' of {file}: 1 of 1 rows"),
    ],
)
def test_bad_csv_is_one_clear_error(pathdex: Pathdex, tmp_path: Path, content: bytes, message: str) -> None:
    file = tmp_path / "bad.csv"
    file.write_bytes(content)
    before = files_under(tmp_path)
    assert message.format(file=file) in pathdex("data", "describe", file, fails=1).stderr
    assert files_under(tmp_path) == before


def test_truncated_parquet_is_one_clear_error(pathdex: Pathdex, planted: Path, tmp_path: Path) -> None:
    file = tmp_path / "cut.parquet"
    file.write_bytes(planted.read_bytes()[:-100])
    text = pathdex("data", "describe", file, fails=1).stderr
    assert f"Error: {file} cannot be read" in text
    assert "truncated" in text


def test_a_missing_column_is_named(pathdex: Pathdex, planted: Path) -> None:
    text = pathdex("data", "describe", planted, "--item", "sku", fails=1).stderr
    assert "item='sku'" in text
    assert "its columns are: user_id, item_id, timestamp" in text
