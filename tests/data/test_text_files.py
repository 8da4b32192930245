"""Text files as people have them: separators, encodings, headers, compression."""

import bz2
import gzip
import lzma
import zipfile

import pyarrow as pa
import pytest

from pathdex.data import read
from pathdex.errors import DataError, DataWarning
from tests.data.test_formats import EXPECTED, FRAME, histories

CSV = FRAME.write_csv().encode()


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
@pytest.mark.parametrize("name", ["rows.csv", "rows.tsv", "rows.txt"])
def test_separators_are_detected(tmp_path, name, separator):
    FRAME.write_csv(tmp_path / name, separator=separator)
    assert histories(read(tmp_path / name)) == EXPECTED


def test_another_separator_is_named(tmp_path):
    FRAME.write_csv(tmp_path / "rows.csv", separator=":")
    assert histories(read(tmp_path / "rows.csv", separator=":")) == EXPECTED
    with pytest.raises(DataError, match="separator='::': must be one ASCII character; write the file with one"):
        read(tmp_path / "rows.csv", separator="::")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
def test_unicode_is_detected(tmp_path, encoding):
    (tmp_path / "rows.csv").write_bytes("user,item\nJürgen,Käse\n".encode(encoding))
    assert histories(read(tmp_path / "rows.csv")) == {"Jürgen": ["Käse"]}


def test_other_encodings_are_named(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_bytes("user,item\nJürgen,Käse\n".encode("latin-1"))
    assert histories(read(path, encoding="latin-1")) == {"Jürgen": ["Käse"]}
    with pytest.raises(DataError, match=r"is not UTF-8 text .*; name its encoding with encoding= \(--encoding\)"):
        read(path)
    with pytest.raises(DataError, match="encoding='klingon': is no known encoding of text; name one that Python"):
        read(path, encoding="klingon")
    with pytest.raises(DataError, match="is not text in ascii"):
        read(path, encoding="ascii")


def test_without_a_header_columns_have_numbers(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("7,9,5\n7,8,4\n")
    assert histories(read(path, header=False, user="1", item="2", time="3")) == {7: [8, 9]}
    with pytest.raises(DataError, match=r"if the file has no header, pass header=False \(--no-header\) and user='1'"):
        read(path)


COMPRESSED = {
    "rows.csv.gz": gzip.compress(CSV),
    "rows.csv.bz2": bz2.compress(CSV),
    "rows.csv.xz": lzma.compress(CSV),
    "rows.csv.zst": pa.Codec("zstd").compress(CSV, asbytes=True),
}


@pytest.mark.parametrize("name", COMPRESSED)
def test_compressed_files(tmp_path, name):
    (tmp_path / name).write_bytes(COMPRESSED[name])
    assert histories(read(tmp_path / name)) == EXPECTED


def test_a_zip_with_one_file(tmp_path):
    with zipfile.ZipFile(tmp_path / "rows.zip", "w") as packed:
        packed.writestr("export/rows.csv", CSV)
        packed.writestr("__MACOSX/export/._rows.csv", b"")
    assert histories(read(tmp_path / "rows.zip")) == EXPECTED


def test_a_comma_in_quotes_is_no_field(tmp_path):
    (tmp_path / "rows.csv").write_text('user,item\n1,"tea, green"\n')
    assert histories(read(tmp_path / "rows.csv")) == {1: ["tea, green"]}


def test_long_rows_are_named(tmp_path):
    (tmp_path / "rows.csv").write_text("user,item\n1,tea\n1,cup,old\n")
    with pytest.warns(DataWarning, match=r"more than the 2 fields of the first line \(lines 3\)"):
        assert histories(read(tmp_path / "rows.csv")) == {1: ["tea", "cup"]}
