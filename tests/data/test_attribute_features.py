"""Catalogue tables as features."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from pathdex.data.attribute_features import feature_table
from pathdex.data.attributes import Attributes


def test_every_kind_of_column() -> None:
    frame = pl.DataFrame(
        {
            "item_id": [1, 2, 3],
            "genre": ["Drama|Crime", "drama", None],
            "year": [1999, None, None],
            "new": [True, False, None],
            "price": [9.99, 12.0, float("inf")],
            "tags": [["a", "b"], None, []],
        }
    )
    assert feature_table(Attributes.read(frame)) == {
        "1": ("genre=crime", "genre=drama", "new=true", "tags=a", "tags=b", "year=1999"),
        "2": ("genre=drama", "new=false", "price=12"),
    }


def test_a_text_file(tmp_path: Path) -> None:
    file = tmp_path / "films.csv"
    file.write_text("movieId,genres,year\n0012,Drama|Crime,1999\nx,Comedy,\n")
    assert feature_table(Attributes.read(file)) == {
        "0012": ("genres=crime", "genres=drama", "year=1999"),
        "x": ("genres=comedy",),
    }
