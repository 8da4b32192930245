"""One owner per folder: a lock that ends with its process, and names its holder."""

from __future__ import annotations

import importlib
import json
import os
import socket
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from pathdex.errors import StorageError
from pathdex.storage.atomic import storage_errors
from pathdex.storage.filesystem import make_folders, write_all

fcntl: Any = importlib.import_module("fcntl") if os.name == "posix" else None
LOCK = "LOCK"
_PLAIN = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
"""The lock is written to, so it must not be a link to another file; opening a pipe must not wait."""


@contextmanager
def folder_lock(folder: Path, purpose: str) -> Iterator[None]:
    """Own a folder, which is created if needed. Raises `StorageError` that names the holder if another process does."""
    with storage_errors(folder):
        make_folders(folder)
    handle = hold_folder(folder, purpose)
    try:
        yield
    finally:
        os.close(handle)


def hold_folder(folder: Path, purpose: str, remedy: str = "wait until it ends, or choose another folder") -> int:
    """Lock a folder; close the returned file descriptor to release it.

    The system drops the lock when its process ends, however it ends, so there are no stale locks.
    """
    return hold_file(folder / LOCK, str(folder), purpose, remedy)


def hold_file(file: Path, owned: str, purpose: str, remedy: str) -> int:
    """Lock a file, which is created if needed, for what is `owned`; close the returned descriptor to release it."""
    with storage_errors(file, "remove it"):
        handle = os.open(file, os.O_RDWR | os.O_CREAT | _PLAIN, 0o644)
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise StorageError(f"{file} is not a plain file, so it cannot be a lock; remove it")
        if fcntl is not None:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise StorageError(f"{owned} is in use by {_holder(file)}; {remedy}") from None
        facts = {"pid": os.getpid(), "host": socket.gethostname(), "purpose": purpose, "since": int(time.time())}
        with storage_errors(file):
            os.ftruncate(handle, 0)
            write_all(handle, json.dumps(facts).encode())
    except BaseException:
        os.close(handle)
        raise
    return handle


def _holder(file: Path) -> str:
    with suppress(OSError, ValueError, KeyError, TypeError):
        facts = json.loads(file.read_text())
        return f"{facts['purpose']} (process {facts['pid']} on {facts['host']})"
    return "another process"
