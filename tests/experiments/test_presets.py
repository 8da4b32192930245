"""Presets by name and by file name."""

from __future__ import annotations

from pathlib import Path

import pytest

from pathdex.config import Config
from pathdex.errors import ConfigError
from pathdex.experiments.presets import PRESETS, find_preset


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("data/ml-1m.zip", "movielens-1m"),
        ("data/ml-20m", "movielens-20m"),
        ("ratings_Books.csv", "amazon-books"),
        ("events.parquet", "none"),
    ],
)
def test_the_file_name_selects_the_preset(source: str, name: str) -> None:
    assert find_preset(None, Path(source)) is PRESETS[name]


def test_a_name_overrides_the_file_name() -> None:
    assert find_preset("none", Path("ml-1m.zip")).reading == {}
    with pytest.raises(ConfigError, match=r"^preset='movielens': must be one of .*; did you mean 'movielens-1m'\?$"):
        find_preset("movielens", Path("x.csv"))


def test_the_hyper_parameters_of_the_paper() -> None:
    books, movies = PRESETS["amazon-books"], PRESETS["movielens-20m"]
    assert (books.n, movies.n) == (200, 10)
    assert books.split == {"kind": "users", "valid_users": 5000, "test_users": 5000}
    assert movies.split == {"kind": "users", "valid_users": 1000, "test_users": 1000}
    assert movies.reading == {"min_rating": 4, "min_interactions": 10, "format": "movielens"}
    own = Config.from_dict(books.model)
    assert (own.num_nodes, own.depth, own.paths_per_item, own.beam_size, own.penalty) == (100, 3, 3, 50, 3e-7)
    own = Config.from_dict(movies.model)
    assert (own.num_nodes, own.depth, own.paths_per_item, own.beam_size, own.penalty) == (50, 3, 3, 25, 3e-5)
