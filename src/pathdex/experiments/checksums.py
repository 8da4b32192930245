"""Checksums that identify the data of a report and the code that made it."""

from __future__ import annotations

import functools
import hashlib
from pathlib import Path

import pathdex
from pathdex.errors import DataError, Problem
from pathdex.storage.array_folder import file_digest


def checksum(source: Path, pattern: str = "*") -> str:
    """SHA-256 of a file, or of the names and checksums of all files of a folder that match the pattern."""
    if source.is_file():
        return file_digest(source, "sha256")
    if not source.is_dir():
        raise DataError(Problem(f"{source} does not exist", remedy="check the path"))
    digest = hashlib.sha256()
    for file in sorted(file for file in source.rglob(pattern) if file.is_file()):
        digest.update(f"{file.relative_to(source)} {file_digest(file, 'sha256')}\n".encode())
    return digest.hexdigest()


@functools.cache
def source_digest() -> str:
    """The first 12 digits of a checksum over the source files of the package."""
    return checksum(Path(pathdex.__file__).parent, "*.py")[:12]
