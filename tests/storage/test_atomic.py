"""Files and folders are written completely or not at all."""

from __future__ import annotations

import errno
import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pathdex.errors import StorageError
from pathdex.storage import atomic
from pathdex.storage.atomic import atomic_folder, atomic_path, atomic_write, publish_folder
from pathdex.storage.staging import remove_stale


@contextmanager
def file_size_limit(size: int) -> Iterator[None]:
    """Let no file grow past `size` bytes, as a full disk would."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def names(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.iterdir())


@pytest.fixture(params=["exchange", "two renames"])
def swap(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """With the exchange of the system, and as on a system without one."""
    if request.param == "two renames":
        monkeypatch.setattr(atomic, "exchange", lambda *_: False)
    way: str = request.param
    return way


def make(folder: Path, content: str) -> Path:
    (folder / "deep").mkdir(parents=True)
    (folder / "deep" / "file").write_text(content)
    return folder


class TestFiles:
    def test_folders_are_created_and_files_replaced(self, tmp_path: Path) -> None:
        target = tmp_path / "deep" / "file.txt"
        for content in (b"one", b"two"):
            with atomic_write(target) as stream:
                stream.write(content)
            assert target.read_bytes() == content
        assert names(target.parent) == ["file.txt"]
        assert target.stat().st_mode & 0o777 == 0o644

    def test_the_target_changes_only_at_the_end(self, tmp_path: Path) -> None:
        target = tmp_path / "file.txt"
        target.write_text("old")
        with atomic_path(target) as staging:
            staging.write_text("new")
            assert target.read_text() == "old"
        assert target.read_text() == "new"

    def test_an_error_leaves_the_old_file(self, tmp_path: Path) -> None:
        target = tmp_path / "file.txt"
        target.write_text("old")
        with pytest.raises(TypeError), atomic_write(target) as stream:
            stream.writelines([b"new", 5])  # type: ignore[list-item]
        assert target.read_text() == "old"
        assert names(tmp_path) == ["file.txt"]

    def test_a_full_disk_leaves_the_old_file(self, tmp_path: Path) -> None:
        target = tmp_path / "file.txt"
        target.write_text("old")
        message = r"cannot write .*file.txt: File too large; free space or choose another path; nothing was changed$"
        with file_size_limit(100), pytest.raises(StorageError, match=message), atomic_write(target) as stream:
            stream.write(b"x" * 10_000)
        assert target.read_text() == "old"
        assert names(tmp_path) == ["file.txt"]

    def test_a_parent_that_is_a_file_is_an_error(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("x")
        with (
            pytest.raises(StorageError, match=r"cannot write .*; nothing was changed$"),
            atomic_write(tmp_path / "file" / "inner"),
        ):
            pass

    def test_a_storage_error_of_the_block_is_kept(self, tmp_path: Path) -> None:
        with pytest.raises(StorageError, match=r"^other$"), atomic_write(tmp_path / "file"):
            raise StorageError("other")

    def test_content_is_synced_before_the_rename_and_the_folder_after(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        target, events = tmp_path / "file.txt", []
        sync = os.fsync

        def record(handle: int) -> None:
            events.append((os.path.isdir(f"/proc/self/fd/{handle}"), target.exists()))
            sync(handle)

        monkeypatch.setattr(os, "fsync", record)
        with atomic_write(target) as stream:
            stream.write(b"new")
        assert events == [(False, False), (True, True)]

    def test_a_disk_that_does_not_confirm_is_an_error(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        sync = os.fsync

        def fail(handle: int) -> None:
            if os.path.isdir(f"/proc/self/fd/{handle}"):
                raise OSError(errno.EIO, "Input/output error")
            sync(handle)

        monkeypatch.setattr(os, "fsync", fail)
        message = r"is written, but the disk does not confirm it: Input/output error"
        with pytest.raises(StorageError, match=message), atomic_write(tmp_path / "file") as stream:
            stream.write(b"new")
        assert (tmp_path / "file").read_bytes() == b"new"

    def test_staging_of_a_killed_process_is_removed(self, tmp_path: Path) -> None:
        (tmp_path / ".file.txt.abcd1234.staging" / "new").mkdir(parents=True)
        with atomic_write(tmp_path / "file.txt") as stream:
            stream.write(b"new")
        assert names(tmp_path) == ["file.txt"]


@pytest.mark.usefixtures("swap")
class TestFolders:
    def test_a_new_folder_appears_complete(self, tmp_path: Path) -> None:
        target = tmp_path / "some" / "where" / "folder"
        with atomic_folder(target) as folder:
            (folder / "file").write_text("content")
            assert not target.exists()
        assert names(target) == ["file"]
        assert names(target.parent) == ["folder"]

    def test_an_existing_folder_is_replaced(self, tmp_path: Path) -> None:
        target = make(tmp_path / "folder", "old")
        with atomic_folder(target, overwrite=True) as folder:
            (folder / "file").write_text("new")
            assert names(target) == ["deep"]
        assert names(target) == ["file"]
        assert names(tmp_path) == ["folder"]

    def test_without_overwrite_an_existing_folder_is_an_error(self, tmp_path: Path) -> None:
        target = make(tmp_path / "folder", "old")
        with pytest.raises(StorageError, match="not empty"), atomic_folder(target) as folder:
            (folder / "file").write_text("new")
        assert names(target) == ["deep"]
        assert names(tmp_path) == ["folder"]

    def test_an_error_leaves_the_old_folder(self, tmp_path: Path) -> None:
        target = make(tmp_path / "folder", "old")
        with pytest.raises(TypeError), atomic_folder(target, overwrite=True) as folder:
            (folder / "file").write_text(5)  # type: ignore[arg-type]
        assert names(target) == ["deep"]
        assert names(tmp_path) == ["folder"]

    def test_an_error_about_a_file_inside_names_its_final_path(self, tmp_path: Path) -> None:
        message = rf"^cannot write {tmp_path / 'folder' / 'inner'}: File too large"
        with (
            file_size_limit(100),
            pytest.raises(StorageError, match=message),
            atomic_folder(tmp_path / "folder") as folder,
            atomic_write(folder / "inner") as stream,
        ):
            stream.write(b"x" * 10_000)
        assert names(tmp_path) == []

    def test_a_link_is_replaced_and_its_target_kept(self, tmp_path: Path) -> None:
        make(tmp_path / "real", "old")
        (tmp_path / "link").symlink_to("real")
        with atomic_folder(tmp_path / "link", overwrite=True) as folder:
            (folder / "file").write_text("new")
        assert names(tmp_path / "link") == ["file"]
        assert names(tmp_path / "real") == ["deep"]
        assert names(tmp_path) == ["link", "real"]

    def test_a_failed_rename_restores_the_old_folder(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        target, rename = make(tmp_path / "folder", "old"), Path.rename

        def failing(self: Path, place: Path) -> Path:
            if self.name == "new":
                raise OSError(errno.ENOSPC, "No space left on device")
            return rename(self, place)

        monkeypatch.setattr(atomic, "exchange", lambda *_: False)
        monkeypatch.setattr(Path, "rename", failing)
        with pytest.raises(StorageError, match="No space left on device"), atomic_folder(target, overwrite=True):
            pass
        assert names(target) == ["deep"]
        assert names(tmp_path) == ["folder"]


def test_every_file_and_folder_is_synced_before_the_folder_is_moved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    new, target, synced = make(tmp_path / "new", "content"), tmp_path / "folder", []
    sync = os.fsync

    def record(handle: int) -> None:
        synced.append(os.path.relpath(os.readlink(f"/proc/self/fd/{handle}"), tmp_path))
        sync(handle)

    monkeypatch.setattr(os, "fsync", record)
    publish_folder(new, target)
    assert synced == ["new/deep/file", "new/deep", "new", "."]


def test_a_new_folder_that_the_disk_does_not_confirm_can_be_written_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sync = atomic.sync

    def fail(path: Path) -> None:
        if path == tmp_path:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        sync(path)

    with monkeypatch.context() as patch:
        patch.setattr(atomic, "sync", fail)
        with pytest.raises(StorageError, match="the disk does not confirm it"), atomic_folder(tmp_path / "target"):
            pass
    assert not (tmp_path / "target").exists()
    with atomic_folder(tmp_path / "target"):
        pass
    assert names(tmp_path) == ["target"]


def test_a_folder_that_cannot_be_moved_back_is_kept_and_moved_back_by_the_next_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "target"
    target.mkdir()
    (target / "old").write_text("x")
    rename = Path.rename

    def fail(self: Path, to: Path) -> Path:
        if to == target:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return rename(self, to)

    monkeypatch.setattr(atomic, "exchange", lambda *_: False)
    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", fail)
        with pytest.raises(StorageError, match="No space left on device; open it or write it again"):  # noqa: SIM117
            with atomic_folder(target, overwrite=True):
                pass
    assert not target.exists()
    remove_stale(target)
    assert names(tmp_path) == ["target"]
    assert names(target) == ["old"]
