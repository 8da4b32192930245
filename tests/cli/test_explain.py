"""`pathdex explain` and `pathdex why-not`."""

from __future__ import annotations

import json
from pathlib import Path

import pathdex as package
from tests.cli.conftest import Pathdex


def test_explain_prints_the_explanation(pathdex: Pathdex, run: Path) -> None:
    model = package.load(run)
    assert isinstance(model, package.DeepRetrieval)
    assert pathdex("explain", run, 5, "--history", "1,2").stdout.strip() == str(model.explain([1, 2], "5"))
    found = json.loads(pathdex("explain", run, 5, "--history", "1,2", "--beam", 1, "--json", "-").stdout)
    assert len(found["paths"]) == 2
    assert pathdex("explain", run, 5).stdout.startswith("5: ")


def test_why_not_prints_the_reason(pathdex: Pathdex, run: Path) -> None:
    assert pathdex("why-not", run, 1, "--history", "1,2").stdout.startswith(
        "1 is in the history, whose items are excluded"
    )
    kept = json.loads(pathdex("why-not", run, 1, "--history", "1,2", "--keep-seen", "--json", "-").stdout)
    assert kept["reason"] != "seen"


def test_titles(pathdex: Pathdex, titled_run: Path) -> None:
    assert pathdex("explain", titled_run, 5, "--history", "1").stdout.startswith("5 (Item 5): ")
    assert pathdex("why-not", titled_run, 1, "--history", "1").stdout.startswith("1 (Item 1) is in the history")


def test_a_model_that_cannot_explain(pathdex: Pathdex, planted: Path, tmp_path: Path) -> None:
    package.Popularity().fit(planted).save(tmp_path / "model")
    for command in ("explain", "why-not"):
        assert (
            "a popularity model cannot explain its answers" in pathdex(command, tmp_path / "model", 5, fails=1).stderr
        )
