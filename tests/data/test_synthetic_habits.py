"""Planted habits: each share is found again in the rows."""

import numpy as np
import polars as pl
import pytest

from pathdex.data import Habits, generate, truth_file
from pathdex.data.synthetic_habits import plant_habits
from pathdex.data.synthetic_world import plant_world
from pathdex.errors import ConfigError

SIZES = {"users": 300, "items": 400, "interactions": 12_000}


def rows_and_truth(path, habits, **changes):
    generate(path, **{**SIZES, **changes}, habits=habits)
    return pl.read_parquet(path), pl.read_ipc(truth_file(path))


def followed(rows, truth):
    """The share of the rows whose item is the planted successor of the user's item before."""
    successor = truth.unique("item_id").select("item_id", "next_item")
    pairs = rows.with_columns(pl.col("item_id").shift(-1).over("user_id").alias("next")).drop_nulls("next")
    return pairs.join(successor, on="item_id").select((pl.col("next") == pl.col("next_item")).mean()).item()


def repeated(rows):
    """The share of the rows whose item the user has had before."""
    return 1 - rows.n_unique(["user_id", "item_id"]) / rows.height


def same_prefix(rows, truth):
    """The share of neighbouring rows of a user that have a prefix in common."""
    prefix = truth.group_by("item_id").agg((pl.col("c1") * 1000 + pl.col("c2")).alias("prefix"))
    joined = rows.join(prefix, on="item_id", maintain_order="left")
    pairs = joined.with_columns(pl.col("prefix").shift(-1).over("user_id").alias("next")).drop_nulls("next")
    return pairs.select((pl.col("prefix").list.set_intersection("next").list.len() > 0).mean()).item()


def test_sizes_are_exact_and_every_user_and_item_occurs(tmp_path):
    rows, truth = rows_and_truth(tmp_path / "a.parquet", Habits(order=0.3, repetition=0.3, popularity=0.3))
    assert rows.height == 12_000
    assert rows["user_id"].unique().sort().to_list() == list(range(300))
    assert rows["item_id"].unique().sort().to_list() == list(range(400))
    assert truth.columns == ["item_id", "c1", "c2", "c3", "next_item"]


def test_the_seed_determines_the_rows(tmp_path):
    habits = Habits(order=0.3, repetition=0.3)
    one, same, other = (
        rows_and_truth(tmp_path / f"{name}.parquet", habits, seed=seed)[0]
        for name, seed in (("a", 1), ("b", 1), ("c", 2))
    )
    assert one.equals(same)
    assert not one.equals(other)


def test_with_full_order_each_item_follows_from_the_last(tmp_path):
    rows, truth = rows_and_truth(tmp_path / "a.parquet", Habits(order=1.0), items=20)
    # Only the 20 rows that make every item occur are exceptions, and the rows after them are not.
    assert followed(rows, truth) > 0.99


@pytest.mark.parametrize("order", [0.0, 0.3, 0.7])
def test_the_share_of_planted_successors(tmp_path, order):
    rows, truth = rows_and_truth(tmp_path / "a.parquet", Habits(order=order))
    assert order - 0.03 < followed(rows, truth) < order + 0.05  # chance adds a little


def test_without_order_a_shuffle_changes_nothing(tmp_path):
    """Neighbouring rows share a prefix as often as any two rows of the user, so order holds no information."""
    rows, truth = rows_and_truth(tmp_path / "a.parquet", Habits())
    shuffled = rows.sample(fraction=1.0, shuffle=True, seed=0).sort("user_id", maintain_order=True)
    assert same_prefix(rows, truth) == pytest.approx(same_prefix(shuffled, truth), abs=0.015)
    assert followed(rows, truth) == pytest.approx(followed(shuffled, truth), abs=0.005)


def test_with_order_a_shuffle_destroys_it(tmp_path):
    rows, truth = rows_and_truth(tmp_path / "a.parquet", Habits(order=0.7))
    shuffled = rows.sample(fraction=1.0, shuffle=True, seed=0).sort("user_id", maintain_order=True)
    assert followed(rows, truth) > 5 * followed(shuffled, truth)


def test_the_share_of_repeats(tmp_path):
    few, _ = rows_and_truth(tmp_path / "a.parquet", Habits(repetition=0.0), items=4000)
    many, _ = rows_and_truth(tmp_path / "b.parquet", Habits(repetition=0.6), items=4000)
    assert repeated(few) < 0.15  # a long history exhausts the user's taste
    assert 0.35 < repeated(many) < 0.65  # a third of the rows are fixed, since every item must occur


def test_a_user_who_only_repeats_has_one_item(tmp_path):
    rows, _ = rows_and_truth(tmp_path / "a.parquet", Habits(repetition=1.0), items=1, users=5, interactions=50)
    assert rows["item_id"].n_unique() == 1
    rows, _ = rows_and_truth(tmp_path / "b.parquet", Habits(repetition=1.0), items=5, users=50, interactions=500)
    # The five own items each come on top of the first item of their users.
    assert rows.n_unique(["user_id", "item_id"]) <= 55


def test_best_sellers_are_shared_by_all_users(tmp_path):
    taste, _ = rows_and_truth(tmp_path / "a.parquet", Habits(), interactions=3000)
    fashion, _ = rows_and_truth(tmp_path / "b.parquet", Habits(popularity=0.9), interactions=3000)
    shares = [
        rows["item_id"].value_counts()["count"].sort(descending=True)[:8].sum() / rows.height
        for rows in (taste, fashion)
    ]
    assert shares[1] > 2 * shares[0]


def test_successors_go_round_the_items_of_a_prefix():
    generator = np.random.default_rng(0)
    world, table = plant_world(generator, 100, 2, 3)
    successor = plant_habits(generator, world, Habits()).successor
    assert sorted(successor.tolist()) == list(range(100))
    prefixes = {item: set() for item in range(100)}
    for item, node in zip(table["item_id"].to_pylist(), table["c1"].to_pylist(), strict=True):
        prefixes[item].add(node)
    assert all(prefixes[item] & prefixes[int(successor[item])] for item in range(100))
    item, cycle = 0, set()
    while item not in cycle:
        cycle.add(item)
        item = int(successor[item])
    assert item == 0
    assert len(cycle) > 20  # a third of the items


def test_a_single_item_follows_itself():
    generator = np.random.default_rng(0)
    world, _ = plant_world(generator, 1, 1, 2)
    assert plant_habits(generator, world, Habits()).successor.tolist() == [0]


def test_impossible_shares_are_reported():
    with pytest.raises(ConfigError, match=r"order=1\.5: must be at most 1"):
        Habits(order=1.5)
    with pytest.raises(
        ConfigError, match=r"order \+ repetition \+ popularity = 1\.3 is more than 1; lower one of them"
    ):
        Habits(order=0.5, repetition=0.5, popularity=0.3)
    assert Habits(order=0.7, repetition=0.2, popularity=0.1).order == 0.7  # the sum is 1 up to rounding
