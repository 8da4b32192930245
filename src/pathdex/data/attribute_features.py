"""A catalogue table as what its items can share: each column with each value."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np

from pathdex.data.attribute_filters import Column
from pathdex.data.attributes import Attributes
from pathdex.data.item_changes import features
from pathdex.data.vocabulary import UNKNOWN


def feature_table(table: Attributes) -> dict[str, tuple[str, ...]]:
    """The features of each item that has any, by its id as text."""
    rows: list[dict[str, list[Any]]] = [defaultdict(list) for _ in range(len(table))]
    for name, column in table.values.items():
        owners = np.arange(len(table)) if column.owners is None else column.owners
        for row, value in zip(owners.tolist(), _values(column), strict=True):
            if value is not None:
                rows[row][name].append(value)
    found = ((str(item), features(row)) for item, row in zip(table.ids.to_list(), rows, strict=True))
    return {item: values for item, values in found if values}


def _values(column: Column) -> list[Any]:
    """The values of a column, None where one is missing."""
    if column.dictionary is None:
        return [None if np.isnan(one) or np.isinf(one) else float(one) for one in column.data.tolist()]
    known = column.dictionary.ids(range(len(column.dictionary)))
    values: list[Any] = [bool(one) for one in known] if column.kind == "boolean" else list(known)
    return [None if code == UNKNOWN else values[code] for code in column.data.tolist()]
