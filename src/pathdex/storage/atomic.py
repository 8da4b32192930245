"""The one way to write a file or a folder: write aside, fsync, rename, fsync the parent folder.

A reader, or the next process after a crash, finds the old content or the new content, never a part of either. What a
killed process left behind is removed by the next write to the same target.
"""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from pathdex.errors import StorageError
from pathdex.storage.exchange import exchange
from pathdex.storage.staging import SUFFIX, prefix_of, remove, remove_stale, staging_lock

REMEDY = "free space or choose another path"
_NEW, _PREVIOUS = "new", "previous"
"""Names inside a staging folder: what is being written, and what it replaces."""
_NO_FOLDER_SYNC = {errno.EINVAL, errno.ENOTSUP}
"""Errors of file systems that cannot sync a folder."""


@contextmanager
def atomic_write(path: str | Path) -> Iterator[BinaryIO]:
    """A binary stream whose content replaces the file at `path` on success. Errors as in `atomic_path`."""
    with atomic_path(path) as staging, staging.open("wb") as stream:
        yield stream


@contextmanager
def atomic_path(path: str | Path, *, remedy: str = REMEDY) -> Iterator[Path]:
    """A path beside `path` to write a file to; on success, that file replaces the one at `path`.

    A failure leaves the old file; a full disk or a missing permission becomes a `StorageError`.
    """
    path = Path(path)
    staging: Path | None = None
    with _storage_errors(path, remedy):
        try:
            make_folders(path.parent)
            remove_stale(path)
            handle, name = tempfile.mkstemp(prefix=prefix_of(path), suffix=SUFFIX, dir=path.parent)
            os.close(handle)
            staging = Path(name)
            with staging_lock(staging):
                yield staging
                staging.chmod(0o644)  # mkstemp makes a file that only its owner may read.
                publish_file(staging, path)
        finally:
            if staging is not None:
                staging.unlink(missing_ok=True)


@contextmanager
def atomic_folder(path: str | Path, *, overwrite: bool = False) -> Iterator[Path]:
    """A new, empty folder to fill; on success it appears at `path`, complete.

    With `overwrite` it replaces the folder at `path`. Errors as in `atomic_path`.
    """
    path = Path(path)
    staging: Path | None = None
    with _storage_errors(path, REMEDY):
        try:
            make_folders(path.parent)
            remove_stale(path, restore=_PREVIOUS)
            staging = Path(tempfile.mkdtemp(prefix=prefix_of(path), suffix=SUFFIX, dir=path.parent))
            with staging_lock(staging):
                new = staging / _NEW
                new.mkdir()
                yield new
                publish_folder(new, path, overwrite=overwrite)
        finally:
            if staging is not None:
                remove(staging)


def publish_file(staging: Path, target: Path) -> None:
    """Move a finished file to `target` in the same folder, replacing what is there."""
    _sync(staging)
    staging.replace(target)
    _confirm(target)


def publish_folder(staging: Path, target: Path, *, overwrite: bool = False) -> None:
    """Move a finished folder to `target` on the same file system. With `overwrite`, the two swap places.

    The swap is one step where the system has one. Elsewhere the old folder is first renamed to `previous` beside
    `staging`; after a crash between the two renames, the next write to `target` moves it back.
    """
    for folder, _, files in os.walk(staging):
        for name in files:
            _sync(Path(folder, name))
        _sync(Path(folder))
    if not (overwrite and target.exists()):
        staging.rename(target)
    elif not exchange(staging, target):
        previous = staging.with_name(_PREVIOUS)
        target.rename(previous)
        try:
            staging.rename(target)
        except OSError:
            previous.rename(target)
            raise
    _confirm(target)


def make_folders(path: Path) -> None:
    """Create a folder and its missing parents, durably."""
    missing = [folder for folder in (path, *path.parents) if not folder.exists()]
    path.mkdir(parents=True, exist_ok=True)
    for folder in missing:
        _sync(folder.parent)


@contextmanager
def _storage_errors(path: Path, remedy: str) -> Iterator[None]:
    try:
        yield
    except StorageError:
        raise
    except OSError as error:
        reason = error.strerror or error
        raise StorageError(f"cannot write {path}: {reason}; {remedy}; nothing was changed") from error


def _sync(path: Path) -> None:
    """Wait until a file, or the entries of a folder, are on disk."""
    is_folder = path.is_dir()
    if is_folder and os.name == "nt":  # Windows does not open folders.
        return
    handle = os.open(path, os.O_RDWR if os.name == "nt" else os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        if not (is_folder and error.errno in _NO_FOLDER_SYNC):
            raise
    finally:
        os.close(handle)


def _confirm(target: Path) -> None:
    """Wait until the renamed target is on disk."""
    try:
        _sync(target.parent)
    except OSError as error:
        reason = error.strerror or error
        raise StorageError(
            f"{target} is written, but the disk does not confirm it: {reason}; check the disk"
        ) from error
