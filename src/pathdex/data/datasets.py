"""Public data sets by name: URL, checksum, and the protocol of the experiments on them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pathdex.data.download import download
from pathdex.errors import DataError, Problem, StorageError, did_you_mean
from pathdex.progress import Progress
from pathdex.storage.array_folder import file_digest
from pathdex.storage.atomic import atomic_write, publish_file, storage_errors
from pathdex.storage.filesystem import make_folders


@dataclass(frozen=True)
class Dataset:
    """A downloadable file, and how experiments use it."""

    url: str
    filename: str
    md5: str | None
    """As published with the file. If None, the SHA-256 of the first download is stored beside the file."""
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


DATASETS: dict[str, Dataset] = {
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
"""GroupLens publishes the MD5 sums beside its archives; the Amazon ratings have none."""


def find_dataset(name: str) -> Dataset:
    """The data set with that name."""
    if name not in DATASETS:
        raise DataError(Problem(f"must be one of {', '.join(DATASETS)}{did_you_mean(name, DATASETS)}", "name", name))
    return DATASETS[name]


def fetch(
    name: str,
    folder: str | os.PathLike[str],
    *,
    file: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
) -> Path:
    """Download a data set into the folder, verify it and return its path. A file already there is only verified.

    An interrupted download resumes. `file` is a copy already on disk: it is verified and linked (or copied) into the
    folder instead of a download. `progress(done, total)` is called with the bytes so far.
    """
    dataset = find_dataset(name)
    target = Path(folder) / dataset.filename
    part = target.with_name(target.name + ".part")
    with storage_errors(target.parent, "choose another folder"):
        make_folders(target.parent)
    if target.exists():
        _verify(dataset, target, f"remove {target} and fetch again")
        return target
    if file is not None:
        _adopt(dataset, Path(file), part)
    else:
        try:
            download(dataset.url, part, progress=progress)
        except DataError as error:
            remedy = "or download it by hand and pass it with file= (--file on the command line)"
            raise DataError(Problem(str(error), remedy=remedy)) from error
        try:
            _verify(dataset, part, "the download was removed; fetch again")
        except DataError:
            part.unlink()  # Resuming cannot repair a complete file.
            raise
    if dataset.md5 is None:
        with atomic_write(_record(target)) as stream:
            stream.write(f"{file_digest(part, 'sha256')}  {target.name}\n".encode())
    with storage_errors(target, "choose another folder"):
        publish_file(part, target)
    return target


def _adopt(dataset: Dataset, file: Path, part: Path) -> None:
    if not file.is_file():
        remedy = f"pass the path of a downloaded {dataset.filename}"
        raise DataError(Problem("is not a file", "file", str(file), remedy))
    _verify(dataset, file, f"download {dataset.url} again")
    try:
        part.unlink(missing_ok=True)
        try:
            os.link(file.resolve(), part)
        except OSError:
            shutil.copyfile(file, part)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise StorageError(f"cannot write {part}: {error.strerror}; free space or choose another folder") from error


def _verify(dataset: Dataset, file: Path, remedy: str) -> None:
    """Compare the file with the published checksum, or with the one recorded at its download."""
    kind, expected = "md5", dataset.md5
    if expected is None:
        record = _record(file)
        if not record.exists():
            return
        kind, expected = "sha256", record.read_text().split()[0]
    found = file_digest(file, kind)
    if found != expected:
        rule = f"{file}: its {kind} is {found}, not {expected}; it is damaged or another edition"
        raise DataError(Problem(rule, remedy=remedy))


def _record(file: Path) -> Path:
    return file.with_name(file.name + ".sha256")
