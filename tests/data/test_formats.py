"""Every kind of file and table, opened as one table."""

import gzip
import json
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

from pathdex.data import read
from pathdex.data.attributes import Attributes
from pathdex.data.source_table import reading
from pathdex.errors import DataError, MissingExtraError

ROWS = {"user_id": ["u2", "u1", "u1"], "item_id": ["b", "c", "a"], "timestamp": [5, 9, 7]}
FRAME = pl.DataFrame(ROWS)


def histories(data):
    """Every user's item ids, by user id."""
    return {data.users.id(row): data.items.ids(codes) for row, codes in enumerate(data.sequences)}


EXPECTED = {"u1": ["a", "c"], "u2": ["b"]}


def write_csv(path):
    FRAME.write_csv(path)


def write_tsv(path):
    FRAME.write_csv(path, separator="\t")


def write_gzipped(path):
    path.write_bytes(gzip.compress(FRAME.write_csv().encode()))


def write_json_lines(path):
    FRAME.write_ndjson(path)


def write_gzipped_json_lines(path):
    path.write_bytes(gzip.compress(FRAME.write_ndjson().encode()))


def write_recbole(path):
    FRAME.select(
        pl.col("user_id").alias("user_id:token"),
        pl.col("item_id").alias("item_id:token"),
        pl.lit(4.0).alias("rating:float"),
        pl.col("timestamp").cast(pl.Float64).alias("timestamp:float"),
    ).write_csv(path, separator="\t")


@pytest.mark.parametrize(
    ("name", "write"),
    [
        ("rows.csv", write_csv),
        ("rows.CSV", write_csv),
        ("rows.tsv", write_tsv),
        ("rows.csv.gz", write_gzipped),
        ("rows.jsonl", write_json_lines),
        ("rows.ndjson", write_json_lines),
        ("rows.jsonl.gz", write_gzipped_json_lines),
        ("rows.parquet", FRAME.write_parquet),
        ("rows.inter", write_recbole),
    ],
)
def test_every_file_format_gives_the_same_data(tmp_path, name, write):
    path = tmp_path / name
    write(path)
    assert histories(read(path)) == EXPECTED
    assert histories(read(str(path))) == EXPECTED


@pytest.mark.parametrize(
    "source",
    [
        FRAME,
        FRAME.lazy(),
        FRAME.to_arrow(),
        FRAME.to_arrow().to_batches()[0],
        pd.DataFrame(ROWS),
        pd.DataFrame(ROWS, index=[7, 7, 7]),
        pl.DataFrame(ROWS, schema_overrides={"item_id": pl.Categorical, "user_id": pl.Enum(["u2", "u1"])}),
    ],
    ids=["polars", "lazy", "arrow", "batch", "pandas", "pandas-index", "categorical"],
)
def test_every_table_type_gives_the_same_data(source):
    assert histories(read(source)) == EXPECTED


def test_format_overrides_the_suffix(tmp_path):
    path = tmp_path / "rows.txt"
    write_tsv(path)
    assert histories(read(path, format="tsv")) == EXPECTED


def test_a_folder_of_parquet_files_is_one_table(tmp_path):
    FRAME.head(1).write_parquet(tmp_path / "part-0.parquet")
    FRAME.tail(2).write_parquet(tmp_path / "part-1.parquet")
    assert histories(read(tmp_path)) == EXPECTED


def test_files_of_a_folder_are_read_in_name_order(tmp_path):
    frame = pl.DataFrame({"user": [1], "item": [30]})
    frame.write_parquet(tmp_path / "b.parquet")
    pl.DataFrame({"user": [1], "item": [20]}).write_parquet(tmp_path / "a.parquet")
    assert histories(read(tmp_path)) == {1: [20, 30]}


def test_brackets_in_a_name_are_not_a_pattern(tmp_path):
    path = tmp_path / "rows[1].csv"
    write_csv(path)
    assert histories(read(path)) == EXPECTED


OLD_RATINGS = "1::10::5::300\n1::20::3::100\n2::10::4::50\n"
NEW_RATINGS = "userId,movieId,rating,timestamp\n1,10,5.0,300\n1,20,3.5,100\n2,10,4.0,50\n"


@pytest.mark.parametrize(("file", "text"), [("ratings.dat", OLD_RATINGS), ("ratings.csv", NEW_RATINGS)])
def test_movielens_archive_folder_and_file(tmp_path, file, text):
    folder = tmp_path / "ml"
    folder.mkdir()
    (folder / file).write_text(text)
    (folder / "movies.dat").write_bytes("1::Amélie::Comedy\n".encode("latin-1"))
    archive = tmp_path / "ml.zip"
    with zipfile.ZipFile(archive, "w") as packed:
        packed.write(folder / "movies.dat", "ml-1m/movies.dat")
        packed.write(folder / file, f"ml-1m/{file}")
    for source in (archive, folder, folder / file):
        data = read(source, min_rating=3.5 if file == "ratings.csv" else 3)
        assert histories(data) == {1: [20, 10], 2: [10]}
        assert data.times.tolist() == [100, 300, 50]
        assert read(source, min_rating=4).notes["dropped_low_rating"] == 1


def test_amazon_ratings_have_no_header(tmp_path):
    path = tmp_path / "ratings_Books.csv"
    path.write_text("A1,B00X,5.0,1400\nA1,0001,3.0,1300\nA2,B00X,1.0,1200\n")
    assert histories(read(path)) == {"A1": ["0001", "B00X"], "A2": ["B00X"]}
    other = path.rename(tmp_path / "books.csv")
    assert histories(read(other, format="amazon")) == {"A1": ["0001", "B00X"], "A2": ["B00X"]}


def test_a_header_is_recognised_despite_an_amazon_like_name(tmp_path):
    path = tmp_path / "ratings_mine.csv"
    path.write_text("user,item,rating,timestamp\nA1,B00X,5.0,1400\n")
    assert histories(read(path)) == {"A1": ["B00X"]}


@pytest.mark.parametrize("kind", [sparse.csr_matrix, sparse.csc_array, sparse.coo_array])
def test_a_matrix_has_no_order(kind):
    data = read(kind(np.array([[0, 5, 1], [0, 0, 0], [2, 0, 0]])))
    assert histories(data) == {0: [1, 2], 2: [0]}
    assert not data.ordered
    assert data.times is None


def test_the_values_of_a_matrix_are_ratings():
    data = read(sparse.csr_array(np.array([[0, 5, 1], [2, 0, 4]])), min_rating=4)
    assert histories(data) == {0: [1], 1: [2]}


def test_stored_zeros_of_a_matrix_are_dropped():
    matrix = sparse.csr_array((np.array([0.0, 1.0]), np.array([0, 1]), np.array([0, 2])), shape=(1, 2))
    assert histories(read(matrix)) == {0: [1]}
    assert matrix.nnz == 2


def refused(source, message, **options):
    with pytest.raises(DataError, match=message) as caught:
        read(source, **options)
    return str(caught.value)


def test_a_missing_path(tmp_path):
    refused(tmp_path / "no.csv", r"no\.csv does not exist; check the path")


def test_an_unknown_suffix(tmp_path):
    path = tmp_path / "rows.docx"
    path.write_text("")
    refused(path, r"the suffix '\.docx' is unknown; known are \.csv, .* format=: csv, tsv, parquet")


def test_an_unknown_format(tmp_path):
    known = "csv, tsv, parquet, arrow, jsonl, json, excel, inter, movielens, amazon"
    refused(tmp_path, f"format='word': must be one of {known}", format="word")


def test_format_is_for_files_only():
    refused(FRAME, "format='csv': is for files only; leave it out for a DataFrame", format="csv")


def test_a_source_of_another_type():
    refused({1: 2}, r"source=\{1: 2\}: a dict cannot be read; pass a path, a URL, a list of paths, a pandas or polars")
    refused([1, 2], r"source=\[1, 2\]: must be a list of paths or URLs, and not empty; pass frames one by one")
    refused([], r"source=\[\]: must be a list of paths")


def test_a_folder_without_data(tmp_path):
    (tmp_path / "notes.txt").write_text("nothing")
    refused(tmp_path, r"holds no data: it has neither ratings\.dat nor ratings\.csv nor files with a known")
    refused(tmp_path, "holds no Parquet files", format="parquet")
    refused(tmp_path, "is not a MovieLens folder", format="movielens")


def test_a_zip_without_ratings(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as packed:
        packed.writestr("readme.txt", "hello")
        packed.writestr("rows.csv", "user,item\n1,2\n")
    refused(tmp_path / "a.zip", r"is no MovieLens archive and holds 2 files \(readme.txt, rows.csv\); unpack it")
    with zipfile.ZipFile(tmp_path / "b.zip", "w") as packed:
        packed.writestr("rows.parquet", "")
    refused(tmp_path / "b.zip", r"holds rows\.parquet, which is no CSV or TSV file; unpack it")


def test_damaged_files(tmp_path):
    FRAME.write_parquet(tmp_path / "whole.parquet")
    whole = (tmp_path / "whole.parquet").read_bytes()
    damaged = {
        "cut.parquet": whole[: len(whole) // 2],
        "text.parquet": b"user,item\n",
        "empty.parquet": b"",
        "cut.zip": b"PK\x03\x04rest",
        "text.csv.gz": b"\x1f\x8b\x08 no gzip",
        "broken.jsonl": b'{"user": 1, "item": \n',
    }
    for name, content in damaged.items():
        path = tmp_path / name
        path.write_bytes(content)
        refused(path, rf"{name} cannot be read \(.+\); for a file: get it again, or name its format")
        assert path.read_bytes() == content


def test_a_parquet_page_with_a_negative_count(tmp_path):
    """Found by the fuzzer: polars aborts the process, which no exception handler sees."""
    refused(Path(__file__).with_name("negative_count.parquet"), r"cannot be read \(Invalid page header")


def test_a_parquet_footer_with_impossible_numbers_of_rows():
    """Found by the fuzzer: two rows took 14 GB."""
    rule = r"cannot be read \(the column item_id has 2 values in 45,214,529,150 rows\)"
    refused(Path(__file__).with_name("many_rows.parquet"), rule)


def test_a_panic_of_polars_is_a_data_error():
    with pytest.raises(DataError, match=r"the table cannot be read \(it panicked\)"), reading("the table"):
        raise pl.exceptions.PanicException("it panicked")


def test_a_column_name_with_a_null_character(tmp_path):
    path = tmp_path / "shop.csv"
    path.write_text("item_id,a\0b\n1,x\n2,y\n")
    assert Attributes.read(path).columns == ("a\0b",)


def test_parquet_files_of_different_schemas(tmp_path):
    FRAME.write_parquet(tmp_path / "a.parquet")
    FRAME.with_columns(pl.col("timestamp").cast(pl.String)).write_parquet(tmp_path / "b.parquet")
    refused(tmp_path, r"cannot be read \(.*b.parquet has other columns than .*a.parquet\)")


def test_a_pandas_column_of_mixed_types():
    mixed = pd.DataFrame({"user": [1, "a"], "item": [1, 2]}, dtype=object)
    refused(mixed, r"the DataFrame cannot be read .* for a frame: cast columns of mixed types")


@pytest.mark.parametrize("name", ["empty.csv", "empty.csv.gz", "empty.json", "empty.arrow"])
def test_an_empty_file_is_called_empty(tmp_path, name):
    (tmp_path / name).write_bytes(gzip.compress(b"") if name.endswith("gz") else b"")
    refused(tmp_path / name, "is empty; check that it was written completely")


def test_globs_lists_and_folders_of_csv_are_one_table(tmp_path):
    for part, rows in (("1", FRAME[:2]), ("2", FRAME[2:])):
        rows.write_csv(tmp_path / f"part{part}.csv")
    (tmp_path / "notes.txt").write_text("about the files")
    files = [tmp_path / "part1.csv", str(tmp_path / "part2.csv")]
    for source in (files, str(tmp_path / "part*.csv"), tmp_path):
        assert histories(read(source)) == EXPECTED
    refused(str(tmp_path / "no*.csv"), r"no\*\.csv matches no file; check the path")


def test_files_with_other_columns_are_named(tmp_path):
    FRAME.write_csv(tmp_path / "a.csv")
    FRAME.rename({"item_id": "sku"}).write_csv(tmp_path / "b.csv")
    refused(tmp_path, r"b\.csv has other columns than .*a\.csv \(item_id, sku\); pass files with the same columns")


def test_a_folder_of_several_formats(tmp_path):
    FRAME.write_csv(tmp_path / "a.csv")
    FRAME.write_ndjson(tmp_path / "b.jsonl")
    refused(tmp_path, r"holds files of several formats \(.*a\.csv.*\); pass those of one format")


@pytest.mark.parametrize("option", [{"separator": ";"}, {"encoding": "latin-1"}, {"header": False}])
def test_options_of_text_files_are_for_text_files_only(tmp_path, option):
    FRAME.write_parquet(tmp_path / "rows.parquet")
    refused(tmp_path / "rows.parquet", "is for text files only; leave it out for the format parquet", **option)
    refused(FRAME, "is for text files only; leave it out for a DataFrame", **option)


def test_json_arrays_and_json_lines_called_json(tmp_path):
    (tmp_path / "array.json").write_text(FRAME.write_json())
    (tmp_path / "lines.json").write_text(FRAME.write_ndjson())
    for name in ("array.json", "lines.json"):
        assert histories(read(tmp_path / name)) == EXPECTED


def test_excel_needs_its_extra_or_is_read(tmp_path):
    pytest.importorskip("fastexcel")
    pytest.importorskip("xlsxwriter")
    FRAME.write_excel(tmp_path / "rows.xlsx")
    assert histories(read(tmp_path / "rows.xlsx")) == EXPECTED


def test_excel_without_its_extra_names_it(tmp_path, monkeypatch):
    def missing(*_, **__):
        raise ModuleNotFoundError("fastexcel")

    monkeypatch.setattr(pl, "read_excel", missing)
    (tmp_path / "rows.xlsx").write_bytes(b"PK")
    with pytest.raises(MissingExtraError, match=r"reading Excel files needs fastexcel; .*pathdex\[excel\]"):
        read(tmp_path / "rows.xlsx")


def test_json_that_is_one_object_says_how_to_write_it(tmp_path):
    columns = FRAME.to_dict(as_series=False)
    contents = {
        "columns.json": {name: [str(one) for one in values] for name, values in columns.items()},
        "pandas.json": {name: dict(enumerate(map(str, values))) for name, values in columns.items()},
        "wrapped.json": {"data": [{"user": 1, "item": 2}]},
    }
    for name, content in contents.items():
        (tmp_path / name).write_text(json.dumps(content))
        refused(tmp_path / name, rf"{name} holds one JSON object instead of one per row; write an array of objects")
