"""Merging the changes of later checkpoints into a full one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pathdex.training.loop import TrainingState
from pathdex.training.stream.attribute_index import AttributeIndex
from pathdex.training.stream.catalogue import StreamCatalogue
from pathdex.training.stream.replay import merge_recent
from pathdex.training.stream.state import ATTRIBUTES, CATALOGUE, RECENT, SLOTS, has_row_per_slot, under


def merge_changes(full: TrainingState, changes: Sequence[TrainingState]) -> TrainingState:
    """The state of the last checkpoint, from `StreamState.state_dict` and later `StreamState.changes_dict`.

    What belongs to slots and the recent users are merged. All else is that of the last checkpoint; earlier histories
    have been committed to their file.
    """
    if not changes:
        return full
    catalogue = StreamCatalogue.from_state_dict(under(CATALOGUE, full.arrays))
    attributes = AttributeIndex()
    attributes.load_state_dict(under(ATTRIBUTES, full.arrays))
    arrays = {name: one for name, one in changes[-1].arrays.items() if name != SLOTS}
    size = max(catalogue.num_slots, *(int(one.arrays[SLOTS].max(initial=-1)) + 1 for one in changes))
    for name in filter(has_row_per_slot, full.arrays):
        first = full.arrays[name]
        arrays[name] = np.zeros((size, *first.shape[1:]), first.dtype)
        arrays[name][: len(first)] = first
    recent: Mapping[str, NDArray[Any]] = under(RECENT, full.arrays)
    for change in changes:
        slots = change.arrays[SLOTS]
        catalogue.update(slots, under(CATALOGUE, change.arrays))
        attributes.update(under(ATTRIBUTES, change.arrays))
        recent = merge_recent(recent, under(RECENT, change.arrays))
        for name, values in change.arrays.items():
            if has_row_per_slot(name):
                arrays[name][slots] = values
    arrays |= {f"{CATALOGUE}{name}": one for name, one in catalogue.state_dict().items()}
    arrays |= {f"{ATTRIBUTES}{name}": one for name, one in attributes.state_dict().items()}
    arrays |= {f"{RECENT}{name}": one for name, one in recent.items()}
    return TrainingState(changes[-1].values, arrays)


def not_finite(state: TrainingState) -> list[str]:
    """The names of learned arrays that hold NaN or infinity."""
    return [name for name, one in state.arrays.items() if one.dtype == np.float32 and not np.isfinite(one).all()]
