"""The one way to write a file or a folder: write aside, fsync, rename, fsync the parent folder.

A reader, or the next process after a crash, finds the old content or the new content, never a part of either. What a
killed process left behind is removed by the next write to the same target.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from pathdex.errors import StorageError
from pathdex.storage.filesystem import exchange, sync
from pathdex.storage.staging import NEW, PREVIOUS, UnconfirmedError, staging_folder

REMEDY = "free space or choose another path"
SYNC_THREADS = 8
"""Files that are synced at once share a commit of the file system: a quarter of the time for a dozen small files."""


@contextmanager
def storage_errors(path: Path, remedy: str = REMEDY) -> Iterator[None]:
    """Turn failures of the system into a `StorageError` about writing `path`."""
    try:
        yield
    except StorageError:
        raise
    except OSError as error:
        raise StorageError(f"cannot write {path}: {error.strerror or error}; {remedy}") from error


@contextmanager
def atomic_write(path: str | Path) -> Iterator[BinaryIO]:
    """A binary stream whose content replaces the file at `path` on success. Errors as in `atomic_path`."""
    with atomic_path(path) as staging, staging.open("wb") as stream:
        yield stream


@contextmanager
def atomic_path(path: str | Path, *, remedy: str = REMEDY) -> Iterator[Path]:
    """A path to write a file to; on success, that file replaces the one at `path`.

    A failure leaves the old file; a full disk or a missing permission becomes a `StorageError`.
    """
    path = Path(path)
    with storage_errors(path, f"{remedy}; nothing was changed"), staging_folder(path) as staging:
        new = staging / NEW
        yield new
        new.chmod(0o644)
        publish_file(new, path)


@contextmanager
def atomic_folder(path: str | Path, *, overwrite: bool = False) -> Iterator[Path]:
    """A new, empty folder to fill; on success it appears at `path`, complete.

    With `overwrite` it replaces the folder at `path`. Errors as in `atomic_path`.
    """
    path = Path(path)
    with storage_errors(path, f"{REMEDY}; nothing was changed"), staging_folder(path) as staging:
        new = staging / NEW
        new.mkdir()
        try:
            yield new
        except StorageError as error:  # Of a file inside: name it by its final path.
            raise StorageError(str(error).replace(str(new), str(path))) from error
        publish_folder(new, path, overwrite=overwrite)


def publish_file(staging: Path, target: Path) -> None:
    """Move a finished file to `target` on the same file system, replacing what is there."""
    sync(staging)
    staging.replace(target)
    _confirm(target)


def publish_folder(staging: Path, target: Path, *, overwrite: bool = False) -> None:
    """Move a finished folder to `target` on the same file system. With `overwrite`, the two swap places.

    The swap is one step where the system has one. Elsewhere the old folder is first renamed to `previous` beside
    `staging`; after a crash between the two renames, the next write to `target` moves it back.
    """
    tree = list(os.walk(staging, topdown=False))
    with ThreadPoolExecutor(SYNC_THREADS) as pool:
        list(pool.map(sync, [Path(folder, name) for folder, _, names in tree for name in names]))
    for folder, _, _ in tree:
        sync(Path(folder))
    if not (overwrite and target.exists()):
        staging.rename(target)
        try:
            _confirm(target)
        except UnconfirmedError:
            with suppress(OSError):  # As if nothing had happened, so that the call can be repeated.
                target.rename(staging)
            raise
        return
    if not exchange(staging, target):
        previous = staging.with_name(PREVIOUS)
        sync(target.parent)  # A power cut must not lose the folder that the old one is moved to.
        target.rename(previous)
        try:
            staging.rename(target)
        except OSError as error:
            try:
                previous.rename(target)
            except OSError:
                remedy = "open it or write it again, which moves it back"
                raise UnconfirmedError(f"cannot replace {target}, which is in {previous}: {error}; {remedy}") from error
            raise
    _confirm(target)


def _confirm(target: Path) -> None:
    """Wait until the renamed target is on disk."""
    try:
        sync(target.parent)
    except OSError as error:
        reason = f"the disk does not confirm it: {error.strerror or error}"
        raise UnconfirmedError(f"{target} is written, but {reason}; check the disk") from error
