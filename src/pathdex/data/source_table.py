"""An opened source: one lazy table and what was noticed while it was opened."""

from __future__ import annotations

import codecs
import lzma
import os
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import polars as pl
import pyarrow as pa

from pathdex.data.findings import Finding
from pathdex.errors import DataError, Problem

Source: TypeAlias = str | os.PathLike[str] | pl.DataFrame | pl.LazyFrame | Any
"""A path, a URL, a list of paths, a polars or pandas frame, an Arrow table, a scipy sparse matrix, or a data set of
Hugging Face."""


@dataclass(frozen=True)
class SourceTable:
    """An opened source."""

    frame: pl.LazyFrame
    name: str
    """The source in messages."""
    typed: bool = True
    """False where every column is text, as in CSV; ids become integers there if all are whole numbers."""
    ordered: bool = True
    """False where the order of the rows has no meaning."""
    findings: tuple[Finding, ...] = ()
    """What looks wrong, and is read all the same."""
    holder: object = None
    """Keeps a temporary copy on disk as long as the table is used."""
    files: tuple[pl.LazyFrame, ...] = ()
    """The tables of several files that `frame` joins, in order; empty where there is one."""

    @property
    def parts(self) -> tuple[pl.LazyFrame, ...]:
        """Tables that are `frame` one after the other."""
        return self.files or (self.frame,)


@dataclass(frozen=True)
class FileOptions:
    """What a file's name and content do not show; None to detect it."""

    format: str | None = None
    separator: str | None = None
    encoding: str | None = None
    header: bool | None = None
    scratch: Path | None = None
    """A folder for decompressed copies; None to decompress into memory."""

    def problems(self) -> list[Problem]:
        """What is wrong with the options, whatever the file."""
        found = []
        separator: object = self.separator
        if separator is not None and not (isinstance(separator, str) and len(separator.encode()) == 1):
            rule, remedy = "must be one ASCII character", "write the file with one, such as , or ;"
            found.append(Problem(rule, "separator", separator, remedy))
        if self.encoding is not None and not _is_encoding(self.encoding):
            remedy = "name one that Python knows, such as utf-8, utf-16, latin-1 or cp1252"
            found.append(Problem("is no known encoding of text", "encoding", self.encoding, remedy))
        header: object = self.header
        if header is not None and not isinstance(header, bool):
            found.append(Problem("must be true or false", "header", header))
        return found

    def text_options(self) -> dict[str, Any]:
        """The options that are set and that only text files have."""
        given = {"separator": self.separator, "encoding": self.encoding, "header": self.header}
        return {name: value for name, value in given.items() if value is not None}


@contextmanager
def reading(name: str) -> Iterator[None]:
    """Turn the errors of polars, Arrow and the system into one `DataError`."""
    try:
        yield
    except pl.exceptions.NoDataError as error:
        raise DataError(Problem(f"{name} is empty", remedy="check that it was written completely")) from error
    except _READ_ERRORS as error:
        reason = str(error).strip().split("\n")[0] or type(error).__name__
        remedy = "for a file: get it again, or name its format with format=; for a frame: cast columns of mixed types"
        raise DataError(Problem(f"{name} cannot be read ({reason})", remedy=remedy)) from error


_READ_ERRORS = (
    pl.exceptions.PolarsError,
    pl.exceptions.PanicException,
    pa.ArrowException,
    zipfile.BadZipFile,
    lzma.LZMAError,
    OSError,
    EOFError,
)


def _is_encoding(name: object) -> bool:
    try:
        return isinstance(name, str) and "a".encode(name).decode(name) == "a" and bool(codecs.lookup(name))
    except (LookupError, UnicodeError, ValueError):
        return False
