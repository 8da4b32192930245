"""Many deltas as few: a reader that is far behind applies one change instead of hundreds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from pathdex.data.vocabulary import Vocabulary, as_kind
from pathdex.errors import DataError
from pathdex.kernels.types import Ints
from pathdex.recommenders.model_delta import NO_CODES, ModelDelta

_REMOVED = -1


def mergeable_groups(deltas: Sequence[ModelDelta]) -> list[Sequence[ModelDelta]]:
    """The deltas in order, cut after the last one that brings neighbours.

    Items whose ids change after that lose their neighbours, which one delta cannot say together with new neighbours.
    """
    cut = max((place for place, delta in enumerate(deltas, 1) if delta.neighbours is not None), default=0)
    return [group for group in (deltas[:cut], deltas[cut:]) if group]


def merge_deltas(deltas: Sequence[ModelDelta]) -> ModelDelta:
    """One delta with the effect of a chain of them, which must be one of `mergeable_groups`.

    `DataError` if they cannot belong to the same model.
    """
    last, filled = deltas[-1], [delta for delta in deltas if len(delta.items)]
    if len(deltas) == 1:
        return last
    if len({(delta.rows.shape[1], delta.paths.shape[1]) for delta in filled}) > 1:
        raise DataError("rows or paths: their widths differ between deltas; write a new base")
    arrays = filled or [last]
    codes, rows, begin = [], [], 0
    for delta in deltas:
        codes += [delta.items, delta.removed]
        rows += [np.arange(begin, begin + len(delta.items)), np.full(len(delta.removed), _REMOVED)]
        begin += len(delta.items)
    touched, places = _last_places(np.concatenate(codes))
    row = np.concatenate(rows)[places]
    items, row, removed = touched[row != _REMOVED], row[row != _REMOVED], touched[row == _REMOVED]
    id_codes, ids = _merged_ids(deltas, items)
    return ModelDelta(
        num_items=last.num_items,
        items=items,
        rows=np.concatenate([delta.rows for delta in arrays])[row],
        paths=np.concatenate([delta.paths for delta in arrays])[row],
        counts=np.concatenate([delta.counts for delta in arrays])[row],
        id_codes=id_codes,
        ids=ids,
        removed=removed,
        weights=next((delta.weights for delta in reversed(deltas) if delta.weights), {}),
        settings={name: value for delta in deltas for name, value in delta.settings.items()},
        neighbours=last.neighbours,
    )


def _last_places(codes: Ints) -> tuple[Ints, Ints]:
    """The distinct codes, ascending, and where each occurs last."""
    distinct, places = np.unique(codes[::-1], return_index=True)
    return distinct, len(codes) - 1 - places


def _merged_ids(deltas: Sequence[ModelDelta], items: Ints) -> tuple[Ints, Vocabulary]:
    """The items that got an id on the way and are still there, and the last id of each."""
    named = [delta for delta in deltas if len(delta.id_codes)]
    if not named:
        return NO_CODES, Vocabulary(NO_CODES)
    codes, places = _last_places(np.concatenate([delta.id_codes for delta in named]))
    kept = np.isin(codes, items)
    kind = "str" if any(delta.ids.kind == "str" for delta in named) else "int"
    ids = pl.concat([as_kind(delta.ids, kind).column() for delta in named])
    return codes[kept], Vocabulary.from_column(ids.gather(places[kept]))
