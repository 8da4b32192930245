"""Which large bundles this user has already checked, so that the next process need not check them again.

A small file per bundle in the user's cache folder. Its name is a digest of the manifest and of the device, inode, size
and times of every file: a bundle that was changed, copied or replaced has another name. The folder must belong to the
user and be writable by no one else; otherwise it is not used, and bundles are checked whenever they are opened.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import json
import os
import stat
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from pathdex.storage.open_folder import OpenFolder

fcntl: Any = importlib.import_module("fcntl") if os.name == "posix" else None
CONTENT, CHECKSUMS, TRIAL = "content", "checksums", "trial"
"""What was checked: the values of all arrays, the checksums of all files, queries in another process."""
RULES = 1
"""Rises with every change of the rules, so that bundles are checked by the new ones."""
KEPT = 512
"""Entries that are kept, the newest."""
VARIABLE = "PATHDEX_CACHE"
"""Environment variable: the cache folder; empty for none."""


def folder_key(folder: OpenFolder, names: Iterable[str]) -> str:
    """The name of a folder's content on this machine."""
    files = [[name, *folder.signature(name)] for name in sorted(names)]
    return hashlib.sha256(json.dumps([RULES, files]).encode()).hexdigest()


def is_checked(key: str, what: str) -> bool:
    """Whether this user has checked that, and found it good."""
    return bool(read_entry(key).get(what))


def set_checked(key: str, what: str) -> None:
    """Remember that a check was passed; nothing happens where there is no cache folder."""
    write_entry(key, {**read_entry(key), what: int(time.time())})


@contextlib.contextmanager
def entry_lock(key: str) -> Iterator[None]:
    """Let one process at a time work on an entry, so that the others find its result."""
    folder = cache_folder(create=True)
    if folder is None or fcntl is None:
        yield
        return
    handle = None
    try:
        with contextlib.suppress(OSError):
            handle = os.open(folder / f"{key}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        if handle is not None:
            os.close(handle)


def read_entry(key: str) -> dict[str, Any]:
    """What is known about a bundle; empty if nothing is."""
    folder = cache_folder()
    if folder is None:
        return {}
    try:
        found = json.loads((folder / key).read_text())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def write_entry(key: str, content: dict[str, Any]) -> None:
    """Replace what is known about a bundle."""
    folder = cache_folder(create=True)
    if folder is None:
        return
    with contextlib.suppress(OSError):
        new = folder / f".{key}.{os.getpid()}"
        new.write_text(json.dumps(content))
        new.replace(folder / key)
        entries = sorted(os.scandir(folder), key=lambda entry: entry.stat().st_mtime, reverse=True)
        for entry in entries[KEPT:]:
            os.unlink(entry.path)


def cache_folder(*, create: bool = False) -> Path | None:
    """The folder of entries; None if there is none, or if others could write to it."""
    given = os.environ.get(VARIABLE)
    if given == "":
        return None
    try:
        base = Path(given) if given else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "pathdex"
        folder = base / "verified"
        if create:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        state = folder.lstat()
    except (OSError, RuntimeError):  # No such folder, or a user without a home.
        return None
    if not stat.S_ISDIR(state.st_mode):
        return None
    if os.name == "posix" and (state.st_uid != os.geteuid() or state.st_mode & (stat.S_IWGRP | stat.S_IWOTH)):
        return None
    return folder
