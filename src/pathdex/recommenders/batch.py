"""Batch recommendation: write the recommendations of all users to a file."""

from __future__ import annotations

import io
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

import numpy as np
import polars as pl
import pyarrow.parquet as pq

from pathdex.data.interactions import Interactions
from pathdex.data.item_details import ItemDetails
from pathdex.data.ragged import Ragged
from pathdex.data.vocabulary import UNKNOWN, Id, Vocabulary
from pathdex.errors import QueryError, StorageError
from pathdex.progress import Progress
from pathdex.recommenders.base import Recommender
from pathdex.recommenders.item_list import ScoredItem, detail_name
from pathdex.storage.atomic import atomic_write

Writer: TypeAlias = Callable[[BinaryIO, Iterator[pl.DataFrame]], None]
BATCH = 1024


@dataclass(frozen=True)
class BatchSummary:
    """Counts of a batch recommendation."""

    users: int
    """Users with an answer."""
    skipped: int
    """Users without any known item."""
    unknown_items: int
    """Unknown history items, which were ignored."""
    rows: int
    """Recommendations written."""


def recommend_file(
    model: Recommender,
    data: Interactions,
    target: str | Path,
    n: int = 10,
    *,
    exclude_seen: bool = True,
    deny: Iterable[Id] = (),
    allow: Iterable[Id] | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
    **options: Any,
) -> BatchSummary:
    """Write the best `n` items of every user in `data` to a Parquet, CSV or JSON lines file, atomically.

    Columns: `user`, `rank` (from 1), `item`, `score`, and the details of items if the model has them: `title` and the
    other columns, with `item_` before a name that is taken. CSV joins lists by `|`. `options` are passed to the model's
    `rank`. Users without any known item are skipped and counted. `progress(done, total)` is called with the number of
    users after each batch.
    """
    target = Path(target)
    writer = check_target(target, overwrite=overwrite)
    histories, users, unknown = known_histories(model, data)
    rows = 0

    def frames() -> Iterator[pl.DataFrame]:
        nonlocal rows
        for begin in range(0, len(users), BATCH):
            chosen = np.arange(begin, min(begin + BATCH, len(users)))
            queries = [model.items.ids(row) for row in histories.take(chosen)]
            answers = model.recommend_batch(queries, n, exclude_seen=exclude_seen, deny=deny, allow=allow, **options)
            frame = _frame(users.take(chosen), answers, model)
            rows += frame.height
            yield frame
            if progress is not None:
                progress(int(chosen[-1]) + 1, len(users))

    # The first frame is empty, so that a file without rows still has columns.
    header = _frame(users.take(np.arange(0)), [], model)
    with atomic_write(target) as stream:
        writer(stream, itertools.chain([header], frames()))
    return BatchSummary(len(users), data.num_users - len(users), unknown, rows)


def known_histories(model: Recommender, data: Interactions) -> tuple[Ragged, Vocabulary, int]:
    """Histories in the model's codes, their users, and the number of unknown items.

    Skips users without any known item.
    """
    codes = model.items.codes(data.items.ids(range(data.num_items)))[data.sequences.values].astype(np.int32)
    known = codes != UNKNOWN
    owner = np.repeat(np.arange(data.num_users), data.sequences.lengths)[known]
    lengths = np.bincount(owner, minlength=data.num_users)
    kept = np.flatnonzero(lengths)
    offsets = np.concatenate([[0], np.cumsum(lengths[kept])]).astype(np.int64)
    return Ragged(codes[known], offsets), data.users.take(kept), int(np.sum(~known))


def check_target(target: Path, *, overwrite: bool) -> Writer:
    """The writer for the file's extension; raises `StorageError` if the file exists, unless `overwrite` is set."""
    if target.suffix not in WRITERS:
        raise QueryError(f"{target}: the ending {target.suffix!r} is not known; write to {', '.join(WRITERS)}")
    if target.is_dir():
        raise StorageError(f"{target} is a folder; name a file in it")
    if target.exists() and not overwrite:
        raise StorageError(f"{target} exists; choose another file, or replace it with --overwrite (overwrite=True)")
    return WRITERS[target.suffix]


def _frame(users: Vocabulary, answers: Sequence[Sequence[ScoredItem]], model: Recommender) -> pl.DataFrame:
    lengths = np.array([len(answer) for answer in answers], np.int64)
    owner = np.repeat(np.arange(len(answers)), lengths)
    start = np.repeat(np.cumsum(lengths) - lengths, lengths)
    ids = [one.id for answer in answers for one in answer]
    scores = [one.score for answer in answers for one in answer]
    frame = pl.DataFrame(
        {
            "user": pl.Series(users.ids(owner), dtype=_dtype(users)),
            "rank": pl.Series(np.arange(len(owner)) - start + 1, dtype=pl.Int32),
            "item": pl.Series(ids, dtype=_dtype(model.items)),
            "score": pl.Series(scores, dtype=pl.Float32),
        }
    )
    return frame if model.details is None else frame.with_columns(_detail_columns(model.details, ids))


def _detail_columns(details: ItemDetails, ids: Sequence[Id]) -> list[pl.Series]:
    """The details of these items, null where they have none."""
    codes = pl.Series(details.ids.codes(ids))
    rows = codes.set(codes == UNKNOWN, None)
    found = []
    for column in details.columns:
        values = column.series().gather(rows)
        if column.name == details.title_column:
            as_text = values.list.eval(pl.element().cast(pl.String)).list.join(", ") if column.many else values
            found.append(as_text.cast(pl.String).alias("title"))
        else:
            found.append(values.alias(detail_name(column.name)))
    return found


def _dtype(ids: Vocabulary) -> type[pl.Int64 | pl.String]:
    return pl.Int64 if ids.kind == "int" else pl.String


def _write_parquet(stream: BinaryIO, frames: Iterator[pl.DataFrame]) -> None:
    head = next(frames).to_arrow()
    with pq.ParquetWriter(stream, head.schema) as writer:
        for frame in frames:
            writer.write_table(frame.to_arrow())


def _write_csv(stream: BinaryIO, frames: Iterator[pl.DataFrame]) -> None:
    for number, frame in enumerate(frames):
        lists = [name for name, dtype in frame.schema.items() if isinstance(dtype, pl.List)]
        joined = (pl.col(name).list.eval(pl.element().cast(pl.String)).list.join("|") for name in lists)
        frame.with_columns(joined).write_csv(stream, include_header=number == 0)


def _write_jsonl(stream: BinaryIO, frames: Iterator[pl.DataFrame]) -> None:
    for frame in frames:
        buffer = io.BytesIO()
        frame.write_ndjson(buffer)
        stream.write(buffer.getvalue())


WRITERS: dict[str, Writer] = {
    ".parquet": _write_parquet,
    ".csv": _write_csv,
    ".jsonl": _write_jsonl,
    ".ndjson": _write_jsonl,
}
