"""Tables in memory: frames, Arrow tables, sparse matrices, and data sets of Hugging Face."""

from __future__ import annotations

from typing import Any

import polars as pl
import pyarrow as pa

from pathdex.data.source_table import SourceTable
from pathdex.errors import DataError, Problem


def open_object(source: Any) -> SourceTable:
    """An object as a table. Its type is recognised by name, so that pandas, scipy and datasets are not imported."""
    if isinstance(source, pl.LazyFrame):
        return SourceTable(source, "the LazyFrame")
    if isinstance(source, pl.DataFrame):
        return SourceTable(source.lazy(), "the DataFrame")
    if isinstance(source, pa.Table | pa.RecordBatch):
        return SourceTable(_from_arrow(source), "the Arrow table")
    package, name = type(source).__module__.split(".")[0], type(source).__name__
    if package == "pandas" and name == "DataFrame":
        return SourceTable(pl.from_pandas(source).lazy(), "the DataFrame")
    if package == "scipy" and hasattr(source, "tocsr"):
        return _open_matrix(source)
    if package == "datasets":
        return _open_hugging_face(source, name)
    remedy = (
        "pass a path, a URL, a list of paths, a pandas or polars frame, an Arrow table, a scipy sparse matrix or a "
        "data set of Hugging Face"
    )
    raise DataError(Problem(f"a {name} cannot be read", "source", source, remedy))


def _from_arrow(table: pa.Table | pa.RecordBatch) -> pl.LazyFrame:
    frame = pl.from_arrow(table)
    assert isinstance(frame, pl.DataFrame)
    return frame.lazy()


def _open_hugging_face(source: Any, kind: str) -> SourceTable:
    if kind != "Dataset":
        parts = f" It has: {', '.join(map(repr, source))}." if kind == "DatasetDict" else ""
        remedy = "pass one part, such as dataset['train']; load it without streaming=True"
        raise DataError(Problem(f"a {kind} of Hugging Face is not one table.{parts}", "source", kind, remedy))
    return SourceTable(_from_arrow(source.with_format("arrow")[:]), "the data set")


def _open_matrix(matrix: Any) -> SourceTable:
    """Rows are users, columns are items, values are ratings. Stored zeros are dropped; there is no order."""
    entries = matrix.tocsr(copy=True)
    entries.sum_duplicates()
    entries.eliminate_zeros()
    entries = entries.tocoo()
    frame = pl.DataFrame({"user_id": entries.row, "item_id": entries.col, "rating": entries.data})
    return SourceTable(frame.lazy(), "the matrix", ordered=False)
