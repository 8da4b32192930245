"""Prepared data is what `read` gives for the same source, however little fits in memory."""

from __future__ import annotations

import gzip
import itertools
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pathdex.data import Interactions, describe, load_interactions, preparation, prepare, read, split_users, user_ranges
from pathdex.errors import DataError, StorageError

events = st.lists(
    st.tuples(st.integers(0, 12), st.integers(0, 9), st.integers(0, 3), st.integers(1, 5)), min_size=1, max_size=60
)
filters = st.fixed_dictionaries(
    {},
    optional={
        "min_rating": st.integers(1, 4),
        "min_interactions": st.integers(1, 4),
        "min_item_interactions": st.integers(1, 4),
    },
)


def log(rows: int = 600, *, text: bool = True) -> pl.DataFrame:
    """Interactions in the order of time, with many ties; one user has a third of them."""
    generator = np.random.default_rng(0)
    users = np.where(generator.random(rows) < 1 / 3, 7, generator.integers(0, 50, rows))
    items = generator.integers(0, 40, rows)
    named = [f"ü{user}" for user in users] if text else users
    columns = {"user": named, "item": items, "time": np.arange(rows) // 9, "rating": items % 5 + 1}
    return pl.DataFrame(columns)


def assert_same(found: Interactions, expected: Interactions) -> None:
    assert found.sequences.values.tolist() == expected.sequences.values.tolist()
    assert found.sequences.offsets.tolist() == expected.sequences.offsets.tolist()
    assert found.sequences.values.dtype == expected.sequences.values.dtype
    for one, other in ((found.users, expected.users), (found.items, expected.items)):
        assert (one.kind, one.ids(range(len(one)))) == (other.kind, other.ids(range(len(other))))
    if expected.times is None:
        assert found.times is None
    else:
        assert found.times.tolist() == expected.times.tolist()
    assert (found.notes, found.reading, found.ordered) == (expected.notes, expected.reading, expected.ordered)


def outcome(call: Callable[[], Interactions]) -> Interactions | str:
    """What a call returns, or the text of its error."""
    try:
        return call()
    except DataError as error:
        return str(error)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("prepared")


@settings(max_examples=40, deadline=None)
@given(events, filters, st.booleans(), st.booleans(), st.integers(1, 40), st.integers(2, 5))
def test_prepared_data_is_what_read_gives(folder, rows, options, text, timed, shard_rows, fan_out):
    frame = pl.DataFrame(rows, schema=["user", "item", "time", "rating"], orient="row")
    if text:
        frame = frame.with_columns(pl.col("user", "item").cast(pl.String).name.keep().str.replace("^", "a"))
    frame = frame if timed else frame.drop("time")
    frame.write_csv(folder / "log.csv")
    with pytest.MonkeyPatch.context() as patch:
        # So few ranges at a time, and so small a sample, that most shards come from ranges that are divided again.
        patch.setattr(preparation, "FAN_OUT", fan_out)
        patch.setattr(user_ranges, "FAN_OUT", fan_out)
        patch.setattr(user_ranges, "SAMPLED_USERS", 8)
        expected = outcome(lambda: read(folder / "log.csv", **options))
        chosen = {"overwrite": True, "shard_rows": shard_rows, **options}
        found = outcome(lambda: read(prepare(folder / "log.csv", folder / "out", **chosen)))
    if isinstance(expected, str):
        assert found == expected
    else:
        assert_same(found, expected)


@pytest.mark.parametrize("kind", ["csv.gz", "csv.xz", "jsonl.gz", "parquet", "arrow", "utf-16", "pattern", "list"])
def test_every_kind_of_source(tmp_path, kind):
    frame, source = log(), tmp_path / f"log.{kind}"
    options = {}
    if kind.startswith("csv"):
        with (gzip.open if kind.endswith("gz") else __import__("lzma").open)(source, "wb") as file:
            file.write(frame.write_csv().encode())
    elif kind == "jsonl.gz":
        source.write_bytes(gzip.compress(frame.write_ndjson().encode()))
    elif kind == "utf-16":
        source, options = tmp_path / "log.csv", {"encoding": "utf-16"}
        source.write_text(frame.write_csv(), encoding="utf-16")
    elif kind in ("pattern", "list"):
        files = [tmp_path / f"{number}.csv" for number in range(3)]
        for number, file in enumerate(files):
            frame[200 * number : 200 * (number + 1)].write_csv(file)
        source = files if kind == "list" else tmp_path / "[0-9].csv"
    else:
        (frame.write_parquet if kind == "parquet" else frame.write_ipc)(source)
    prepare(source, tmp_path / "out", shard_rows=100, **options)
    assert_same(read(tmp_path / "out"), read(source, **options))


def test_hive_partitions(tmp_path):
    for (day,), rows in log().with_columns(day=pl.col("time") % 3).partition_by("day", as_dict=True).items():
        (tmp_path / "in" / f"day={day}").mkdir(parents=True)
        rows.drop("day").write_parquet(tmp_path / "in" / f"day={day}" / "part.parquet")
    prepare(tmp_path / "in", tmp_path / "out", shard_rows=100)
    assert_same(read(tmp_path / "out"), read(tmp_path / "in"))


def test_a_movielens_archive(tmp_path):
    folder = tmp_path / "ml"
    folder.mkdir()
    rows = log(text=False).select("user", "item", "rating", "time").rows()
    (folder / "ratings.dat").write_text("".join("::".join(map(str, row)) + "\n" for row in rows))
    prepare(folder, tmp_path / "out", min_rating=3, shard_rows=100)
    assert_same(read(tmp_path / "out"), read(folder, min_rating=3))


def test_a_frame(tmp_path):
    prepare(log(), tmp_path / "out", shard_rows=100)
    assert_same(read(tmp_path / "out"), read(log()))


def test_shards_are_ranges_of_users(tmp_path):
    prepare(log(), tmp_path / "out", shard_rows=100)
    data, begins = read(tmp_path / "out"), np.load(tmp_path / "out" / "shards.npy")
    assert (begins[0], begins[-1]) == (0, data.num_users)
    assert len(begins) > 4
    parts = [data.user_range(begin, end) for begin, end in itertools.pairwise(begins)]
    # The rows of one user stay together.
    assert max(part.num_interactions - part.sequences.lengths.max() for part in parts) <= 200
    assert [row.tolist() for part in parts for row in part.sequences] == [row.tolist() for row in data.sequences]
    ids = [part.users.ids(range(part.num_users)) for part in parts]
    assert list(itertools.chain.from_iterable(ids)) == data.users.ids(range(data.num_users))
    assert np.concatenate([part.times for part in parts]).tolist() == data.times.tolist()


def test_the_arrays_are_mapped(tmp_path):
    prepare(log(), tmp_path / "out")
    data = read(tmp_path / "out")
    assert isinstance(data.sequences.values, np.memmap)
    assert isinstance(data.times, np.memmap)
    assert not np.shares_memory(data.sequences.values, np.load(tmp_path / "out" / "values.npy"))


def test_whatever_reads_takes_prepared_data(tmp_path):
    prepare(log(), tmp_path / "out", min_interactions=3)
    assert describe(read(tmp_path / "out")) == describe(read(log(), min_interactions=3))
    split = split_users(load_interactions(tmp_path / "out"), test_users=5, seed=1)
    expected = split_users(read(log(), min_interactions=3), test_users=5, seed=1)
    assert split.train.sequences.values.tolist() == expected.train.sequences.values.tolist()
    assert split.test.truth.values.tolist() == expected.test.truth.values.tolist()


def test_prepared_data_takes_no_options_again(tmp_path):
    prepare(log(), tmp_path / "out")
    with pytest.raises(DataError, match=r"min_rating=4: .* is prepared data, which is read as it is"):
        read(tmp_path / "out", min_rating=4)


def test_a_remembered_reading_does_not_apply_to_prepared_data(tmp_path):
    prepare(log(), tmp_path / "out")
    expected = read(tmp_path / "out")
    assert_same(read(tmp_path / "out", like=read(log(), min_rating=4).reading), expected)


def test_an_existing_folder_is_kept(tmp_path):
    prepare(log(), tmp_path / "out")
    before = (tmp_path / "out" / "manifest.json").read_bytes()
    with pytest.raises(StorageError, match=r"out exists; choose another path"):
        prepare(log(300), tmp_path / "out")
    assert (tmp_path / "out" / "manifest.json").read_bytes() == before
    prepare(log(300), tmp_path / "out", overwrite=True)
    assert read(tmp_path / "out").num_interactions == 300


def test_another_folder_is_not_replaced(tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "note.txt").write_text("mine")
    with pytest.raises(StorageError, match="is not a folder of interactions, so it is not overwritten"):
        prepare(log(), tmp_path / "out", overwrite=True)
    assert (tmp_path / "out" / "note.txt").read_text() == "mine"


@pytest.mark.parametrize("inner", ["", "out"])
def test_the_source_is_not_written_to(tmp_path, inner):
    (tmp_path / "in").mkdir()
    log().write_csv(tmp_path / "in" / "log.csv")
    with pytest.raises(DataError, match="is the source, or in it or around it"):
        prepare(tmp_path / "in", tmp_path / "in" / inner, overwrite=True)
    assert [file.name for file in (tmp_path / "in").iterdir()] == ["log.csv"]


def test_bad_rows_are_the_errors_of_read(tmp_path):
    (tmp_path / "log.csv").write_text("user,item,time\n1,2,3\n1,,4\n")
    with pytest.raises(DataError) as expected:
        read(tmp_path / "log.csv")
    with pytest.raises(DataError) as raised:
        prepare(tmp_path / "log.csv", tmp_path / "out")
    assert str(raised.value) == str(expected.value)
    assert [file.name for file in tmp_path.iterdir()] == ["log.csv"]


@pytest.mark.parametrize("place", ["divide", "join_shards"])
def test_a_full_disk_leaves_nothing(tmp_path, monkeypatch, place):
    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(preparation, place, fail)
    with pytest.raises(StorageError, match=r"cannot write .*out: No space left on device; free space or choose"):
        prepare(log(), tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_a_run_after_an_interruption(tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(preparation, "join_shards", lambda *_: 1 / 0)
        patch.setattr("pathdex.storage.staging.shutil.rmtree", lambda *_, **__: None)  # As if the process was killed.
        with pytest.raises(ZeroDivisionError):
            prepare(log(), tmp_path / "out")
    assert [file.suffix for file in tmp_path.iterdir()] == [".staging"]
    prepare(log(), tmp_path / "out")
    assert [file.name for file in tmp_path.iterdir()] == ["out"]
    assert_same(read(tmp_path / "out"), read(log()))


def test_damaged_prepared_data_is_refused(tmp_path):
    prepare(log(), tmp_path / "out")
    with (tmp_path / "out" / "values.npy").open("r+b") as file:
        file.seek(200)
        file.write(b"\x00\x01\x02\x03")
    with pytest.raises(DataError, match=r"the checksum of values\.npy is wrong"):
        read(tmp_path / "out")


def test_the_manifest_names_every_file(tmp_path):
    prepare(log(), tmp_path / "out")
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert sorted(manifest["files"]) == sorted({file.name for file in (tmp_path / "out").iterdir()} - {"manifest.json"})
    assert (manifest["format"], manifest["ordered"]) == ("pathdex-interactions", True)


def test_progress_counts_rows_that_are_divided_and_sorted(tmp_path):
    calls: list[tuple[int, int | None]] = []
    prepare(log(), tmp_path / "out", shard_rows=100, progress=lambda *call: calls.append(call))
    assert calls == sorted(calls)
    assert calls[-1] == (1200, 1200)


@pytest.mark.parametrize("value", [0, -1, 2.5, True])
def test_shards_need_rows(tmp_path, value):
    with pytest.raises(DataError, match="shard_rows="):
        prepare(log(), tmp_path / "out", shard_rows=value)
