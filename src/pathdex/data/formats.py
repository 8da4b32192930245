"""Opens each kind of source as one lazy table. Nothing is read yet, except what a format needs to be recognised."""

from __future__ import annotations

import io
import os
import re
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import polars as pl
import pyarrow as pa

from pathdex.errors import DataError

Source: TypeAlias = str | os.PathLike[str] | pl.DataFrame | pl.LazyFrame | Any
"""A path, a polars or pandas frame, an Arrow table, or a scipy sparse matrix."""

MOVIELENS_COLUMNS = ["user_id", "item_id", "rating", "timestamp"]
AMAZON_COLUMNS = ["user_id", "item_id", "rating", "timestamp"]


@dataclass(frozen=True)
class Table:
    """A source, opened."""

    frame: pl.LazyFrame
    name: str
    """How messages call the source."""
    typed: bool = True
    """False where every column is text, as in CSV: then ids that all are whole numbers become integers."""
    ordered: bool = True
    """False where the order of the rows means nothing."""


def open_source(source: Source, format: str | None = None) -> Table:
    """The source as a table. `format` overrules what the name of a file says: one of `FORMATS`."""
    if format is not None and format not in FORMATS:
        raise DataError(f"format={format!r}: must be one of {', '.join(FORMATS)}")
    if isinstance(source, str | os.PathLike):
        path = Path(source)
        if not path.exists():
            raise DataError(f"{path} does not exist; check the path")
        with reading(str(path)):
            return FORMATS[format or _format_of(path)](path)
    if format is not None:
        raise DataError(f"format={format!r}: is for files; a {type(source).__name__} needs none")
    with reading(f"the {type(source).__name__}"):
        return _open_object(source)


@contextmanager
def reading(name: str) -> Iterator[None]:
    """Turns what a damaged file makes polars or the system raise into one `DataError`."""
    try:
        yield
    except (pl.exceptions.PolarsError, pa.ArrowException, zipfile.BadZipFile, OSError, EOFError) as error:
        reason = str(error).strip().split("\n")[0] or type(error).__name__
        raise DataError(
            f"{name} cannot be read ({reason}); a file is damaged, truncated or of another kind: get it again or name "
            "its kind with format=; a frame mixes types in a column: cast it"
        ) from error


def _format_of(path: Path) -> str:
    if path.is_dir():
        return _format_of_folder(path)
    suffixes = [suffix.lower() for suffix in path.suffixes]
    ending = suffixes[-1] if suffixes else ""
    if ending == ".gz":
        ending = suffixes[-2] if len(suffixes) > 1 else ""
    kind = _ENDINGS.get(ending)
    if kind is None:
        raise DataError(
            f"{path}: the ending {ending!r} is not known; known are {', '.join(_ENDINGS)} (text also with .gz); "
            f"or name the kind with format=: {', '.join(FORMATS)}"
        )
    if kind == "csv" and _is_headerless_amazon(path):
        return "amazon"
    return kind


def _format_of_folder(folder: Path) -> str:
    if any((folder / name).is_file() for name in _RATINGS):
        return "movielens"
    if any(folder.glob("*.parquet")):
        return "parquet"
    raise DataError(f"{folder} holds no data: it has neither Parquet files nor {' or '.join(_RATINGS)}")


def _open_parquet(path: Path) -> Table:
    files = sorted(path.glob("*.parquet")) if path.is_dir() else [path]
    if not files:
        raise DataError(f"{path} holds no Parquet files")
    return Table(pl.scan_parquet(files, glob=False), str(path))


def _open_csv(path: Path) -> Table:
    return Table(_scan_text(path, ","), str(path), typed=False)


def _open_tsv(path: Path) -> Table:
    return Table(_scan_text(path, "\t"), str(path), typed=False)


def _open_jsonl(path: Path) -> Table:
    return Table(pl.scan_ndjson(path, infer_schema_length=None), str(path))


def _open_inter(path: Path) -> Table:
    """RecBole's atomic file: tab-separated, each name in the header followed by `:type`."""
    frame = _scan_text(path, "\t", quote_char=None)
    names = frame.collect_schema().names()
    return Table(frame.rename({name: name.split(":")[0] for name in names}), str(path), typed=False)


def _open_amazon(path: Path) -> Table:
    """The ratings-only files of Amazon 2014: user, item, rating, timestamp, without a header."""
    return Table(_scan_text(path, ",", has_header=False, new_columns=AMAZON_COLUMNS), str(path), typed=False)


def _open_movielens(path: Path) -> Table:
    """The GroupLens archive, the folder that it unpacks to, or the file of ratings in it."""
    file = path
    if path.is_dir():
        found = next((path / name for name in _RATINGS if (path / name).is_file()), None)
        if found is None:
            raise DataError(f"{path} is not a MovieLens folder: it has neither {' nor '.join(_RATINGS)}")
        file = found
    if file.suffix == ".csv":
        return Table(_scan_text(file, ","), str(path), typed=False)
    if file.suffix == ".dat":
        return Table(_scan_dat(file.read_bytes()), str(path), typed=False)
    with zipfile.ZipFile(path) as archive:
        member = next((one for name in _RATINGS for one in archive.namelist() if one.rsplit("/", 1)[-1] == name), None)
        if member is None:
            raise DataError(f"{path} is not a MovieLens archive: it holds neither {' nor '.join(_RATINGS)}")
        content = archive.read(member)
    frame = _scan_text(content, ",") if member.endswith(".csv") else _scan_dat(content)
    return Table(frame, str(path), typed=False)


def _scan_dat(content: bytes) -> pl.LazyFrame:
    # Polars takes separators of one byte only.
    return _scan_text(content.replace(b"::", b"\t"), "\t", has_header=False, new_columns=MOVIELENS_COLUMNS)


def _scan_text(source: Path | bytes, separator: str, **options: Any) -> pl.LazyFrame:
    """Every column as text: guessing types would turn the id 007 into 7."""
    content = io.BytesIO(source) if isinstance(source, bytes) else source
    return pl.scan_csv(content, separator=separator, infer_schema=False, glob=False, **options)


def _open_object(source: Any) -> Table:
    if isinstance(source, pl.LazyFrame):
        return Table(source, "the LazyFrame")
    if isinstance(source, pl.DataFrame):
        return Table(source.lazy(), "the DataFrame")
    if isinstance(source, pa.Table | pa.RecordBatch):
        frame = pl.from_arrow(source)
        assert isinstance(frame, pl.DataFrame)
        return Table(frame.lazy(), "the Arrow table")
    # Types are told by their names, so that pandas and scipy are imported only by those who use them.
    package, name = type(source).__module__.split(".")[0], type(source).__name__
    if package == "pandas" and name == "DataFrame":
        return Table(pl.from_pandas(source).lazy(), "the DataFrame")
    if package == "scipy" and hasattr(source, "tocsr"):
        return _open_matrix(source)
    raise DataError(
        f"source={type(source).__name__}: cannot be read; pass a path, a pandas or polars frame, an Arrow table "
        "or a scipy sparse matrix"
    )


def _open_matrix(matrix: Any) -> Table:
    """Rows are users, columns are items, stored zeros are nothing; the value is the rating; there is no order."""
    entries = matrix.tocsr(copy=True)
    entries.sum_duplicates()
    entries.eliminate_zeros()
    entries = entries.tocoo()
    frame = pl.DataFrame({"user_id": entries.row, "item_id": entries.col, "rating": entries.data})
    return Table(frame.lazy(), "the matrix", ordered=False)


def _is_headerless_amazon(path: Path) -> bool:
    if not re.fullmatch(r"ratings_.+\.csv", path.name):
        return False
    with path.open("rb") as file:
        fields = file.readline().decode(errors="replace").strip().split(",")
    return len(fields) == 4 and all(re.fullmatch(r"[0-9]+(\.[0-9]+)?", field) for field in fields[2:])


_RATINGS = ("ratings.dat", "ratings.csv")

FORMATS: dict[str, Callable[[Path], Table]] = {
    "csv": _open_csv,
    "tsv": _open_tsv,
    "parquet": _open_parquet,
    "jsonl": _open_jsonl,
    "inter": _open_inter,
    "movielens": _open_movielens,
    "amazon": _open_amazon,
}

_ENDINGS = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".inter": "inter",
    ".zip": "movielens",
    ".dat": "movielens",
}
