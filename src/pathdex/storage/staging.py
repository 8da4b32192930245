"""Staging folders: `.NAME.XXXXXXXX.staging` beside a target, locked while their process lives.

A killed process leaves its staging folder behind, without the lock. The next write to the same target removes it. A
staging folder may hold what a rename has just replaced, so it is removed only once that rename is on disk.
"""

from __future__ import annotations

import importlib
import os
import re
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from pathdex.errors import StorageError
from pathdex.storage.filesystem import make_folders, sync

fcntl: Any = importlib.import_module("fcntl") if os.name == "posix" else None
SUFFIX = ".staging"
NEW, PREVIOUS = "new", "previous"
"""Names in a staging folder: what is being written, and what it replaces."""
EMPTY_SECONDS = 60.0
"""An empty staging folder without a lock is kept this long: its process may be about to lock it."""
UNKNOWN_SECONDS = 86_400.0
"""A staging folder is kept this long where the file system has no locks."""


class UnconfirmedError(StorageError):
    """The staging folder must stay: it holds the target, or what a power cut may bring back."""


@contextmanager
def staging_folder(target: Path) -> Iterator[Path]:
    """A locked folder beside the target, removed at the end. Parents of the target are created."""
    make_folders(target.parent)
    remove_stale(target)
    staging = Path(tempfile.mkdtemp(prefix=f".{target.name}.", suffix=SUFFIX, dir=target.parent))
    try:
        with _lock(staging):
            yield staging
    except UnconfirmedError:
        raise
    except BaseException:
        shutil.rmtree(staging, ignore_errors=True)
        raise
    shutil.rmtree(staging, ignore_errors=True)


def remove_stale(target: Path) -> None:
    """Remove staging folders of `target` that killed processes left.

    If the target is missing and a killed process had moved it to its staging folder, it is moved back.
    """
    with suppress(OSError):
        stale = list(filter(_is_stale, _staging_folders(target)))
        for staging in stale:
            if (staging / PREVIOUS).exists() and not target.exists():
                (staging / PREVIOUS).rename(target)
        if stale:
            sync(target.parent)
        for staging in stale:
            shutil.rmtree(staging, ignore_errors=True)


def remove_stale_in(folder: Path) -> None:
    """Remove the staging folders of all targets in a folder that killed processes left."""
    with suppress(OSError):
        names = [entry.name for entry in os.scandir(folder) if is_staging(entry.name)]
        for target in dict.fromkeys(name[1:].rsplit(".", 2)[0] for name in names):
            remove_stale(folder / target)


def is_staging(name: str) -> bool:
    """Whether a file name is that of a staging folder."""
    return name.startswith(".") and name.endswith(SUFFIX)


def has_previous(target: Path) -> bool:
    """Whether a running process that is replacing the target may have moved it aside."""
    with suppress(OSError):
        return any(not os.access(one, os.X_OK) or _holds_previous(one) for one in _staging_folders(target))
    return False


def _holds_previous(staging: Path) -> bool:
    return (staging / PREVIOUS).exists() and not _is_stale(staging)


def _staging_folders(target: Path) -> list[Path]:
    pattern = re.compile(rf"\.{re.escape(target.name)}\.[^.]+{re.escape(SUFFIX)}")
    return [Path(entry.path) for entry in os.scandir(target.parent) if pattern.fullmatch(entry.name)]


@contextmanager
def _lock(staging: Path) -> Iterator[None]:
    handle = os.open(staging, os.O_RDONLY) if fcntl else None
    try:
        if handle is not None:
            with suppress(OSError):  # No locks on this file system: `remove_stale` goes by age.
                fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        if handle is not None:
            os.close(handle)


def _is_stale(staging: Path) -> bool:
    try:
        age = time.time() - staging.stat().st_mtime
        if fcntl is None:
            return age > UNKNOWN_SECONDS
        handle = os.open(staging, os.O_RDONLY)
    except OSError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # A process locks its staging folder before it writes there, so only an empty one can be in use.
        return any(staging.iterdir()) or age > EMPTY_SECONDS
    except BlockingIOError:
        return False
    except OSError:
        return age > UNKNOWN_SECONDS
    finally:
        os.close(handle)
