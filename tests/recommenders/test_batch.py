"""Batch recommendation to a file."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from pathdex.data import Interactions, read
from pathdex.errors import QueryError, StorageError
from pathdex.recommenders import batch
from pathdex.recommenders.batch import BatchSummary, known_histories, recommend_file
from pathdex.recommenders.popularity import Popularity


def interactions(rows: list[tuple[str, int]]) -> Interactions:
    return read(pl.DataFrame({"user": [user for user, _ in rows], "item": [item for _, item in rows]}))


@pytest.fixture(scope="module")
def model() -> Popularity:
    """Item 30 is the most popular, then 20, then 10."""
    return Popularity().fit(interactions([("a", 10), ("a", 20), ("b", 20), ("a", 30), ("b", 30), ("c", 30)]))


def test_histories_use_the_codes_of_the_model(model: Popularity) -> None:
    histories, users, unknown = known_histories(model, interactions([("x", 99), ("y", 99), ("y", 30), ("z", 10)]))
    assert users.ids(range(len(users))) == ["y", "z"]
    assert [row.tolist() for row in histories] == [[2], [0]]
    assert unknown == 2


@pytest.mark.parametrize("size", [1, 2, 100])
def test_file_has_the_answers_of_all_users(
    model: Popularity, tmp_path: Path, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch, "BATCH", size)
    seen: list[tuple[int, int]] = []
    data = interactions([("x", 30), ("y", 99), ("z", 10), ("z", 99)])
    summary = recommend_file(model, data, tmp_path / "r.csv", 2, progress=lambda *done: seen.append(done))
    assert summary == BatchSummary(users=2, skipped=1, unknown_items=2, rows=4)
    assert pl.read_csv(tmp_path / "r.csv").rows() == [
        ("x", 1, 20, 2.0),
        ("x", 2, 10, 1.0),
        ("z", 1, 30, 3.0),
        ("z", 2, 20, 2.0),
    ]
    assert seen[-1] == (2, 2)


@pytest.mark.parametrize("ending", ["csv", "parquet", "jsonl"])
def test_details_of_items(model: Popularity, tmp_path: Path, ending: str) -> None:
    table = pl.DataFrame({"item": [20, 30], "title": ["Twenty", "Thirty"], "tags": [["a", "b"], []], "score": [1, 2]})
    described = Popularity.from_bundle(model.to_bundle()).describe_items(table)
    file = tmp_path / f"r.{ending}"
    recommend_file(described, interactions([("x", 30)]), file, 2)
    reader = {"csv": pl.read_csv, "parquet": pl.read_parquet, "jsonl": pl.read_ndjson}[ending]
    tags = ["a|b", None] if ending == "csv" else [["a", "b"], None]
    assert reader(file).rows() == [("x", 1, 20, 2.0, "Twenty", tags[0], 1), ("x", 2, 10, 1.0, None, tags[1], None)]
    assert reader(file).columns == ["user", "rank", "item", "score", "title", "tags", "item_score"]


def test_filters_are_passed_to_the_model(model: Popularity, tmp_path: Path) -> None:
    recommend_file(model, interactions([("x", 30)]), tmp_path / "r.jsonl", 3, exclude_seen=False, deny=[20])
    assert pl.read_ndjson(tmp_path / "r.jsonl")["item"].to_list() == [30, 10]


def test_short_answers_have_fewer_rows(model: Popularity, tmp_path: Path) -> None:
    summary = recommend_file(model, interactions([("x", 30)]), tmp_path / "r.parquet", 9)
    assert summary.rows == 2
    assert pl.read_parquet(tmp_path / "r.parquet").schema == pl.Schema(
        {"user": pl.String, "rank": pl.Int32, "item": pl.Int64, "score": pl.Float32}
    )


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_file_without_rows_has_columns(model: Popularity, tmp_path: Path, ending: str) -> None:
    target = tmp_path / f"r.{ending}"
    assert recommend_file(model, interactions([("x", 99)]), target) == BatchSummary(0, 1, 1, 0)
    frame = pl.read_parquet(target) if ending == "parquet" else pl.read_csv(target)
    assert frame.columns == ["user", "rank", "item", "score"]


def test_invalid_targets_are_rejected_first(model: Popularity, tmp_path: Path) -> None:
    data = interactions([("x", 30)])
    with pytest.raises(QueryError, match=r"the ending '.xml' is not known; write to .parquet, .csv, .jsonl, .ndjson$"):
        recommend_file(model, data, tmp_path / "r.xml")
    (tmp_path / "r.csv").mkdir()
    with pytest.raises(StorageError, match=r"is a folder; name a file in it$"):
        recommend_file(model, data, tmp_path / "r.csv", overwrite=True)


def test_failure_keeps_the_old_file(model: Popularity, tmp_path: Path) -> None:
    target = tmp_path / "r.csv"
    target.write_text("old")
    with pytest.raises(QueryError, match="popularity takes no such option"):
        recommend_file(model, interactions([("x", 30)]), target, overwrite=True, beam=3)
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]
