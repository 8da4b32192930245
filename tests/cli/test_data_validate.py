"""`pathdex data validate`."""

from __future__ import annotations

from pathlib import Path

from tests.cli.conftest import Pathdex


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
