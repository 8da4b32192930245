"""A fitted model as the start of another training."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pathdex.data.vocabulary import UNKNOWN, Vocabulary
from pathdex.errors import DataError, Problem
from pathdex.model.network import ITEM_ROWS
from pathdex.training.encoder_phase import centred_log_counts
from pathdex.training.warm_start import WarmStart, without_popularity

if TYPE_CHECKING:
    from pathdex.recommenders.deep_retrieval import DeepRetrieval


def warm_start(model: DeepRetrieval | None, items: Vocabulary) -> WarmStart | None:
    """A start for a training over `items`; `DataError` if the model knows none of them. None without a model."""
    if model is None:
        return None
    state, earlier = model.model_state, model.items
    codes = earlier.codes(items.first_ids(len(items)))
    if not (codes != UNKNOWN).any():
        shown = f"{items.first_ids(1)[0]!r} and {earlier.first_ids(1)[0]!r}"
        rule = f"the model to start from knows none of the {len(items):,} items of the data; ids are such as {shown}"
        raise DataError(Problem(rule, "start_from", remedy="pass a model of the same catalogue, or train from scratch"))
    log_counts = centred_log_counts(state.counts)
    rows = without_popularity(state.rows, state.config.popularity_weight, log_counts)
    return WarmStart(state.config, {**state.weights, ITEM_ROWS: rows}, state.paths, codes)
