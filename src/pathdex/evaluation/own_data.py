"""Queries from test data of one's own, in the codes of a model."""

from __future__ import annotations

import warnings

import numpy as np

from pathdex.data.interactions import Interactions
from pathdex.data.ragged import Ragged
from pathdex.data.readers import read
from pathdex.data.source_table import Source
from pathdex.data.splits import Queries
from pathdex.data.vocabulary import UNKNOWN
from pathdex.errors import DataError, Problem
from pathdex.recommenders.base import Recommender
from pathdex.recommenders.batch import known_histories


def own_queries(
    model: Recommender, test: Interactions | Source, *, history: Interactions | Source | None = None
) -> Queries:
    """Queries for a model from a test file or frame, which is read like the model's training data.

    With `history`, the truth of a user is all of the user's rows in `test`, and the history those in `history`; a new
    user has none. Without it, the first half of the user's rows is the history and the second half the truth. Items
    that the model does not know are left out with a warning.
    """
    truth, users, unknown = known_histories(model, as_data(model, test))
    if history is None:
        rows = np.flatnonzero(truth.lengths >= 2)
        past, truth = truth.take(rows).split_at(truth.lengths[rows] // 2)
        users = users.take(rows)
    else:
        earlier, known, _ = known_histories(model, as_data(model, history))
        place = known.codes(users.ids(range(len(users))))
        nothing = np.empty(0, earlier.values.dtype)
        past = Ragged.from_rows([nothing if row == UNKNOWN else earlier[row] for row in place.tolist()])
    if not len(users):
        rule = "no user has enough items that the model knows"
        remedy = "pass rows of the items that it was trained on" + ("" if history else ", at least two per user")
        raise DataError(Problem(rule, "test", remedy=remedy))
    if unknown:
        warnings.warn(
            f"{unknown:,} test rows have items that the model does not know and were left out, so recall is that of "
            "known items",
            stacklevel=3,
        )
    return Queries(users, past, truth)


def as_data(model: Recommender, source: Interactions | Source) -> Interactions:
    """The interactions, or those of a source, read like the model's training data."""
    return source if isinstance(source, Interactions) else read(source, like=model.reading)
