"""What `fit` is given: interactions, or anything that can be read as such."""

from __future__ import annotations

from pathdex.data.interactions import Interactions
from pathdex.data.item_details import ItemDetails, as_details
from pathdex.data.readers import read
from pathdex.data.source_table import Source


def fit_inputs(
    data: Interactions | Source, items: ItemDetails | Source | None = None
) -> tuple[Interactions, ItemDetails | None]:
    """What `fit` was given, read where it is a source; `DataError` before anything is trained."""
    found = data if isinstance(data, Interactions) else read(data)
    return found, None if items is None else as_details(items)
