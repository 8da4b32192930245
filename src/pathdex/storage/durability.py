"""Waiting until files and folders are on disk."""

from __future__ import annotations

import errno
import os
from pathlib import Path

_NO_FOLDER_SYNC = {errno.EINVAL, errno.ENOTSUP}
"""Errors of file systems that cannot sync a folder."""


def sync(path: Path) -> None:
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


def make_folders(path: Path) -> None:
    """Create a folder and its missing parents, durably."""
    missing = [folder for folder in (path, *path.parents) if not folder.exists()]
    path.mkdir(parents=True, exist_ok=True)
    for folder in missing:
        sync(folder.parent)
