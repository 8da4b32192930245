"""`pathdex similar`."""

from __future__ import annotations

import json
from pathlib import Path

import pathdex as package
from tests.cli.conftest import Pathdex


def test_it_shows_what_the_library_gives(pathdex: Pathdex, run: Path, tmp_path: Path) -> None:
    expected = package.load(run).similar_items(3, 4)
    text = pathdex("similar", run, 3, "--n", 4, "--json", tmp_path / "out.json").stdout
    assert [line.split()[1] for line in text.splitlines() if line[:4].strip().isdecimal()] == [
        str(one.id) for one in expected
    ]
    written = json.loads((tmp_path / "out.json").read_text())
    assert [one["id"] for one in written["items"]] == [one.id for one in expected]
    assert set(written["items"][0]) == {"id", "score"}


def test_json_on_standard_output_is_all_there_is(pathdex: Pathdex, run: Path) -> None:
    assert json.loads(pathdex("similar", run, 3, "--n", 2, "--json", "-").stdout)["item"] == "3"


def test_titles(pathdex: Pathdex, titled_run: Path) -> None:
    text = pathdex("similar", titled_run, 3, "--n", 40).stdout
    assert "Similar to 3 (Item 3)" in text
    assert "Item 5" in text
    items = json.loads(pathdex("similar", titled_run, 3, "--n", 40, "--json", "-").stdout)["items"]
    assert {one["id"]: one.get("title") for one in items}[5] == "Item 5"
    assert all(("title" in one) == (1 <= one["id"] < 30) for one in items)
