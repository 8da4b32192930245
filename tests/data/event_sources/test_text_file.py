"""Reading at any place, and recognising content."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from pathdex.data.event_sources.text_file import EDGE, open_text
from pathdex.errors import DataError


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz"])
def test_bytes_are_read_at_any_place(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    content = bytes(range(256)) * 50
    path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    file = open_text(path)
    assert [file.read_at(at) for at in (300, 0, len(content))] == [content[300:], content, b""]
    assert file.size() == (None if name.endswith(".gz") else len(content))
    file.close()


def test_the_digest_covers_both_ends_of_what_was_read(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    content = bytes(5 * EDGE)
    path.write_bytes(content)
    file = open_text(path)
    before = file.digest(4 * EDGE)
    path.write_bytes(content + b"more")
    assert file.digest(4 * EDGE) == before
    for at in (0, 4 * EDGE - 1):
        path.write_bytes(content[:at] + b"x" + content[at + 1 :])
        assert file.digest(4 * EDGE) != before
    path.write_bytes(b"")
    assert file.digest(4 * EDGE) != before
    file.close()


def test_files_that_cannot_be_opened(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="does not exist; check the path"):
        open_text(tmp_path / "a.jsonl")
    (tmp_path / "loop.jsonl").symlink_to("loop.jsonl")
    with pytest.raises(
        DataError, match=r"loop.jsonl cannot be read \(.*symbolic links\); check the file's permissions"
    ):
        open_text(tmp_path / "loop.jsonl")
