"""Rotated log files: which file a position is in, and which one comes next.

Rotation renames `events.jsonl` to `events.jsonl.1` (or `events.jsonl-20260131`) and creates a new `events.jsonl`.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

_SUFFIX = re.compile(r"[.-](\d[\d-]*)")
_SHORT = 4
"""Digits of a rotation number; longer ones are dates."""


def rotated_files(path: Path) -> list[Path]:
    """The rotated files of a log, oldest first, then the log itself if it exists."""
    found = []
    for name in os.listdir(path.parent):
        match = _SUFFIX.fullmatch(name, len(path.name)) if name.startswith(path.name) else None
        if match is not None:
            try:
                changed = (path.parent / name).stat().st_mtime_ns
            except FileNotFoundError:  # Renamed meanwhile.
                continue
            digits = match[1]
            # Of files changed at the same moment, .2 is older than .1, but 20260101 is older than 20260102.
            found.append((changed, -int(digits) if len(digits) <= _SHORT else 0, name))
    return [path.with_name(name) for *_, name in sorted(found)] + [path] * path.exists()


def inode_of(path: Path) -> int | None:
    """The inode of a file, or None if there is no file."""
    try:
        return path.stat().st_ino
    except FileNotFoundError:
        return None


def next_file(path: Path, inode: int) -> Path | None:
    """The file that was started after the one with `inode`, or None if that is still the log itself."""
    if inode_of(path) in (inode, None):
        return None
    files = rotated_files(path)
    places = [place for place, file in enumerate(files) if inode_of(file) == inode]
    if places and places[-1] + 1 < len(files):
        return files[places[-1] + 1]
    return path
