"""JSON files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pathdex.storage.json_file import write_json


def test_the_content_can_be_read_back(tmp_path: Path) -> None:
    content = {"name": "grün", "values": [1, 2.5, None]}
    path = write_json(tmp_path / "deep" / "file.json", content)
    assert json.loads(path.read_text()) == content
    assert path.read_text().endswith("}\n")


@pytest.mark.parametrize("value", [float("nan"), float("inf"), object()])
def test_what_json_cannot_hold_leaves_the_old_file(tmp_path: Path, value: object) -> None:
    path = write_json(tmp_path / "file.json", {"old": 1})
    with pytest.raises((ValueError, TypeError)):
        write_json(path, {"new": value})
    assert json.loads(path.read_text()) == {"old": 1}
