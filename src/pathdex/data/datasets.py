"""Public data sets by name: where they are, how their archives are verified, and the protocol they are used with."""

from __future__ import annotations

import difflib
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pathdex.data.download import download
from pathdex.errors import DataError, StorageError
from pathdex.progress import Progress
from pathdex.storage.array_folder import file_digest


@dataclass(frozen=True)
class Dataset:
    """A file that can be had, and how experiments use it."""

    url: str
    filename: str
    md5: str | None
    """As published with the file. Without one, the SHA-256 of the first download is kept beside the file instead."""
    reading: Mapping[str, Any] = field(default_factory=dict)
    """Arguments for `read`."""
    valid_users: int = 0
    test_users: int = 0
    terms: str = ""


def _movielens(name: str, md5: str, held_out: int) -> Dataset:
    return Dataset(
        url=f"https://files.grouplens.org/datasets/movielens/{name}.zip",
        filename=f"{name}.zip",
        md5=md5,
        reading={"min_rating": 4, "min_interactions": 10, "format": "movielens"},
        valid_users=held_out,
        test_users=held_out,
        terms="GroupLens: research use, no redistribution; see the README in the archive",
    )


SOURCES: dict[str, Dataset] = {
    "movielens-1m": _movielens("ml-1m", "c4d9eecfca2ab87c1945afe126590906", 500),
    "movielens-20m": _movielens("ml-20m", "cd245b17a1ae2cc31bb14903e1204af3", 1000),
    "movielens-25m": _movielens("ml-25m", "6b51fb2759a8657d3bfcbfc42b592ada", 1000),
    "amazon-books": Dataset(
        url="https://snap.stanford.edu/data/amazon/productGraph/categoryFiles/ratings_Books.csv",
        filename="ratings_Books.csv",
        md5=None,
        reading={"min_interactions": 10, "format": "amazon"},
        valid_users=5000,
        test_users=5000,
        terms="McAuley lab, Amazon product data 2014: cite the papers named on its page",
    ),
}
"""The MD5 sums are those that GroupLens publishes beside its archives; the Amazon ratings have none."""


def find_source(name: str) -> Dataset:
    """The data set of that name."""
    if name not in SOURCES:
        close = difflib.get_close_matches(name, SOURCES, n=1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        raise DataError(f"name={name!r}: must be one of {', '.join(SOURCES)}{hint}")
    return SOURCES[name]


def fetch(
    name: str,
    folder: str | os.PathLike[str],
    *,
    file: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
) -> Path:
    """Get a data set into the folder and return its path; a verified copy that is there already is not loaded again.

    An interrupted download goes on where it stopped. `file` is a copy already on disk: it is verified and linked (or
    copied) into the folder, and nothing is downloaded. `progress(done, total)` gets the bytes so far.
    """
    source = find_source(name)
    target = Path(folder) / source.filename
    part = target.with_name(target.name + ".part")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(f"cannot write to {folder}: {error.strerror}; choose another folder") from error
    if target.exists():
        _verify(source, target, f"remove {target} and fetch again")
        return target
    if file is not None:
        _adopt(source, Path(file), part)
    else:
        try:
            download(source.url, part, progress=progress)
        except DataError as error:
            raise DataError(
                f"{error}; or download it by hand and pass it with file= (on the command line --file)"
            ) from error
        try:
            _verify(source, part, "what came was removed; fetch again")
        except DataError:
            # A whole file with a wrong checksum can never be made right by going on.
            part.unlink()
            raise
    try:
        part.replace(target)
        if source.md5 is None:
            _record(target).write_text(f"{file_digest(target, 'sha256')}  {target.name}\n")
    except OSError as error:
        raise StorageError(f"cannot write {target}: {error.strerror}; choose another folder") from error
    return target


def _adopt(source: Dataset, file: Path, part: Path) -> None:
    if not file.is_file():
        raise DataError(f"file={str(file)!r}: is no file; pass the path of {source.filename}, as downloaded")
    _verify(source, file, f"download {source.url} again")
    try:
        part.unlink(missing_ok=True)
        try:
            os.link(file.resolve(), part)
        except OSError:
            shutil.copyfile(file, part)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise StorageError(f"cannot write {part}: {error.strerror}; free space or choose another folder") from error


def _verify(source: Dataset, file: Path, remedy: str) -> None:
    """Compare the file with the published checksum, or with the one recorded when it came."""
    kind, expected = "md5", source.md5
    if expected is None:
        record = _record(file)
        if not record.exists():
            return
        kind, expected = "sha256", record.read_text().split()[0]
    found = file_digest(file, kind)
    if found != expected:
        raise DataError(f"{file}: its {kind} is {found}, not {expected}; it is damaged or another edition; {remedy}")


def _record(file: Path) -> Path:
    return file.with_name(file.name + ".sha256")
