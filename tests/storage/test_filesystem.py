"""Files and folders reach the disk, and two paths swap places in one step."""

from __future__ import annotations

import ctypes
import errno
import os
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from pathdex.storage import filesystem as module
from pathdex.storage.filesystem import append_line, exchange, make_folders, sync, write_all, write_file


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


def test_folders_that_cannot_be_synced_are_removed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        fail_with(errno.EIO, patch)
        with pytest.raises(OSError, match="Input/output error"):
            make_folders(tmp_path / "one" / "two")
    assert list(tmp_path.iterdir()) == []
    make_folders(tmp_path / "one" / "two")
    assert (tmp_path / "one" / "two").is_dir()


def make(folder: Path, content: str) -> Path:
    folder.mkdir()
    (folder / "file").write_text(content)
    return folder


@pytest.mark.skipif(sys.platform != "linux", reason="not every file system of other systems can exchange")
def test_folders_swap_places(tmp_path: Path) -> None:
    first, second = make(tmp_path / "first", "1"), make(tmp_path / "second", "2")
    assert exchange(first, second)
    assert ((first / "file").read_text(), (second / "file").read_text()) == ("2", "1")


@pytest.mark.parametrize("code", [errno.ENOSYS, errno.EINVAL, errno.EPERM])
def test_an_unsupported_exchange_is_false(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    def refuse(*_: object) -> int:
        ctypes.set_errno(code)
        return -1

    library = SimpleNamespace(renameat2=refuse, renamex_np=refuse)
    monkeypatch.setattr(module.ctypes, "CDLL", lambda *_, **__: library)
    assert not exchange(tmp_path / "first", tmp_path / "second")


def test_a_c_library_without_the_call_is_false(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module.ctypes, "CDLL", lambda *_, **__: SimpleNamespace())
    assert not exchange(tmp_path / "first", tmp_path / "second")


def test_other_systems_are_false(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module.sys, "platform", "win32")
    assert not exchange(tmp_path / "first", tmp_path / "second")


def test_other_failures_are_raised(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        exchange(make(tmp_path / "first", "1"), tmp_path / "missing")


def test_a_system_that_takes_a_part_at_a_time_gets_the_rest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.write
    monkeypatch.setattr(os, "write", lambda handle, data: write(handle, data[:3]))
    write_file(tmp_path / "file", [b"abcdefgh", memoryview(b"12345678").cast("H"), b""])
    assert (tmp_path / "file").read_bytes() == b"abcdefgh12345678"


def test_a_failed_write_is_an_error(tmp_path: Path) -> None:
    with (tmp_path / "file").open("w"):
        handle = os.open(tmp_path / "file", os.O_RDONLY)
    with pytest.raises(OSError, match="Bad file descriptor"):
        write_all(handle, b"x")
    os.close(handle)


def test_lines_are_appended_and_synced_with_the_name_of_a_new_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []
    monkeypatch.setattr(os, "fsync", lambda handle: synced.append(os.readlink(f"/proc/self/fd/{handle}")))
    append_line(tmp_path / "log", b"one")
    assert synced == [str(tmp_path / "log"), str(tmp_path)]
    append_line(tmp_path / "log", b"two")
    assert (tmp_path / "log").read_bytes() == b"one\ntwo\n"
    assert len(synced) == 3
