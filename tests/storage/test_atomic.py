"""A file is written whole or not at all."""

from __future__ import annotations

import resource
from pathlib import Path

import pytest

from pathdex.errors import StorageError
from pathdex.storage.atomic import atomic_write


def test_it_makes_folders_and_replaces_what_was_there(tmp_path: Path) -> None:
    target = tmp_path / "deep" / "file.txt"
    for content in (b"one", b"two"):
        with atomic_write(target) as stream:
            stream.write(content)
        assert target.read_bytes() == content
    assert list(target.parent.iterdir()) == [target]
    assert target.stat().st_mode & 0o777 == 0o644


def test_an_error_in_between_leaves_the_old_file(tmp_path: Path) -> None:
    target = tmp_path / "file.txt"
    target.write_text("old")
    with pytest.raises(TypeError), atomic_write(target) as stream:
        stream.writelines([b"new", 5])  # type: ignore[list-item]
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_a_full_disk_leaves_the_old_file(tmp_path: Path) -> None:
    target = tmp_path / "file.txt"
    target.write_text("old")
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
    try:
        message = r"cannot write .*file.txt: File too large; .* nothing was changed$"
        with pytest.raises(StorageError, match=message), atomic_write(target) as stream:
            stream.write(b"x" * 10_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]
