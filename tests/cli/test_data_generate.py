"""`pathdex data generate`."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from tests.cli.conftest import Pathdex, files_under


def test_generate_writes_the_given_sizes(pathdex: Pathdex, tmp_path: Path) -> None:
    target = tmp_path / "new.parquet"
    sizes = ["--users", 20, "--items", 10, "--interactions", 100]
    text = pathdex("data", "generate", target, *sizes).stdout
    assert f"{target}: 100 interactions of 20 users with 10 items" in text
    frame = pl.read_parquet(target)
    assert (frame.height, frame["user_id"].n_unique(), frame["item_id"].n_unique()) == (100, 20, 10)
    before = files_under(tmp_path)
    assert f"Error: {target} exists" in pathdex("data", "generate", target, *sizes, fails=1).stderr
    assert files_under(tmp_path) == before
    pathdex("data", "generate", target, *sizes, "--seed", 1, "--overwrite")
    assert files_under(tmp_path) != before


def test_generate_lists_all_problems(pathdex: Pathdex, tmp_path: Path) -> None:
    text = pathdex("data", "generate", tmp_path / "x.parquet", "--users", 0, "--depth", 0, fails=1).stderr
    assert "users=0: must be" in text
    assert "depth=0: must be" in text
    assert files_under(tmp_path) == {}
