"""Partitioned Parquet folders and Arrow files."""

import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest

from pathdex.data import read
from pathdex.errors import DataError
from tests.data.test_formats import EXPECTED, FRAME, histories


def test_hive_partitions_are_columns(tmp_path):
    for place, row in enumerate(FRAME.iter_slices(1)):
        folder = tmp_path / f"user_id={row['user_id'].item()}" / f"part={place}"
        folder.mkdir(parents=True)
        row.drop("user_id").write_parquet(folder / "rows.parquet")
    assert histories(read(tmp_path)) == EXPECTED


@pytest.mark.parametrize("name", ["rows.arrow", "rows.feather", "rows.ipc"])
def test_arrow_files_and_streams(tmp_path, name):
    FRAME.write_ipc(tmp_path / name)
    assert histories(read(tmp_path / name)) == EXPECTED
    FRAME.write_ipc_stream(tmp_path / name)
    assert histories(read(tmp_path / name)) == EXPECTED


def test_a_damaged_arrow_file(tmp_path):
    FRAME.write_ipc(tmp_path / "whole.arrow")
    content = (tmp_path / "whole.arrow").read_bytes()
    (tmp_path / "cut.arrow").write_bytes(content[: len(content) // 2])
    with pytest.raises(DataError, match=r"cut\.arrow cannot be read"):
        read(tmp_path / "cut.arrow")


def test_partitions_with_other_columns(tmp_path):
    for name, frame in (("a", pl.DataFrame({"user": [1], "item": [1]})), ("b", pl.DataFrame({"user": [1]}))):
        (tmp_path / f"part={name}").mkdir()
        frame.write_parquet(tmp_path / f"part={name}" / "rows.parquet")
    with pytest.raises(DataError, match="has other columns than"):
        read(tmp_path)


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_a_name_that_is_not_text(tmp_path, kind):
    table, file = pa.table({"user": [1, 2], "item": [3, 4], "another": [5, 6]}), tmp_path / f"rows.{kind}"
    if kind == "parquet":
        pa.parquet.write_table(table, file)
    else:
        with pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table)
    file.write_bytes(file.read_bytes().replace(b"another", b"anothe\xf0"))
    with pytest.raises(DataError, match=r"cannot be read \(it holds a name that is not UTF-8 text: b'anothe.xf0'\)"):
        read(file)
