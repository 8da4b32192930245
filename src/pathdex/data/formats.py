"""Opens every kind of source as one lazy table. Only what is needed to recognise a format is read."""

from __future__ import annotations

import io
import os
import re
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import polars as pl
import pyarrow as pa

from pathdex.errors import DataError, Problem

Source: TypeAlias = str | os.PathLike[str] | pl.DataFrame | pl.LazyFrame | Any
"""A path, a polars or pandas frame, an Arrow table, or a scipy sparse matrix."""

HEADERLESS_COLUMNS = ["user_id", "item_id", "rating", "timestamp"]
"""Of MovieLens `.dat` files and of the ratings-only files of Amazon 2014."""


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


def open_source(source: Source, format: str | None = None) -> SourceTable:
    """The source as a table. `format`, one of `FORMATS`, overrides the file name."""
    if format is not None and format not in FORMATS:
        raise DataError(Problem(f"must be one of {', '.join(FORMATS)}", "format", format))
    if isinstance(source, str | os.PathLike):
        path = Path(source)
        if not path.exists():
            raise DataError(Problem(f"{path} does not exist", remedy="check the path"))
        with reading(str(path)):
            kind = format or _format_of(path)
            return SourceTable(FORMATS[kind](path), str(path), typed=kind in _TYPED)
    if format is not None:
        raise DataError(Problem("is for files only", "format", format, f"leave it out for a {type(source).__name__}"))
    with reading(f"the {type(source).__name__}"):
        return _open_object(source)


@contextmanager
def reading(name: str) -> Iterator[None]:
    """Turn the errors of polars, Arrow and the system into one `DataError`."""
    try:
        yield
    except _READ_ERRORS as error:
        reason = str(error).strip().split("\n")[0] or type(error).__name__
        remedy = "for a file: get it again, or name its format with format=; for a frame: cast columns of mixed types"
        raise DataError(Problem(f"{name} cannot be read ({reason})", remedy=remedy)) from error


_READ_ERRORS = (
    pl.exceptions.PolarsError,
    pl.exceptions.PanicException,
    pa.ArrowException,
    zipfile.BadZipFile,
    OSError,
    EOFError,
)


def _format_of(path: Path) -> str:
    if path.is_dir():
        return _format_of_folder(path)
    suffix = Path(path.name.lower().removesuffix(".gz")).suffix
    kind = _SUFFIXES.get(suffix)
    if kind is None:
        rule = f"{path}: the suffix {suffix!r} is unknown; known are {', '.join(_SUFFIXES)} (text also with .gz)"
        raise DataError(Problem(rule, remedy=f"name the format with format=: {', '.join(FORMATS)}"))
    if kind == "csv" and _is_headerless_amazon(path):
        return "amazon"
    return kind


def _format_of_folder(folder: Path) -> str:
    if any((folder / name).is_file() for name in _RATINGS):
        return "movielens"
    if any(folder.glob("*.parquet")):
        return "parquet"
    rule = f"{folder} holds no data: it has neither Parquet files nor {' or '.join(_RATINGS)}"
    raise DataError(Problem(rule, remedy="pass a folder that has"))


def _scan_parquet(path: Path) -> pl.LazyFrame:
    files = sorted(path.glob("*.parquet")) if path.is_dir() else [path]
    if not files:
        raise DataError(Problem(f"{path} holds no Parquet files", remedy="check the path"))
    # Arrow decodes the pages: those of a damaged file make polars abort the process.
    import pyarrow.dataset

    dataset = pyarrow.dataset.dataset([str(file) for file in files], format="parquet")
    for fragment in dataset.get_fragments():
        if not fragment.physical_schema.equals(dataset.schema):
            raise pa.ArrowInvalid(f"{fragment.path} has other columns than {files[0]}")
        _check_row_counts(fragment.metadata)
    return pl.scan_pyarrow_dataset(dataset)


def _check_row_counts(footer: Any) -> None:
    """Refuse a Parquet footer whose numbers of rows disagree: Arrow would allocate memory for the largest."""
    groups = [footer.row_group(place) for place in range(footer.num_row_groups)]
    for group in groups:
        for column in (group.column(place) for place in range(group.num_columns)):
            if not 0 <= group.num_rows <= column.num_values:
                rule = f"has {column.num_values:,} values in {group.num_rows:,} rows"
                raise pa.ArrowInvalid(f"the column {column.path_in_schema} {rule}")
    if sum(group.num_rows for group in groups) != footer.num_rows:
        raise pa.ArrowInvalid(f"the parts of the file do not have {footer.num_rows:,} rows together")


def _scan_inter(path: Path) -> pl.LazyFrame:
    """RecBole's atomic file: tab-separated, each name in the header followed by `:type`."""
    frame = _scan_text(path, "\t", quote_char=None)
    return frame.rename({name: name.split(":")[0] for name in frame.collect_schema().names()})


def _scan_movielens(path: Path) -> pl.LazyFrame:
    """A GroupLens archive, its unpacked folder, or the ratings file in it."""
    content: Path | bytes = path
    name = path.name
    if path.is_dir():
        name = _ratings_in(path, "folder: it has", [one for one in _RATINGS if (path / one).is_file()])
        content = path / name
    elif path.suffix not in (".csv", ".dat"):
        with zipfile.ZipFile(path) as archive:
            members = [one for file in _RATINGS for one in archive.namelist() if one.rsplit("/", 1)[-1] == file]
            name = _ratings_in(path, "archive: it holds", members)
            content = archive.read(name)
    if name.endswith(".csv"):
        return _scan_text(content, ",")
    # Polars takes separators of one byte only.
    raw = content if isinstance(content, bytes) else content.read_bytes()
    return _scan_text(raw.replace(b"::", b"\t"), "\t", has_header=False, new_columns=HEADERLESS_COLUMNS)


def _ratings_in(path: Path, kind: str, found: list[str]) -> str:
    if not found:
        rule = f"{path} is not a MovieLens {kind} neither {' nor '.join(_RATINGS)}"
        raise DataError(Problem(rule, remedy="check the path"))
    return found[0]


def _scan_text(source: Path | bytes, separator: str, **options: Any) -> pl.LazyFrame:
    """Every column as text: inferring types would turn the id 007 into 7."""
    content = io.BytesIO(source) if isinstance(source, bytes) else source
    return pl.scan_csv(content, separator=separator, infer_schema=False, glob=False, **options)


def _open_object(source: Any) -> SourceTable:
    if isinstance(source, pl.LazyFrame):
        return SourceTable(source, "the LazyFrame")
    if isinstance(source, pl.DataFrame):
        return SourceTable(source.lazy(), "the DataFrame")
    if isinstance(source, pa.Table | pa.RecordBatch):
        frame = pl.from_arrow(source)
        assert isinstance(frame, pl.DataFrame)
        return SourceTable(frame.lazy(), "the Arrow table")
    # Types are recognised by name, so that pandas and scipy need not be imported.
    package, name = type(source).__module__.split(".")[0], type(source).__name__
    if package == "pandas" and name == "DataFrame":
        return SourceTable(pl.from_pandas(source).lazy(), "the DataFrame")
    if package == "scipy" and hasattr(source, "tocsr"):
        return _open_matrix(source)
    remedy = "pass a path, a pandas or polars frame, an Arrow table or a scipy sparse matrix"
    raise DataError(Problem(f"a {type(source).__name__} cannot be read", "source", source, remedy))


def _open_matrix(matrix: Any) -> SourceTable:
    """Rows are users, columns are items, values are ratings. Stored zeros are dropped; there is no order."""
    entries = matrix.tocsr(copy=True)
    entries.sum_duplicates()
    entries.eliminate_zeros()
    entries = entries.tocoo()
    frame = pl.DataFrame({"user_id": entries.row, "item_id": entries.col, "rating": entries.data})
    return SourceTable(frame.lazy(), "the matrix", ordered=False)


def _is_headerless_amazon(path: Path) -> bool:
    if not re.fullmatch(r"ratings_.+\.csv", path.name):
        return False
    with path.open("rb") as file:
        fields = file.readline().decode(errors="replace").strip().split(",")
    return len(fields) == 4 and all(re.fullmatch(r"[0-9]+(\.[0-9]+)?", field) for field in fields[2:])


_RATINGS = ("ratings.dat", "ratings.csv")

FORMATS: dict[str, Callable[[Path], pl.LazyFrame]] = {
    "csv": partial(_scan_text, separator=","),
    "tsv": partial(_scan_text, separator="\t"),
    "parquet": _scan_parquet,
    "jsonl": partial(pl.scan_ndjson, infer_schema_length=None),
    "inter": _scan_inter,
    "movielens": _scan_movielens,
    "amazon": partial(_scan_text, separator=",", has_header=False, new_columns=HEADERLESS_COLUMNS),
}
_TYPED = ("parquet", "jsonl")

_SUFFIXES = {
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
