"""`pathdex recommend`."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import pathdex as package
from tests.cli.conftest import TINY, Pathdex, call, files_under


def items_of(text: str) -> list[str]:
    """The second column of the table of items."""
    rows = [line.split() for line in text.splitlines()]
    return [row[1] for row in rows if len(row) == 3 and row[0].isdecimal()]


def test_one_history_gives_what_the_library_gives(pathdex: Pathdex, run: Path) -> None:
    text = pathdex("recommend", run, "--history", "1,2,3", "--n", 4).stdout
    expected = package.load(run).recommend(["1", "2", "3"], 4)
    assert items_of(text) == [str(one.id) for one in expected]
    assert not {"1", "2", "3"} & set(items_of(text))


def test_titles_and_conditions_without_a_catalogue(pathdex: Pathdex, titled_run: Path, tmp_path: Path) -> None:
    text = pathdex("recommend", titled_run, "--history", "1,2", "--n", 3, "--where", "year=..1963").stdout
    assert "For 1 (Item 1), 2 (Item 2)" in text
    assert "Item 3" in text
    assert "1963" in text
    flags = ["--history", "1,2", "--n", 3, "--where", "year=..1963", "--explain", "--json", "-"]
    [item] = json.loads(pathdex("recommend", titled_run, *flags).stdout)["items"]
    assert item["details"] == {"genres": "a|b", "year": 1963}
    assert item["explanation"]["title"] == "Item 3"
    (tmp_path / "users.csv").write_text("user,item\nx,1\n")
    pathdex("recommend", titled_run, "--input", tmp_path / "users.csv", "--output", tmp_path / "out.csv")
    assert pl.read_csv(tmp_path / "out.csv").columns == ["user", "rank", "item", "score", "title", "genres", "year"]


def test_quiet_prints_results_only(pathdex: Pathdex, run: Path, histories: Path, tmp_path: Path) -> None:
    command = ["recommend", run, "--input", histories, "--user", "who", "--output", tmp_path / "out.csv"]
    assert "read like the training data" in pathdex(*command).stderr
    assert pathdex(*command, "--overwrite", "--quiet").stderr == ""


def test_filters(pathdex: Pathdex, run: Path) -> None:
    best = items_of(pathdex("recommend", run, "--history", "1,2", "--n", 3).stdout)
    denied = pathdex("recommend", run, "--history", "1,2", "--n", 3, "--deny", best[0]).stdout
    assert best[0] not in items_of(denied)
    allowed = pathdex("recommend", run, "--history", "1,2", "--n", 3, "--allow", "1,7,9", "--candidates", 40).stdout
    assert set(items_of(allowed)) == {"7", "9"}
    kept = pathdex("recommend", run, "--history", "1,2", "--allow", "1,7,9", "--keep-seen", "--beam", 16).stdout
    assert set(items_of(kept)) == {"1", "7", "9"}


@pytest.fixture
def catalogue(tmp_path: Path) -> Path:
    """Of the 40 items, every fifth is on shelf a; prices equal the ids."""
    file = tmp_path / "shop.csv"
    lines = [f"{item},{'bcdea'[(item - 1) % 5]},{item},{'true' if item < 20 else 'false'}" for item in range(1, 40)]
    file.write_text("\n".join(["item_id,shelf,price,open", *lines, "999,a,1,true"]) + "\n")
    return file


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        (["shelf=a"], {5, 10, 15, 20, 25, 30, 35}),
        (["shelf=a|b", "price=4..11"], {5, 6, 10, 11}),
        (["shelf= a | b ", "price = ..6"], {1, 5, 6}),
        (["price=38.."], {38, 39}),
        (["shelf=a", "open=true"], {5, 10, 15}),
        (["price=3..3"], {3}),
        (["shelf=nowhere"], set()),
    ],
)
def test_conditions_on_a_catalogue(
    pathdex: Pathdex, run: Path, catalogue: Path, where: list[str], expected: set[int]
) -> None:
    flags = [flag for one in where for flag in ("--where", one)]
    command = ["recommend", run, "--history", "2,7", "--n", 40, "--keep-seen", "--catalogue", catalogue, *flags]
    assert set(items_of(pathdex(*command).stdout)) == {str(item) for item in expected}


def test_conditions_on_cells_with_several_values(pathdex: Pathdex, run: Path, tmp_path: Path) -> None:
    file = tmp_path / "films.csv"
    file.write_text('item_id,genres,tags\n1,Drama|War,"a,b"\n2,Drama,b\n3,War,c\n')
    command = ["recommend", run, "--history", "9", "--n", 40, "--catalogue", file]
    assert set(items_of(pathdex(*command, "--where", "genres=War").stdout)) == {"1", "3"}
    assert set(items_of(pathdex(*command, "--where", "genres=War|Drama").stdout)) == {"1", "2", "3"}
    assert set(items_of(pathdex(*command, "--where", "tags=b", "--lists", "tags=,").stdout)) == {"1", "2"}
    assert set(items_of(pathdex(*command, "--where", "genres=War", "--lists", "genres=").stdout)) == {"3"}
    wrong = pathdex(*command, "--where", "genres=War", "--lists", "genres", fails=1).stderr
    assert "--lists='genres': must be COLUMN=SEPARATOR; write it as 'genres=,'" in wrong


def test_an_invalid_condition_is_refused(pathdex: Pathdex, run: Path, catalogue: Path) -> None:
    command = ["recommend", run, "--history", "2", "--catalogue", catalogue, "--where", "price=7|x12"]
    assert "where['price']=['7', 'x12']: the column holds whole numbers" in pathdex(*command, fails=1).stderr


def test_conditions_for_a_file_of_users(
    pathdex: Pathdex, run: Path, histories: Path, catalogue: Path, tmp_path: Path
) -> None:
    target = tmp_path / "recs.csv"
    command = ["recommend", run, "--input", histories, "--output", target, "--user", "who", "--n", 3]
    pathdex(*command, "--catalogue", catalogue, "--where", "price=11..12")
    assert set(pl.read_csv(target)["item"].to_list()) == {11, 12}


def test_the_item_column_of_a_catalogue_can_be_named(pathdex: Pathdex, run: Path, tmp_path: Path) -> None:
    file = tmp_path / "shop.jsonl"
    file.write_text('{"thing": 3, "tags": ["a", "b"]}\n{"thing": 4, "tags": ["b"]}\n')
    command = ["recommend", run, "--history", "1", "--catalogue", file, "--where", "tags=a"]
    assert "no item column found" in pathdex(*command, fails=1).stderr
    assert items_of(pathdex(*command, "--catalogue-item", "thing").stdout) == ["3"]


def test_explain_shows_the_paths(pathdex: Pathdex, run: Path) -> None:
    text = pathdex("recommend", run, "--history", "1,2", "--n", 2, "--explain").stdout
    assert text.count("  path (") == 2 * 2
    assert "beam rank" in text


def test_unknown_items_are_left_out_with_a_warning(pathdex: Pathdex, run: Path) -> None:
    outcome = pathdex("recommend", run, "--history", "1,nothing", "--n", 2)
    assert outcome.stderr == "Warning: left out 1 history item that the catalogue does not have\n"
    assert len(items_of(outcome.stdout)) == 2


def test_a_history_of_unknown_items_only_is_an_error(pathdex: Pathdex, run: Path) -> None:
    text = pathdex("recommend", run, "--history", "x,y", fails=1).stderr
    assert "history 0 ('x', 'y') has no item of the catalogue of 40 items" in text


@pytest.fixture
def histories(tmp_path: Path) -> Path:
    file = tmp_path / "users.csv"
    file.write_text("who,item_id,timestamp\nann,3,2\nann,1,1\nbob,999,1\ncat,5,1\ncat,998,2\n")
    return file


@pytest.mark.parametrize("ending", ["parquet", "csv", "jsonl"])
def test_a_file_of_users(pathdex: Pathdex, run: Path, histories: Path, tmp_path: Path, ending: str) -> None:
    target = tmp_path / f"recs.{ending}"
    command = ["recommend", run, "--input", histories, "--output", target, "--user", "who", "--n", 3]
    text = pathdex(*command, "--candidates", 20).stdout
    readers = {"parquet": pl.read_parquet, "csv": pl.read_csv, "jsonl": pl.read_ndjson}
    frame = readers[ending](target)
    assert frame.columns == ["user", "rank", "item", "score"]
    assert frame["user"].to_list() == ["ann"] * 3 + ["cat"] * 3
    assert frame["rank"].to_list() == [1, 2, 3] * 2
    model = package.load(run)
    assert frame["item"].to_list() == [
        one.id for history in ([1, 3], [5]) for one in model.recommend(history, 3, candidates=20)
    ]
    assert f"{target}: 6 recommendations for 2 users" in text
    assert "left out 2 history items that the catalogue does not have" in text
    assert "skipped 1 user: none of their items is in the catalogue" in text


def test_an_existing_output_is_left_alone(pathdex: Pathdex, run: Path, histories: Path, tmp_path: Path) -> None:
    target = tmp_path / "recs.csv"
    target.write_text("mine")
    before = files_under(tmp_path)
    command = ["recommend", run, "--input", histories, "--output", target, "--user", "who", "--n", 3]
    text = pathdex(*command, fails=1).stderr
    assert text == f"Error: {target} exists; choose another file, or replace it with --overwrite (overwrite=True)\n"
    assert files_under(tmp_path) == before
    pathdex(*command, "--overwrite")
    assert pl.read_csv(target).height == 6


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ([], "pass either --history, or both --input and --output"),
        (["--history", "1", "--input", "x.csv"], "pass either --history, or both --input and --output"),
        (["--input", "x.csv"], "pass either --history, or both --input and --output"),
        (["--input", "x.csv", "--output", "y.csv", "--explain"], "--explain works with --history only; leave it out"),
        (["--input", "x.csv", "--output", "y.txt"], "the ending '.txt' is not known; write to .parquet, .csv, .jsonl"),
        (["--input", "nowhere.csv", "--output", "y.csv"], "nowhere.csv does not exist"),
        (["--history", "1", "--n", 0], "n=0: must be"),
        (["--history", "1", "--beam", 0], "beam=0: must be"),
        (["--history", "1", "--n", 5, "--candidates", 2], "candidates=2: must be at least n=5"),
        (["--history", ","], "--history=',': must name at least one"),
        (["--history", "1", "--where", "a=b"], "--where needs a table of items; pass --catalogue FILE, or train with"),
        (["--history", "1", "--catalogue", "x.csv"], "pass --catalogue together with --where, or neither"),
        (
            ["--history", "1", "--catalogue", "x.csv", "--where", "a"],
            "--where='a': must be COLUMN=VALUE; write 'shelf=a|b'",
        ),
        (["--history", "1", "--catalogue", "x.csv", "--where", "=b"], "--where='=b': must be COLUMN=VALUE"),
        (["--history", "1", "--catalogue", "x.csv", "--where", "a=|"], "--where='a=|': must be COLUMN=VALUE"),
        (
            ["--history", "1", "--catalogue", "x.csv", "--where", "a=b", "--where", "a=c"],
            "--where='a=c': 'a' is given twice; write all its values as 'a=a|b'",
        ),
        (["--history", "1", "--catalogue", "nowhere.csv", "--where", "a=b"], "nowhere.csv does not exist"),
    ],
)
def test_bad_options(
    pathdex: Pathdex, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flags: list[Any], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert message in pathdex("recommend", run, *flags, fails=1).stderr
    assert list(tmp_path.iterdir()) == []


def test_a_bundle_of_any_estimator(pathdex: Pathdex, planted: Path, tmp_path: Path) -> None:
    saved = package.Popularity().fit(package.read(planted)).save(tmp_path / "popular")
    assert len(items_of(pathdex("recommend", saved, "--history", "1", "--n", 3).stdout)) == 3
    text = pathdex("recommend", saved, "--history", "1", "--beam", 3, fails=1).stderr
    assert "beam=3: popularity takes no such option" in text
    text = pathdex("recommend", saved, "--history", "1", "--explain", fails=1).stderr
    assert "a popularity model cannot explain its answers; use a deep-retrieval model" in text


def test_an_unfinished_run_says_how_to_resume_it(pathdex: Pathdex, run: Path, tmp_path: Path) -> None:
    copy = tmp_path / "unfinished"
    shutil.copytree(run, copy, ignore=shutil.ignore_patterns("bundle"))
    text = pathdex("recommend", copy, "--history", "1", fails=1).stderr
    assert text == f"Error: {copy} is not finished; continue it with: pathdex train --out {copy} --resume\n"


class TestDamagedBundles:
    """Each gives one clear error and is not changed."""

    @pytest.fixture
    def bundle(self, run: Path, tmp_path: Path) -> Path:
        return Path(shutil.copytree(run / "bundle", tmp_path / "bundle"))

    def refused(self, pathdex: Pathdex, bundle: Path) -> str:
        before = files_under(bundle)
        text = pathdex("recommend", bundle, "--history", "1", fails=1).stderr
        assert files_under(bundle) == before
        return text

    def test_truncated(self, pathdex: Pathdex, bundle: Path) -> None:
        file = bundle / "weights.safetensors"
        file.write_bytes(file.read_bytes()[:-10])
        assert "is damaged: weights.safetensors has" in self.refused(pathdex, bundle)

    def test_wrong_checksum(self, pathdex: Pathdex, bundle: Path) -> None:
        file = bundle / "paths.npy"
        content = bytearray(file.read_bytes())
        content[-1] ^= 1
        file.write_bytes(content)
        assert "is damaged: the checksum of paths.npy is wrong" in self.refused(pathdex, bundle)

    def test_newer_schema(self, pathdex: Pathdex, bundle: Path) -> None:
        file = bundle / "manifest.json"
        file.write_text(json.dumps({**json.loads(file.read_text()), "schema": 99}))
        assert "has schema 99, newer than this Pathdex reads" in self.refused(pathdex, bundle)

    def test_damaged_manifest(self, pathdex: Pathdex, bundle: Path) -> None:
        (bundle / "manifest.json").write_text("{")
        assert "is damaged" in self.refused(pathdex, bundle)

    def test_a_missing_file(self, pathdex: Pathdex, bundle: Path) -> None:
        (bundle / "counts.npy").unlink()
        assert "is incomplete: counts.npy is missing" in self.refused(pathdex, bundle)

    def test_not_a_bundle(self, pathdex: Pathdex, tmp_path: Path) -> None:
        assert "is not a Pathdex bundle" in self.refused(pathdex, tmp_path)


@pytest.fixture(scope="module")
def liking(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A run that was trained on ratings of at least 4 in uncommon columns, and its file."""
    folder = tmp_path_factory.mktemp("liking")
    rows = [f"u{n % 12};i{(n * 7) % 11};{5 if n % 3 else 1};{n}" for n in range(240)]
    file = folder / "ratings.csv"
    file.write_text("\n".join(["who;what;stars;at", *rows]) + "\n")
    named = ["--user", "who", "--item", "what", "--time", "at", "--min-rating", 4, "--min-interactions", 2]
    call("train", file, "--out", folder / "run", *TINY, *named, "--valid-users", 1, "--test-users", 1)
    return folder / "run", file


def test_a_file_is_read_like_the_training_data(pathdex: Pathdex, liking: tuple[Path, Path], tmp_path: Path) -> None:
    run, file = liking
    outcome = pathdex("recommend", run, "--input", file, "--output", tmp_path / "recs.parquet", "--n", 20)
    said = "read like the training data: user='who', item='what', time='at', rating='stars', min_rating=4.0"
    assert said in outcome.stderr
    data = package.read(file, user="who", item="what", time="at", min_rating=4)
    recs = pl.read_parquet(tmp_path / "recs.parquet")
    liked = set(data.items.ids(data.sequences[0]))
    # Items that were seen and not liked may be recommended, liked ones not.
    assert not liked & set(recs.filter(pl.col("user") == data.users.id(0))["item"])


def test_options_and_plain_override_what_is_remembered(
    pathdex: Pathdex, liking: tuple[Path, Path], tmp_path: Path
) -> None:
    run, file = liking
    other = pathdex("recommend", run, "--input", file, "--output", tmp_path / "a.csv", "--min-rating", 1)
    assert "min_rating" not in other.stderr
    command = ["recommend", run, "--input", file, "--output", tmp_path / "b.csv", "--plain"]
    assert "no user column found" in pathdex(*command, fails=1).stderr
    plain = pathdex(*command, "--user", "who", "--item", "what")
    assert "training data" not in plain.stderr


def test_a_saved_model_remembers_too(liking: tuple[Path, Path], tmp_path: Path) -> None:
    run, file = liking
    same = package.load(package.load(run).save(tmp_path / "saved"))
    assert same.reading is not None
    assert package.read(file, like=same.reading).notes["dropped_low_rating"] == 80
