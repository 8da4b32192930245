"""The planted facts of each variant."""

import numpy as np
import polars as pl
import pytest

import pathdex
from pathdex.data import VARIANTS, find_variant, generate_variant, truth_file
from pathdex.data.splits import split_users
from pathdex.errors import ConfigError
from pathdex.evaluation.protocol import Method, evaluate
from tests.data.test_synthetic_habits import followed, repeated


@pytest.fixture(scope="module")
def variants(tmp_path_factory):
    """The rows and the planted truth of every variant."""
    folder = tmp_path_factory.mktemp("variants")
    found = {}
    for name in VARIANTS:
        path = generate_variant(folder / f"{name}.parquet", name)
        found[name] = (path, pl.read_parquet(path), pl.read_ipc(truth_file(path)))
    return found


def counts(rows, column):
    return rows.group_by(column).len()["len"].to_numpy()


@pytest.mark.parametrize("name", VARIANTS)
def test_sizes_are_exact(variants, name):
    rows, wanted = variants[name][1], find_variant(name)
    found = (rows["user_id"].n_unique(), rows["item_id"].n_unique(), rows.height)
    assert found == (wanted.users, wanted.items, wanted.interactions)


def test_few_users_have_very_long_histories(variants):
    rows = variants["long-histories"][1]
    assert counts(rows, "user_id").mean() >= 400
    assert rows["item_id"].n_unique() > 10 * rows["user_id"].n_unique()


def test_many_users_have_short_histories(variants):
    lengths = counts(variants["short-histories"][1], "user_id")
    assert len(lengths) == 25_000
    assert np.quantile(lengths, 0.9) <= 8


def test_the_last_item_predicts_the_next_one_only_with_strong_order(variants):
    assert followed(*variants["strong-order"][1:]) > 0.65
    assert followed(*variants["weak-order"][1:]) < 0.02


def test_repetition_is_heavy_or_light(variants):
    assert repeated(variants["heavy-repetition"][1]) > 0.5
    assert repeated(variants["light-repetition"][1]) < 0.1


def test_sparse_data_has_two_to_three_rows_per_item(variants):
    held = counts(variants["sparse"][1], "item_id")
    assert held.mean() == 2.5
    assert np.median(held) == 1
    assert np.sort(held)[-len(held) // 100 :].sum() > 0.25 * held.sum()


def test_on_sparse_data_popularity_beats_neighbours(variants):
    split = split_users(pathdex.read(variants["sparse"][0]), test_users=1000, seed=0)
    methods = [
        Method("popularity", pathdex.Popularity().fit(split.train)),
        Method("item-cf", pathdex.ItemCF().fit(split.train)),
    ]
    found = evaluate(methods, split.test, n=50, item_counts=split.train.item_counts())
    best = {result.method: result.figures["f_measure"] for result in found.results if result.filter_seen}
    assert best["popularity"] > 1.5 * best["item-cf"]


def test_options_replace_those_of_the_variant(tmp_path):
    path = generate_variant(tmp_path / "small.parquet", "sparse", users=50, items=100, interactions=600, seed=1)
    rows = pl.read_parquet(path)
    assert (rows["user_id"].n_unique(), rows["item_id"].n_unique(), rows.height) == (50, 100, 600)


def test_an_unknown_variant_is_an_error(tmp_path):
    with pytest.raises(ConfigError, match=r"variant='weak': must be one of long-histories, .*, sparse"):
        generate_variant(tmp_path / "x.parquet", "weak")
