"""`pathdex data`: describe, validate, prepare, fetch and generate."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import polars as pl
import pytest

from pathdex.data import DATASETS, Dataset
from tests.cli.conftest import TINY, Pathdex, files_under


def test_describe_prints_the_figures_and_writes_them(pathdex: Pathdex, ratings: Path, tmp_path: Path) -> None:
    columns = ["--user", "who", "--item", "what", "--rating", "stars", "--min-rating", 2, "--min-interactions", 2]
    text = pathdex("data", "describe", ratings, *columns, "--json", tmp_path / "figures.json").stdout
    figures = json.loads((tmp_path / "figures.json").read_text())
    assert figures["interactions"] == 24
    assert "interactions                24" in text
    assert "dropped low rating          16" in text


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "Error: {file} is empty"),
        (b"user_id,item_id,timestamp\n", "Error: {file} has no rows"),
        (b"user_id,thing\n1,2\n", "Error: no item column found in {file}; its columns are: user_id, thing"),
        (b"user_id,item_id\n1,\n2,5\n", "Error: column 'item_id' of {file}: 1 of 2 rows have no item id"),
        (b"user_id,item_id,time\n1,2,NaN\n", "Error: column 'time' of {file}: 1 of 1 rows"),
    ],
)
def test_bad_csv_is_one_clear_error(pathdex: Pathdex, tmp_path: Path, content: bytes, message: str) -> None:
    file = tmp_path / "bad.csv"
    file.write_bytes(content)
    before = files_under(tmp_path)
    assert message.format(file=file) in pathdex("data", "describe", file, fails=1).stderr
    assert files_under(tmp_path) == before


def test_truncated_parquet_is_one_clear_error(pathdex: Pathdex, planted: Path, tmp_path: Path) -> None:
    file = tmp_path / "cut.parquet"
    file.write_bytes(planted.read_bytes()[:-100])
    text = pathdex("data", "describe", file, fails=1).stderr
    assert f"Error: {file} cannot be read" in text
    assert "truncated" in text


def test_a_missing_column_is_named(pathdex: Pathdex, planted: Path) -> None:
    text = pathdex("data", "describe", planted, "--item", "sku", fails=1).stderr
    assert "item='sku'" in text
    assert "its columns are: user_id, item_id, timestamp" in text


def test_validate_lists_all_problems_and_fails(pathdex: Pathdex, tmp_path: Path) -> None:
    file = tmp_path / "bad.csv"
    file.write_text("user,item,timestamp\na,x,1\n,y,2\nb,,soon\n")
    text = pathdex("data", "validate", file, fails=1).stdout
    assert "error D201: column 'user'" in text
    assert "error D201: column 'item'" in text
    assert "error D205: column 'timestamp'" in text
    assert "3 errors, 0 warnings" in text


def test_validate_passes_good_data(pathdex: Pathdex, ratings: Path) -> None:
    text = pathdex("data", "validate", ratings, "--user", "who", "--item", "what").stdout
    assert "info D409: column 'stars' looks like ratings" in text
    assert text.endswith("0 errors, 0 warnings\n")


def test_validate_knows_the_split(pathdex: Pathdex, ratings: Path) -> None:
    command = ["data", "validate", ratings, "--user", "who", "--item", "what", "--test-users", 9]
    assert "error D302: valid_users + test_users=9: only 4 of 4 users" in pathdex(*command, fails=1).stdout


def test_fetch_verifies_a_file_on_disk_and_shows_how_to_train(
    pathdex: Pathdex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = tmp_path / "mine.zip"
    mine.write_bytes(b"archive")
    source = Dataset(
        url="https://example.org/set.zip",
        filename="set.zip",
        md5=hashlib.md5(b"archive").hexdigest(),
        reading={"min_rating": 4, "format": "movielens"},
        valid_users=5,
        test_users=7,
        terms="free",
    )
    monkeypatch.setitem(DATASETS, "set", source)
    target = tmp_path / "data" / "set.zip"
    text = pathdex("data", "fetch", "set", "--file", mine, "--folder", target.parent).stdout
    assert target.read_bytes() == b"archive"
    flags = "--min-rating 4 --format movielens --valid-users 5 --test-users 7"
    assert f"pathdex train {target} --out runs/set {flags}" in text
    mine.write_bytes(b"another")
    target.unlink()
    assert "its md5 is" in pathdex("data", "fetch", "set", "--file", mine, "--folder", target.parent, fails=1).stderr
    assert not target.exists()


def test_an_unknown_name_is_refused_with_a_hint(pathdex: Pathdex, tmp_path: Path) -> None:
    text = pathdex("data", "fetch", "movielens-1n", "--folder", tmp_path, fails=1).stderr
    assert "did you mean 'movielens-1m'?" in text


def test_generate_writes_the_given_sizes(pathdex: Pathdex, tmp_path: Path) -> None:
    target = tmp_path / "new.parquet"
    sizes = ["--users", 20, "--items", 10, "--interactions", 100]
    text = pathdex("data", "generate", target, *sizes).stdout
    assert f"{target}: 100 interactions of 20 users with 10 items" in text
    frame = pl.read_parquet(target)
    assert (frame.height, frame["user_id"].n_unique(), frame["item_id"].n_unique()) == (100, 20, 10)
    before = files_under(tmp_path)
    assert f"Error: {target} exists" in pathdex("data", "generate", target, *sizes, fails=1).stderr
    assert files_under(tmp_path) == before
    pathdex("data", "generate", target, *sizes, "--seed", 1, "--overwrite")
    assert files_under(tmp_path) != before


def test_generate_writes_a_variant_with_changes(pathdex: Pathdex, tmp_path: Path) -> None:
    target = tmp_path / "new.parquet"
    changes = [
        "--users",
        30,
        "--items",
        50,
        "--interactions",
        900,
        "--repetition",
        0.9,
        "--popularity",
        0,
        "--order",
        0,
    ]
    text = pathdex("data", "generate", target, "--variant", "long-histories", *changes).stdout
    assert f"{target}: 900 interactions of 30 users with 50 items" in text
    frame = pl.read_parquet(target)
    assert frame.height == 900
    assert frame.n_unique(["user_id", "item_id"]) < 300  # nine of ten rows repeat an item


def test_generate_plants_habits_without_a_variant(pathdex: Pathdex, tmp_path: Path) -> None:
    target = tmp_path / "new.parquet"
    pathdex("data", "generate", target, "--users", 20, "--items", 10, "--interactions", 100, "--order", 1)
    assert "next_item" in pl.read_ipc(target.with_suffix(".truth.arrow")).columns


def test_generate_refuses_unknown_variants_and_impossible_shares(pathdex: Pathdex, tmp_path: Path) -> None:
    command = ["data", "generate", tmp_path / "x.parquet"]
    assert "did you mean 'sparse'?" in pathdex(*command, "--variant", "sparce", fails=1).stderr
    text = pathdex(*command, "--variant", "strong-order", "--repetition", 0.5, fails=1).stderr
    assert "order + repetition + popularity = 1.2 is more than 1; lower one of them" in text
    assert files_under(tmp_path) == {}


def test_generate_lists_all_problems(pathdex: Pathdex, tmp_path: Path) -> None:
    text = pathdex("data", "generate", tmp_path / "x.parquet", "--users", 0, "--depth", 0, fails=1).stderr
    assert "users=0: must be" in text
    assert "depth=0: must be" in text
    assert files_under(tmp_path) == {}


def test_prepared_data_is_trained_evaluated_and_answered(pathdex: Pathdex, planted: Path, tmp_path: Path) -> None:
    prepared, run = tmp_path / "prepared", tmp_path / "run"
    text = pathdex("data", "prepare", planted, "--out", prepared, "--shard-rows", 100).stdout
    assert "Interactions(60 users, 40 items, 800 interactions)" in text
    assert "interactions                800" in pathdex("data", "describe", prepared).stdout
    flags = ["--valid-users", 5, "--test-users", 6, *TINY]
    pathdex("train", prepared, "--out", run, *flags)
    pathdex("train", planted, "--out", tmp_path / "direct", *flags)
    for name in ("paths.npy", "counts.npy"):
        assert (run / "bundle" / name).read_bytes() == (tmp_path / "direct" / "bundle" / name).read_bytes()
    assert "deep-retrieval" in pathdex("evaluate", run, "--n", 5).stdout
    answers = tmp_path / "answers.parquet"
    pathdex("recommend", run, "--input", prepared, "--output", answers, "--n", 3)
    assert pl.read_parquet(answers)["user"].n_unique() == 60


def test_prepared_data_is_kept_unless_it_is_overwritten(pathdex: Pathdex, planted: Path, tmp_path: Path) -> None:
    command = ["data", "prepare", planted, "--out", tmp_path / "prepared"]
    pathdex(*command)
    assert "exists; choose another path" in pathdex(*command, fails=1).stderr
    pathdex(*command, "--overwrite")


def test_prepare_names_what_is_wrong(pathdex: Pathdex, tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("user,item\n1,\n")
    command = ["data", "prepare", tmp_path / "log.csv", "--out", tmp_path / "prepared"]
    assert "1 of 1 rows have no item id" in pathdex(*command, fails=1).stderr
    assert "shard_rows=0" in pathdex(*command, "--shard-rows", 0, fails=1).stderr
    assert sorted(file.name for file in tmp_path.iterdir()) == ["log.csv"]
