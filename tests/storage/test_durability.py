"""Files and folders reach the disk."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from pathdex.storage.durability import make_folders, sync


def fail_with(code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: int) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "fsync", fail)


def test_files_and_folders_are_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[str] = []
    monkeypatch.setattr(os, "fsync", lambda handle: synced.append(os.readlink(f"/proc/self/fd/{handle}")))
    (tmp_path / "file").write_text("x")
    sync(tmp_path / "file")
    sync(tmp_path)
    assert synced == [str(tmp_path / "file"), str(tmp_path)]


def test_a_file_system_that_cannot_sync_folders_is_accepted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fail_with(errno.EINVAL, monkeypatch)
    sync(tmp_path)
    (tmp_path / "file").write_text("x")
    with pytest.raises(OSError, match="Invalid argument"):
        sync(tmp_path / "file")


def test_a_failing_disk_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fail_with(errno.EIO, monkeypatch)
    with pytest.raises(OSError, match="Input/output error"):
        sync(tmp_path)


def test_new_folders_are_synced_into_their_parents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[str] = []
    monkeypatch.setattr(os, "fsync", lambda handle: synced.append(os.readlink(f"/proc/self/fd/{handle}")))
    make_folders(tmp_path / "one" / "two")
    assert [os.path.relpath(path, tmp_path) for path in synced] == ["one", "."]
    make_folders(tmp_path / "one" / "two")
    assert len(synced) == 2
