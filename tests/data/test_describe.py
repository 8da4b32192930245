"""Summary statistics of a data set."""

import json

import numpy as np
import polars as pl
import pytest

from pathdex.data import Interactions, Ragged, Vocabulary, describe, read


def test_statistics_by_hand():
    rows = {"user": [1] * 4 + [2], "item": [10, 11, 10, 12, 10], "time": [5, 6, 7, 8, 9]}
    facts = describe(read(pl.DataFrame(rows)), history_length=3)
    assert facts["users"] == 2
    assert facts["items"] == 3
    assert facts["interactions"] == 5
    assert facts["density"] == pytest.approx(5 / 6)
    assert facts["ordered"] is True
    assert facts["sequence_length"] == {
        "min": 1, "p25": 1.75, "median": 2.5, "p75": 3.25, "p95": pytest.approx(3.85), "max": 4, "mean": 2.5,
    }  # fmt: skip
    assert facts["item_count"]["max"] == 3
    assert facts["top_1_percent_items_share"] == pytest.approx(3 / 5)
    assert facts["items_seen_once"] == 2
    assert facts["items_never_seen"] == 0
    assert facts["users_with_one_interaction"] == 1
    assert facts["time"] == {"first": 5.0, "last": 9.0}
    assert facts["history"] == {"length": 3, "users_that_fit": 0.5, "interactions_covered": pytest.approx(4 / 5)}
    assert facts["notes"]["duplicate_rows"] == 0


def test_the_description_is_json():
    facts = describe(read(pl.DataFrame({"user": [1, 1], "item": ["a", "b"]})))
    assert json.loads(json.dumps(facts)) == facts
    assert facts["time"] is None


def test_an_empty_data_set():
    empty = Interactions(Ragged.from_rows([]), Vocabulary(np.empty(0, np.int64)), Vocabulary(np.empty(0, np.int64)))
    facts = describe(empty)
    assert facts["density"] == 0
    assert facts["sequence_length"]["max"] == 0
