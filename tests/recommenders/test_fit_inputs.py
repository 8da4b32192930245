"""Interactions or a source."""

from __future__ import annotations

import polars as pl
import pytest

from pathdex.data import read
from pathdex.errors import DataError
from pathdex.recommenders.fit_inputs import fit_inputs

ROWS = pl.DataFrame({"user": [1, 1, 2], "item": ["a", "b", "a"]})


def test_interactions_and_frames_give_the_same() -> None:
    data = read(ROWS)
    assert fit_inputs(data) == (data, None)
    found, details = fit_inputs(ROWS, pl.DataFrame({"item": ["a"], "title": ["A"]}))
    assert found.num_interactions == 3
    assert details is not None
    assert details.title("a") == "A"


def test_a_frame_without_known_columns_says_how() -> None:
    with pytest.raises(DataError, match=r"no user column found in the DataFrame; .* name it with user="):
        fit_inputs(pl.DataFrame({"a": [1], "b": [2]}))
