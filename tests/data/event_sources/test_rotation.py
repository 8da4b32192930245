"""The order of rotated files."""

from __future__ import annotations

import os
from pathlib import Path

from pathdex.data.event_sources.rotation import inode_of, next_file, rotated_files


def create(folder: Path, *names: str, times: bool = True) -> None:
    for moment, name in enumerate(names):
        (folder / name).touch()
        os.utime(folder / name, (moment if times else 5, moment if times else 5))


def test_files_are_ordered_by_time_then_by_number(tmp_path: Path) -> None:
    path = tmp_path / "e.jsonl"
    create(tmp_path, "e.jsonl-20260101", "e.jsonl-20260102", "e.jsonl", "e.jsonl.dead", "other.jsonl.1", "e.jsonl.1.gz")
    assert [file.name for file in rotated_files(path)] == ["e.jsonl-20260101", "e.jsonl-20260102", "e.jsonl"]
    path.unlink()
    assert [file.name for file in rotated_files(path)] == ["e.jsonl-20260101", "e.jsonl-20260102"]


def test_of_files_of_the_same_time_the_higher_number_is_older(tmp_path: Path) -> None:
    create(tmp_path, "e.jsonl.1", "e.jsonl.10", "e.jsonl.9", "e.jsonl", times=False)
    names = [file.name for file in rotated_files(tmp_path / "e.jsonl")]
    assert names == ["e.jsonl.10", "e.jsonl.9", "e.jsonl.1", "e.jsonl"]


def test_the_next_file(tmp_path: Path) -> None:
    path = tmp_path / "e.jsonl"
    create(tmp_path, "e.jsonl.2", "e.jsonl.1", "e.jsonl")
    inodes = {name: inode_of(tmp_path / name) or 0 for name in ("e.jsonl.2", "e.jsonl.1", "e.jsonl")}
    assert next_file(path, inodes["e.jsonl"]) is None
    assert next_file(path, inodes["e.jsonl.2"]) == tmp_path / "e.jsonl.1"
    assert next_file(path, inodes["e.jsonl.1"]) == path
    assert next_file(path, -1) == path  # The old file was deleted.
    path.unlink()
    assert next_file(path, inodes["e.jsonl.1"]) is None
    assert inode_of(path) is None
