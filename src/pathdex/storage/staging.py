"""Staging files and folders: `.NAME.XXXXXXXX.staging` beside a target, locked while their process lives.

A process that is killed leaves its staging behind without a lock. The next write to the same target removes it.
"""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

SUFFIX = ".staging"
EMPTY_SECONDS = 60.0
"""Empty staging without a lock is kept this long: a live process may be about to lock it."""
UNKNOWN_SECONDS = 86_400.0
"""Staging is kept this long where the file system has no locks."""


def prefix_of(target: Path) -> str:
    """How the names of a target's staging begin."""
    return f".{target.name}."


@contextmanager
def staging_lock(staging: Path) -> Iterator[None]:
    """Mark the staging as in use until the block or the process ends."""
    handle = os.open(staging, os.O_RDONLY) if fcntl else None
    try:
        if handle is not None:
            with suppress(OSError):  # No locks on this file system: `remove_stale` goes by age.
                fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        if handle is not None:
            os.close(handle)


def remove_stale(target: Path, *, restore: str | None = None) -> None:
    """Remove staging of `target` that a killed process left.

    If the target is missing and the staging holds a folder named `restore`, that folder is moved to the target first.
    """
    pattern = re.compile(re.escape(prefix_of(target)) + r"[^.]+" + re.escape(SUFFIX))
    with suppress(OSError):
        found = [Path(entry.path) for entry in os.scandir(target.parent) if pattern.fullmatch(entry.name)]
        for staging in filter(_is_stale, found):
            if restore is not None and (staging / restore).exists() and not target.exists():
                (staging / restore).rename(target)
            remove(staging)


def remove(staging: Path) -> None:
    """Delete a staging file or folder; errors are ignored, since the next write tries again."""
    if staging.is_dir():
        shutil.rmtree(staging, ignore_errors=True)
    else:
        with suppress(OSError):
            staging.unlink(missing_ok=True)


def _is_stale(staging: Path) -> bool:
    try:
        state = staging.stat()
        handle = os.open(staging, os.O_RDONLY)
    except OSError:
        return False
    try:
        if fcntl:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        known = bool(fcntl)
    except BlockingIOError:
        return False
    except OSError:
        known = False
    finally:
        os.close(handle)
    age = time.time() - state.st_mtime
    if not known:
        return age > UNKNOWN_SECONDS
    # Staging is locked before anything is written to it, so only an empty one can belong to a live process.
    empty = not any(staging.iterdir()) if staging.is_dir() else state.st_size == 0
    return not empty or age > EMPTY_SECONDS
