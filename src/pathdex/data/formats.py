"""Opens every kind of source as one lazy table. Only what is needed to recognise a format is read."""

from __future__ import annotations

import glob
import io
import os
import re
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path, PurePath

import polars as pl

from pathdex.data.compression import (
    COMPRESSED,
    decompressed_file,
    file_blocks,
    is_compressed,
    member_file,
    new_file,
    only_member,
    plain_name,
    read_decompressed,
    read_member,
)
from pathdex.data.object_sources import open_object
from pathdex.data.parquet_files import parquet_files, scan_arrow, scan_parquet
from pathdex.data.remote_files import RemoteCopy, is_url
from pathdex.data.source_table import FileOptions, Source, SourceTable, reading
from pathdex.data.text_files import open_text
from pathdex.errors import DataError, MissingExtraError, Problem

HEADERLESS_COLUMNS = ["user_id", "item_id", "rating", "timestamp"]
"""Of MovieLens `.dat` files and of the ratings-only files of Amazon 2014."""
SHOWN_FILES = 3


def open_source(source: Source, options: FileOptions | None = None) -> SourceTable:
    """The source as a table. The format of the options, one of `FORMATS`, overrides the file name."""
    options = options or FileOptions()
    problems = options.problems()
    if options.format is not None and options.format not in FORMATS:
        problems.append(Problem(f"must be one of {', '.join(FORMATS)}", "format", options.format))
    if problems:
        raise DataError(*problems)
    if isinstance(source, str) and is_url(source):
        copy = RemoteCopy(source)
        return replace(_open_path(copy.path, options, source), holder=copy)
    if isinstance(source, str | os.PathLike):
        path = Path(source)
        if path.exists():
            return _open_path(path, options, str(path))
        found = sorted(glob.glob(str(path))) if glob.has_magic(str(path)) else []
        if not found:
            what = "matches no file" if glob.has_magic(str(path)) else "does not exist"
            raise DataError(Problem(f"{path} {what}", remedy="check the path"))
        return _open_files([Path(one) for one in found], options, str(path))
    if isinstance(source, list | tuple):
        return _open_list(source, options)
    if options.format is not None:
        remedy = f"leave it out for a {type(source).__name__}"
        raise DataError(Problem("is for files only", "format", options.format, remedy))
    _refuse_text_options(options, f"a {type(source).__name__}")
    with reading(f"the {type(source).__name__}"):
        return open_object(source)


def own_format(source: str | os.PathLike[str]) -> str | None:
    """The format that the name of a file, a folder or a URL shows; None if it shows none."""
    try:
        return _format_of(Path(source))
    except (DataError, OSError):
        return None


def is_text_format(name: str | None) -> bool:
    """Whether files of a format have a separator, an encoding and a header."""
    return name in TEXT_FORMATS


def _open_path(path: Path, options: FileOptions, name: str) -> SourceTable:
    with reading(name):
        kind = options.format or _format_of(path)
        if kind not in TEXT_FORMATS and kind != "movielens":
            _refuse_text_options(options, f"the format {kind}")
        if path.is_dir() and kind not in ("parquet", "movielens"):
            return _open_files(_files_in(path), options, name)
        return FORMATS[kind](path, name, options)


def _open_list(sources: Sequence[Source], options: FileOptions) -> SourceTable:
    if not sources or not all(isinstance(one, str | os.PathLike) for one in sources):
        rule = "must be a list of paths or URLs, and not empty"
        raise DataError(Problem(rule, "source", sources, "pass frames one by one, or concatenated"))
    return _joined([open_source(one, options) for one in sources], f"the {len(sources)} files")


def _open_files(files: Sequence[Path], options: FileOptions, name: str) -> SourceTable:
    return _joined([_open_path(file, options, str(file)) for file in files], name)


def _joined(tables: Sequence[SourceTable], name: str) -> SourceTable:
    """Tables with the same columns as one, in the given order."""
    first, columns = tables[0], tables[0].frame.collect_schema()
    for other in tables[1:]:
        found = other.frame.collect_schema()
        if found != columns or other.typed != first.typed:
            differing = sorted(set(columns.items()) ^ set(found.items()), key=str)
            shown = ", ".join(dict.fromkeys(column for column, _ in differing)) or "their order or format"
            rule = f"{other.name} has other columns than {first.name} ({shown})"
            raise DataError(Problem(rule, remedy="pass files with the same columns, or read them one by one"))
    return SourceTable(
        pl.concat([table.frame for table in tables]),
        name if len(tables) > 1 else first.name,
        typed=first.typed,
        findings=tuple(one for table in tables for one in table.findings),
        holder=[table.holder for table in tables],
        files=tuple(part for table in tables for part in table.parts),
    )


def _refuse_text_options(options: FileOptions, kind: str) -> None:
    given = options.text_options()
    if given:
        raise DataError(
            *(Problem("is for text files only", key, value, f"leave it out for {kind}") for key, value in given.items())
        )


def _format_of(path: Path) -> str:
    if path.is_dir():
        return _format_of_folder(path)
    suffix = plain_name(path).suffix
    kind = _SUFFIXES.get(suffix)
    if kind is None:
        known = f"{', '.join(_SUFFIXES)} (text also with {', '.join(COMPRESSED)})"
        rule = f"{path}: the suffix {suffix!r} is unknown; known are {known}"
        raise DataError(Problem(rule, remedy=f"name the format with format=: {', '.join(FORMATS)}"))
    if kind == "csv" and _is_headerless_amazon(path):
        return "amazon"
    return kind


def _format_of_folder(folder: Path) -> str:
    if any((folder / name).is_file() for name in _RATINGS):
        return "movielens"
    if parquet_files(folder):
        return "parquet"
    return _format_of(_files_in(folder)[0])


def _files_in(folder: Path) -> list[Path]:
    """The data files of a folder, in name order; all must have one format."""
    # A .txt file beside data is usually a note about it.
    known = _SUFFIXES.keys() - {".txt"}
    files = [file for file in sorted(folder.iterdir()) if file.is_file() and plain_name(file).suffix in known]
    kinds = {_SUFFIXES[plain_name(file).suffix]: file for file in reversed(files)}
    if not files:
        rule = f"{folder} holds no data: it has neither {' nor '.join(_RATINGS)} nor files with a known suffix"
        raise DataError(Problem(rule, remedy=f"pass a folder that has; known are {', '.join(_SUFFIXES)}"))
    if len(kinds) > 1:
        shown = ", ".join(file.name for file in kinds.values())
        rule = f"{folder} holds files of several formats ({shown})"
        raise DataError(Problem(rule, remedy=f"pass those of one format, such as '{folder}/*{files[0].suffix}'"))
    return files


def _open_csv(path: Path, name: str, options: FileOptions) -> SourceTable:
    return open_text(path, name, options)


def _open_tsv(path: Path, name: str, options: FileOptions) -> SourceTable:
    return open_text(path, name, options, separator="\t")


def _open_amazon(path: Path, name: str, options: FileOptions) -> SourceTable:
    return open_text(path, name, options, columns=HEADERLESS_COLUMNS)


def _open_inter(path: Path, name: str, options: FileOptions) -> SourceTable:
    """RecBole's atomic file: tab-separated, each name in the header followed by `:type`."""
    table = open_text(path, name, options, separator="\t", quotes=False)
    names = table.frame.collect_schema().names()
    assert not table.files
    return replace(table, frame=table.frame.rename({column: column.split(":")[0] for column in names}))


def _open_parquet(path: Path, name: str, options: FileOptions) -> SourceTable:
    frame, files = scan_parquet(path)
    return SourceTable(frame, name, files=files)


def _open_arrow(path: Path, name: str, options: FileOptions) -> SourceTable:
    return SourceTable(scan_arrow(path), name)


def _open_json_lines(path: Path, name: str, options: FileOptions) -> SourceTable:
    content = _json_content(path, options)
    return SourceTable(pl.scan_ndjson(_scannable(content), infer_schema_length=None), name)


def _open_json(path: Path, name: str, options: FileOptions) -> SourceTable:
    """An array of objects; also JSON lines, which many files called `.json` hold."""
    content = _json_content(path, options)
    start = _first_byte(content)
    if not start:
        raise pl.exceptions.NoDataError("empty")
    if start != b"[":
        lines = pl.scan_ndjson(_scannable(content), infer_schema_length=None)
        if all(kind.is_nested() for kind in lines.collect_schema().dtypes()):
            rule = f"{name} holds one JSON object instead of one per row"
            remedy = "write an array of objects, as pandas does with to_json(orient='records'), or one object per line"
            raise DataError(Problem(rule, remedy=remedy))
        return SourceTable(lines, name)
    frame = pl.read_json(content, infer_schema_length=None)
    return SourceTable(frame.lazy(), name)


def _json_content(path: Path, options: FileOptions) -> Path | bytes:
    if not is_compressed(path):
        return path
    return read_decompressed(path) if options.scratch is None else decompressed_file(path, options.scratch)


def _scannable(content: Path | bytes) -> Path | io.BytesIO:
    return io.BytesIO(content) if isinstance(content, bytes) else content


def _first_byte(content: Path | bytes) -> bytes:
    """The first byte that is no white space."""
    with content.open("rb") if isinstance(content, Path) else io.BytesIO(content) as file:
        while start := file.read(io.DEFAULT_BUFFER_SIZE):
            if start.lstrip():
                return start.lstrip()[:1]
    return b""


def _open_excel(path: Path, name: str, options: FileOptions) -> SourceTable:
    """The first sheet of a workbook."""
    try:
        frame = pl.read_excel(path, engine="calamine", infer_schema_length=None)
    except (ImportError, ModuleNotFoundError) as error:
        raise MissingExtraError("fastexcel", "excel", "reading Excel files") from error
    return SourceTable(frame.lazy(), name)


def _open_zip(path: Path, name: str, options: FileOptions) -> SourceTable:
    """A GroupLens archive, its unpacked folder or the ratings file in it, or an archive with one text file."""
    if path.is_dir():
        file = _ratings_in(path, "folder: it has", [one for one in _RATINGS if (path / one).is_file()])
        return _open_ratings(path / file, file, name, options)
    if path.suffix.lower() in (".csv", ".dat"):
        return _open_ratings(path, path.name, name, options)
    with zipfile.ZipFile(path) as archive:
        members = [one for file in _RATINGS for one in archive.namelist() if PurePath(one).name == file]
    member = members[0] if members else only_member(path)
    if not members and _SUFFIXES.get(PurePath(member).suffix.lower()) not in ("csv", "tsv"):
        rule = f"{path} holds {member}, which is no CSV or TSV file"
        raise DataError(Problem(rule, remedy="unpack it and pass the file"))
    scratch = options.scratch
    content = read_member(path, member) if scratch is None else member_file(path, member, scratch)
    return _open_ratings(content, member, name, options)


def _open_ratings(content: Path | bytes, file: str, name: str, options: FileOptions) -> SourceTable:
    if not file.endswith(".dat"):
        return open_text(content, name, options)
    # Polars takes separators of one byte only.
    if options.scratch is not None and isinstance(content, Path):
        lines = (block.replace(b"::", b"\t") for block in file_blocks(content))
        plain: Path | bytes = new_file(options.scratch, lines)
    else:
        plain = (content if isinstance(content, bytes) else content.read_bytes()).replace(b"::", b"\t")
    return open_text(plain, name, options, separator="\t", columns=HEADERLESS_COLUMNS)


def _ratings_in(path: Path, kind: str, found: list[str]) -> str:
    if not found:
        rule = f"{path} is not a MovieLens {kind} neither {' nor '.join(_RATINGS)}"
        raise DataError(Problem(rule, remedy="check the path"))
    return found[0]


def _is_headerless_amazon(path: Path) -> bool:
    if not re.fullmatch(r"ratings_.+\.csv", path.name):
        return False
    with path.open("rb") as file:
        fields = file.readline().decode(errors="replace").strip().split(",")
    return len(fields) == 4 and all(re.fullmatch(r"[0-9]+(\.[0-9]+)?", field) for field in fields[2:])


_RATINGS = ("ratings.dat", "ratings.csv")

FORMATS: dict[str, Callable[[Path, str, FileOptions], SourceTable]] = {
    "csv": _open_csv,
    "tsv": _open_tsv,
    "parquet": _open_parquet,
    "arrow": _open_arrow,
    "jsonl": _open_json_lines,
    "json": _open_json,
    "excel": _open_excel,
    "inter": _open_inter,
    "movielens": _open_zip,
    "amazon": _open_amazon,
}
TEXT_FORMATS = ("csv", "tsv", "inter", "amazon")

_SUFFIXES = {
    ".csv": "csv",
    ".txt": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "json",
    ".xlsx": "excel",
    ".xls": "excel",
    ".inter": "inter",
    ".zip": "movielens",
    ".dat": "movielens",
}
