"""`pathdex data fetch`."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from pathdex.data import DATASETS, Dataset
from tests.cli.conftest import Pathdex


def test_fetch_verifies_a_file_on_disk_and_shows_how_to_train(
    pathdex: Pathdex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = tmp_path / "mine.zip"
    mine.write_bytes(b"archive")
    source = Dataset(
        url="https://example.org/set.zip",
        filename="set.zip",
        md5=hashlib.md5(b"archive").hexdigest(),
        reading={"min_rating": 4, "format": "movielens"},
        valid_users=5,
        test_users=7,
        terms="free",
    )
    monkeypatch.setitem(DATASETS, "set", source)
    target = tmp_path / "data" / "set.zip"
    text = pathdex("data", "fetch", "set", "--file", mine, "--folder", target.parent).stdout
    assert target.read_bytes() == b"archive"
    flags = "--min-rating 4 --format movielens --valid-users 5 --test-users 7"
    assert f"pathdex train {target} --out runs/set {flags}" in text
    mine.write_bytes(b"another")
    target.unlink()
    assert "its md5 is" in pathdex("data", "fetch", "set", "--file", mine, "--folder", target.parent, fails=1).stderr
    assert not target.exists()


def test_an_unknown_name_is_refused_with_a_hint(pathdex: Pathdex, tmp_path: Path) -> None:
    text = pathdex("data", "fetch", "movielens-1n", "--folder", tmp_path, fails=1).stderr
    assert "did you mean 'movielens-1m'?" in text
