"""Identifies the state of the code that made a result."""

from __future__ import annotations

import functools
import hashlib
from pathlib import Path

import pathdex


@functools.cache
def source_digest() -> str:
    """The first 12 digits of a SHA-256 over the source files of the package."""
    folder, digest = Path(pathdex.__file__).parent, hashlib.sha256()
    for file in sorted(folder.rglob("*.py")):
        digest.update(f"{file.relative_to(folder).as_posix()}\n".encode() + file.read_bytes())
    return digest.hexdigest()[:12]
