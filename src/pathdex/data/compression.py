"""Files that are compressed: the content of `.gz`, `.bz2`, `.zst`, `.xz` and of archives with one file."""

from __future__ import annotations

import lzma
import os
import tempfile
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePath

import pyarrow as pa

from pathdex.errors import DataError, Problem
from pathdex.storage.atomic import storage_errors

_ARROW = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd", ".zstd": "zstd"}
COMPRESSED = (*_ARROW, ".xz")
"""Endings that follow the one of the format."""
BLOCK = 2**23
"""Bytes that are copied at a time."""


def plain_name(path: PurePath) -> PurePath:
    """The name without the ending of a compression, in lower case."""
    name = PurePath(path.name.lower())
    return name.with_suffix("") if name.suffix in COMPRESSED else name


def is_compressed(path: PurePath) -> bool:
    return path.suffix.lower() in COMPRESSED


def read_decompressed(path: Path) -> bytes:
    """The whole content of a file, decompressed if its name says that it is compressed."""
    suffix = path.suffix.lower()
    if suffix == ".xz":
        return lzma.decompress(path.read_bytes())
    if suffix in _ARROW:
        with pa.input_stream(str(path), compression=_ARROW[suffix]) as stream:
            return bytes(stream.read())
    return path.read_bytes()


def decompressed_file(path: Path, folder: Path) -> Path:
    """A new file in `folder` with the decompressed content, copied in blocks."""
    suffix = path.suffix.lower()
    with lzma.open(path) if suffix == ".xz" else pa.input_stream(str(path), compression=_ARROW[suffix]) as stream:
        return new_file(folder, iter(lambda: stream.read(BLOCK), b""))


def new_file(folder: Path, content: Iterable[bytes]) -> Path:
    """A new file in `folder` with this content. A `StorageError` if the disk is full."""
    handle, name = tempfile.mkstemp(dir=folder)
    with os.fdopen(handle, "wb") as file:
        for block in content:
            with storage_errors(Path(name)):
                file.write(block)
    return Path(name)


def file_blocks(path: Path) -> Iterator[bytes]:
    """The content of a file in blocks of whole lines."""
    with path.open("rb") as file:
        while lines := file.readlines(BLOCK):
            yield b"".join(lines)


def only_member(path: Path) -> str:
    """The name of the only data file in a zip archive; a `DataError` if there are none or several."""
    with zipfile.ZipFile(path) as archive:
        names = [name for name in archive.namelist() if not name.endswith("/") and not _is_hidden(name)]
    if len(names) == 1:
        return names[0]
    shown = ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")
    rule = f"{path} is no MovieLens archive and holds {len(names)} files{f' ({shown})' if names else ''}"
    raise DataError(Problem(rule, remedy="unpack it and pass the file of interactions, or a folder of such files"))


def member_file(path: Path, name: str, folder: Path) -> Path:
    """A new file in `folder` with the content of one file of a zip archive."""
    with zipfile.ZipFile(path) as archive, archive.open(name) as stream:
        return new_file(folder, iter(lambda: stream.read(BLOCK), b""))


def read_member(path: Path, name: str) -> bytes:
    """The content of one file of a zip archive."""
    with zipfile.ZipFile(path) as archive:
        return archive.read(name)


def _is_hidden(name: str) -> bool:
    """Whether a file is what archivers of some systems add."""
    return name.startswith("__MACOSX/") or PurePath(name).name.startswith(".")
