"""Parquet files and folders, also partitioned ones, and Arrow files. Damaged files are errors, never crashes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
from polars.io.plugins import register_io_source

from pathdex.errors import DataError, Problem

BATCH_ROWS, READ_AHEAD = 65_536, 2
"""Rows that are decoded at a time, and how many such batches ahead of their use."""


def scan_parquet(path: Path) -> tuple[pl.LazyFrame, tuple[pl.LazyFrame, ...]]:
    """The table, and the table of each file if there are several.

    A file, or all `.parquet` files of a folder in name order; `key=value` folders give the column `key`.
    """
    files = parquet_files(path) if path.is_dir() else [path]
    if not files:
        raise DataError(Problem(f"{path} holds no Parquet files", remedy="check the path"))
    # Arrow decodes the pages: those of a damaged file make polars abort the process.
    import pyarrow.dataset

    with _text_names():
        partitions = _is_partitioned(path, files)
        dataset = pyarrow.dataset.dataset(
            [str(file) for file in files],
            format="parquet",
            partitioning="hive" if partitions else None,
            partition_base_dir=str(path) if partitions else None,
        )
        keys = {part.partition("=")[0] for part in files[0].relative_to(path).parts[:-1]} if partitions else set()
        columns = [field for field in dataset.schema if field.name not in keys]
        for fragment in dataset.get_fragments():
            if [field for field in fragment.physical_schema if field.name not in keys] != columns:
                raise pa.ArrowInvalid(f"{fragment.path} has other columns than {files[0]}")
            _check_row_counts(fragment.metadata)
        scans = tuple(_scan(dataset, number) for number in range(len(files))) if len(files) > 1 else ()
    return _scan(dataset), scans


def _scan(dataset: Any, number: int | None = None) -> pl.LazyFrame:
    """The rows of a data set, or of one of its files, read batch by batch."""
    schema = pl.from_arrow(dataset.schema.empty_table()).schema  # type: ignore[union-attr]

    def batches(
        columns: list[str] | None, predicate: pl.Expr | None, limit: int | None, size: int | None
    ) -> Iterator[pl.DataFrame]:
        options = {"batch_readahead": READ_AHEAD, "batch_size": BATCH_ROWS}
        if number is None:
            found = dataset.to_batches(columns=columns, fragment_readahead=1, **options)
        else:
            found = list(dataset.get_fragments())[number].to_batches(dataset.schema, columns=columns, **options)
        for batch in found:
            frame = pl.from_arrow(pa.Table.from_batches([batch]))
            assert isinstance(frame, pl.DataFrame)
            if limit is not None:
                frame = frame.head(limit)
                limit -= frame.height
            yield frame if predicate is None else frame.filter(predicate)
            if limit == 0:
                return

    return register_io_source(batches, schema=schema)


def parquet_files(folder: Path) -> list[Path]:
    """The Parquet files of a folder, or of its `key=value` folders."""
    return sorted(folder.glob("*.parquet")) or sorted(
        file for file in folder.rglob("*.parquet") if all("=" in part for part in file.relative_to(folder).parts[:-1])
    )


def scan_arrow(path: Path) -> pl.LazyFrame:
    """An Arrow file (Feather 2), or an Arrow stream."""
    with _text_names(), pa.memory_map(str(path)) as file:
        if file.size() == 0:
            raise pl.exceptions.NoDataError("empty")
        is_file = file.read(6) == b"ARROW1"
        file.seek(0)
        reader = pa.ipc.open_file(file) if is_file else pa.ipc.open_stream(file)
        table = reader.read_all()
        for batch in table.to_batches():
            batch.validate(full=True)
        frame = pl.from_arrow(table)
    assert isinstance(frame, pl.DataFrame)
    return frame.lazy()


@contextmanager
def _text_names() -> Iterator[None]:
    """The names in a damaged file may be any bytes, which Arrow tells only when they are read."""
    try:
        yield
    except UnicodeDecodeError as error:
        raise pa.ArrowInvalid(f"it holds a name that is not UTF-8 text: {error.object!r}") from error


def _is_partitioned(path: Path, files: list[Path]) -> bool:
    return path.is_dir() and files[0].parent != path


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
