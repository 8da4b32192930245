"""Checksums of data and source files."""

from __future__ import annotations

import re
from pathlib import Path

from pathdex.experiments.checksums import checksum, source_digest


def test_the_digest_is_short_and_stable() -> None:
    first = source_digest()
    source_digest.cache_clear()
    assert re.fullmatch("[0-9a-f]{12}", first)
    assert source_digest() == first


def test_the_checksum_of_a_folder_depends_on_all_its_files(tmp_path: Path) -> None:
    for name, text in (("a", "1"), ("b/c", "2")):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    before = checksum(tmp_path)
    assert before == checksum(tmp_path)
    (tmp_path / "b" / "c").write_text("3")
    assert checksum(tmp_path) != before
    assert checksum(tmp_path / "a") == "6b86b273ff34fce19d6b804eff5a3f5747ada4eaa22f1d49c01e52ddb7875b4b"
