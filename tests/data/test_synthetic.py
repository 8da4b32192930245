"""Synthetic interactions: exact sizes, known structure, reproducible."""

import errno
import hashlib

import numpy as np
import polars as pl
import pytest

from pathdex.data import generate, read, synthetic, truth_file
from pathdex.errors import ConfigError, StorageError

SIZES = {"users": 40, "items": 300, "interactions": 2000}


def synthetic_rows(path):
    return pl.read_parquet(path)


@pytest.mark.parametrize(
    "sizes",
    [
        SIZES,
        {"users": 1, "items": 1, "interactions": 1},
        {"users": 7, "items": 100, "interactions": 100},
        {"users": 50, "items": 3, "interactions": 50},
        {"users": 50, "items": 3, "interactions": 1234},
    ],
)
def test_sizes_are_exact_and_every_user_and_item_occurs(tmp_path, sizes):
    path = generate(tmp_path / "data.parquet", **sizes, chunk=97)
    rows = synthetic_rows(path)
    assert rows.height == sizes["interactions"]
    assert rows["user_id"].unique().sort().to_list() == list(range(sizes["users"]))
    assert rows["item_id"].unique().sort().to_list() == list(range(sizes["items"]))
    assert rows.schema == {"user_id": pl.Int64, "item_id": pl.Int64, "timestamp": pl.Int64}
    assert read(path).num_interactions == sizes["interactions"]


def test_every_user_has_ten_interactions_if_possible(tmp_path):
    path = generate(tmp_path / "data.parquet", users=50, items=100, interactions=1000)
    assert read(path, min_interactions=10).num_users == 50


def test_the_rows_of_a_user_are_in_time_order(tmp_path):
    rows = synthetic_rows(generate(tmp_path / "data.parquet", **SIZES))
    gaps = rows.select(pl.col("timestamp").diff().over("user_id")).to_series().drop_nulls()
    assert gaps.min() > 0


def test_the_seed_determines_the_data(tmp_path):
    one, same, other = (
        generate(tmp_path / f"{name}.parquet", **SIZES, seed=seed) for name, seed in (("a", 1), ("b", 1), ("c", 2))
    )
    assert one.read_bytes() == same.read_bytes()
    assert truth_file(one).read_bytes() == truth_file(same).read_bytes()
    assert not synthetic_rows(one).equals(synthetic_rows(other))


@pytest.mark.parametrize(
    ("options", "digests"),
    [
        (SIZES, ["949bb89e9ec4a958", "865cba74faeba9c4"]),
        (
            {"users": 500, "items": 120, "interactions": 9000, "depth": 2, "nodes": 6, "seed": 3, "chunk": 1000},
            ["8dd0718c1be1fc57", "d9993877e131f6ec"],
        ),
    ],
)
def test_the_data_of_a_seed_is_the_same_in_every_version(tmp_path, options, digests):
    path = generate(tmp_path / "data.parquet", **options)
    frames = synthetic_rows(path), pl.read_ipc(truth_file(path))
    assert [hashlib.sha256(frame.to_numpy().tobytes()).hexdigest()[:16] for frame in frames] == digests


def test_the_truth_lists_one_or_two_paths_per_item(tmp_path):
    path = generate(tmp_path / "data.parquet", **SIZES, depth=2, nodes=5)
    truth = pl.read_ipc(truth_file(path))
    assert truth.columns == ["item_id", "c1", "c2"]
    assert truth.select(pl.col("c1", "c2").min()).row(0) == (0, 0)
    assert truth.select(pl.col("c1", "c2").max()).row(0) == (4, 4)
    assert truth.n_unique() == truth.height
    counts = truth.group_by("item_id").len()["len"]
    assert len(counts) == SIZES["items"]
    assert set(counts) == {1, 2}
    assert 0.1 < (counts == 2).mean() < 0.3


def test_users_stay_near_their_prefixes(tmp_path):
    path = generate(tmp_path / "data.parquet", users=200, items=2000, interactions=6000, depth=2, nodes=20)
    first = pl.read_ipc(truth_file(path)).group_by("item_id").agg(pl.col("c1"))
    rows = synthetic_rows(path).join(first, on="item_id", maintain_order="left")
    following = rows.with_columns(pl.col("c1").shift(-1).over("user_id").alias("next")).drop_nulls("next")
    shared = following.select(pl.col("c1").list.set_intersection("next").list.len() > 0).to_series().mean()
    assert shared > 0.5  # by chance it would be about 1 in 20


def test_popularity_has_a_long_tail(tmp_path):
    path = generate(tmp_path / "data.parquet", users=500, items=2000, interactions=20_000)
    counts = np.sort(read(path).item_counts())[::-1]
    assert counts[:200].sum() > 0.25 * counts.sum()
    assert np.median(counts) < counts.mean()


def test_progress_reaches_the_total(tmp_path):
    seen = []
    generate(tmp_path / "data.parquet", **SIZES, chunk=500, progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (2000, 2000)
    assert len(seen) > 1


def test_an_existing_file_is_replaced_only_with_overwrite(tmp_path):
    path = generate(tmp_path / "data.parquet", **SIZES)
    before = path.read_bytes()
    with pytest.raises(StorageError, match=r"data\.parquet exists; choose another path, .* overwrite=True"):
        generate(path, **SIZES, seed=5)
    assert path.read_bytes() == before
    generate(path, **SIZES, seed=5, overwrite=True)
    assert path.read_bytes() != before


def test_a_full_disk_leaves_the_old_files(tmp_path, monkeypatch):
    path = generate(tmp_path / "data.parquet", **SIZES)
    before = path.read_bytes(), truth_file(path).read_bytes()

    class FullDisk(synthetic.pq.ParquetWriter):
        def write_table(self, *args, **options):
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(synthetic.pq, "ParquetWriter", FullDisk)
    with pytest.raises(StorageError, match=r"cannot write .*No space left on device; .* nothing was changed"):
        generate(path, **SIZES, seed=5, overwrite=True)
    assert (path.read_bytes(), truth_file(path).read_bytes()) == before
    assert sorted(file.name for file in tmp_path.iterdir()) == ["data.parquet", "data.truth.arrow"]


def test_a_folder_that_cannot_be_created(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match=r"cannot write .*Not a directory; free space or choose another path"):
        generate(tmp_path / "file" / "data" / "data.parquet", **SIZES)


def test_all_invalid_sizes_are_reported_together():
    with pytest.raises(ConfigError) as caught:
        generate("x.parquet", users=0, items=1.5, interactions=True, depth=0, nodes=1, chunk=0, seed=-1)
    assert tuple(map(str, caught.value.problems)) == (
        "users=0: must be a whole number of at least 1",
        "items=1.5: must be a whole number of at least 1",
        "interactions=True: must be a whole number of at least 1",
        "depth=0: must be a whole number of at least 1",
        "chunk=0: must be a whole number of at least 1",
        "nodes=1: must be a whole number of at least 2",
        "seed=-1: must be a whole number of at least 0",
    )


def test_inconsistent_sizes_are_errors():
    with pytest.raises(ConfigError, match="interactions=5: must be at least users=3 and items=9, so that each occurs"):
        generate("x.parquet", users=3, items=9, interactions=5)
    with pytest.raises(ConfigError, match=r"depth=30: 10\^30 paths are more than 2\^62; lower depth or nodes"):
        generate("x.parquet", users=3, items=9, interactions=9, nodes=10, depth=30)


def test_a_suffix_other_than_parquet_is_an_error(tmp_path):
    with pytest.raises(StorageError, match=r"data\.csv: rows are written as Parquet; choose a name that ends in"):
        generate(tmp_path / "data.csv", **SIZES)
    assert not list(tmp_path.iterdir())
