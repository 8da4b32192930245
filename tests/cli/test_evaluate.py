"""`pathdex evaluate`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Pathdex, files_under

KEYS = {
    "method",
    "beam",
    "candidates",
    "filter_seen",
    "precision",
    "recall",
    "distinct_recall",
    "f_measure",
    "ndcg",
    "hit_rate",
    "coverage",
}


def test_the_json_has_every_method_with_each_set_of_options(pathdex: Pathdex, run: Path, tmp_path: Path) -> None:
    figures, losses = tmp_path / "figures.json", tmp_path / "losses.json"
    flags = ["--n", 3, "--candidates", "5,20", "--beam", "1,4"]
    text = pathdex("evaluate", run, *flags, "--json", figures, "--loss-json", losses).stdout
    content = json.loads(figures.read_text())
    assert set(content) == {"n", "users", "results"}
    assert (content["n"], content["users"]) == (3, 6)
    assert all(set(row) >= KEYS for row in content["results"])
    found = [(row["method"], row["beam"], row["candidate_budget"], row["filter_seen"]) for row in content["results"]]
    assert found == [
        (method, beam, candidates, seen)
        for method, beam, candidates in [
            ("deep-retrieval", 1, None),
            ("deep-retrieval", 4, None),
            ("deep-retrieval", None, 5),
            ("deep-retrieval", None, 20),
            ("brute-force", None, None),
            ("item-cf", None, None),
            ("popularity", None, None),
        ]
        for seen in (True, False)
    ]
    for row in content["results"]:
        assert row["candidate_budget"] is None or row["max_candidates"] <= row["candidate_budget"]
    assert "seen items removed" in text
    assert "seen items kept" in text
    assert "Retrieval loss" in text
    assert len(json.loads(losses.read_text())["losses"]) == 8


def test_the_default_candidates_follow_n(pathdex: Pathdex, run: Path, tmp_path: Path) -> None:
    pathdex("evaluate", run, "--n", 1, "--methods", "deep-retrieval", "--json", tmp_path / "f.json")
    rows = json.loads((tmp_path / "f.json").read_text())["results"]
    assert [row["candidate_budget"] for row in rows if row["filter_seen"]] == [5, 10, 20]


def test_methods_and_users_can_be_chosen(pathdex: Pathdex, run: Path, tmp_path: Path) -> None:
    text = pathdex("evaluate", run, "--methods", "popularity", "--on", "valid", "--json", tmp_path / "f.json").stdout
    content = json.loads((tmp_path / "f.json").read_text())
    assert content["users"] == 5
    assert {row["method"] for row in content["results"]} == {"popularity"}
    assert "Retrieval loss" not in text


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--candidates", "5,many"], "--candidates='5,many': must be whole numbers"),
        (["--n", 10, "--candidates", "5"], "candidates=5: must be at least n=10"),
        (["--n", 0], "n=0: must be"),
        (["--beam", "0"], "--beam='0': must be whole numbers of at least 1"),
        (["--methods", "item-fc"], "did you mean 'item-cf'?"),
        (["--on", "train"], "on='train': must be test or valid"),
    ],
)
def test_bad_options(pathdex: Pathdex, run: Path, tmp_path: Path, flags: list[Any], message: str) -> None:
    before = files_under(run)
    assert message in pathdex("evaluate", run, *flags, "--json", tmp_path / "f.json", fails=1).stderr
    assert files_under(run) == before
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_not_a_run(pathdex: Pathdex, run: Path, tmp_path: Path) -> None:
    assert "is not a run folder" in pathdex("evaluate", tmp_path / "no", fails=1).stderr
    assert "is a saved model; pass the --out of `pathdex train`" in pathdex("evaluate", run / "bundle", fails=1).stderr


def test_results_that_cannot_be_written_are_an_error(pathdex: Pathdex, run: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("keep")
    target = tmp_path / "file" / "figures.json"
    text = pathdex("evaluate", run, "--methods", "popularity", "--json", target, fails=1).stderr
    assert f"cannot write {target}" in text
    assert files_under(tmp_path) == {"file": b"keep"}


def test_files_of_ones_own(pathdex: Pathdex, run: Path, tmp_path: Path) -> None:
    (tmp_path / "later.csv").write_text("user,item\na,1\na,2\nb,3\n")
    (tmp_path / "before.csv").write_text("user,item\na,5\n")
    command = ["evaluate", run, "--test", tmp_path / "later.csv", "--methods", "popularity", "--n", 2]
    halves = pathdex(*command, "--json", "-")
    assert json.loads(halves.stdout)["users"] == 1
    assert "Warning: only 1 users are held out" in halves.stderr
    assert json.loads(pathdex(*command, "--history", tmp_path / "before.csv", "--json", "-").stdout)["users"] == 2
    alone = pathdex("evaluate", run, "--history", tmp_path / "before.csv", fails=1).stderr
    assert "--history needs --test; name the file with the rows to find" in alone
