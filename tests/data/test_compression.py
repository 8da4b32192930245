"""The names and contents of compressed files."""

import gzip
from pathlib import PurePath

import pytest

from pathdex.data.compression import is_compressed, plain_name, read_decompressed


@pytest.mark.parametrize(
    ("name", "plain", "compressed"),
    [("A.CSV.GZ", "a.csv", True), ("a.csv", "a.csv", False), ("a.zst", "a", True), ("a.zip", "a.zip", False)],
)
def test_names(name, plain, compressed):
    assert plain_name(PurePath(name)) == PurePath(plain)
    assert is_compressed(PurePath(name.lower())) == compressed


def test_the_name_decides(tmp_path):
    content = gzip.compress(b"text")
    (tmp_path / "a.gz").write_bytes(content)
    (tmp_path / "a.csv").write_bytes(content)
    assert read_decompressed(tmp_path / "a.gz") == b"text"
    assert read_decompressed(tmp_path / "a.csv") == content
