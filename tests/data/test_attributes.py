"""Catalogue tables: reading, alignment to a model's items, and the mask cache."""

import json
import math
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import polars as pl
import pytest

from pathdex.data import Attributes, Vocabulary
from pathdex.data.attributes import AlignedAttributes
from pathdex.errors import DataError, QueryError

ITEMS = Vocabulary(["tea", "cup", "pot", "jar", "hat"])
SHOP = pl.DataFrame(
    {
        "item": ["cup", "tea", "ghost", "pot", "jar"],
        "shelf": ["b", "a", "a", None, "a"],
        "year": [1999, 2001, 2005, 2001, None],
        "open": [True, False, True, None, True],
        "price": [2.5, 5.0, 7.0, math.nan, None],
        "tags": [["hot", "new"], ["new"], ["hot"], [], None],
    }
)


def shop() -> AlignedAttributes:
    """Aligned to the codes of tea, cup, pot, jar, hat. The hat has no row."""
    return Attributes.read(SHOP).align(ITEMS)


def found(where, attributes=None):
    """The ids of the items that match the conditions."""
    attributes = shop() if attributes is None else attributes
    return set(ITEMS.ids(np.flatnonzero(attributes.mask(where))))


def test_rows_are_aligned_to_item_codes():
    aligned = shop()
    assert aligned.columns == Attributes.read(SHOP).columns == ("shelf", "year", "open", "price", "tags")
    assert aligned.mask({"shelf": "a"}).tolist() == [True, False, False, True, False]
    assert (aligned.missing, aligned.unknown) == (1, 1)
    assert repr(aligned) == "AlignedAttributes(5 items, 1 without a row; shelf, year, open, price, tags)"


def test_an_invalid_condition_is_not_cached():
    aligned = shop()
    with pytest.raises(QueryError):
        aligned.mask({"shelf": "a", "year": "new"})
    assert found({"shelf": "a"}, aligned) == {"tea", "jar"}


class TestSources:
    """The same table from every kind of source."""

    ROWS = ({"movieId": 7, "genre": "war", "year": 1999, "price": 1.5, "new": True}, {"movieId": 9, "genre": "fun"})
    ITEMS = Vocabulary(np.array([9, 7, 8]))

    def check(self, attributes):
        assert repr(attributes) == "Attributes(2 items; genre: text, year: integer, price: number, new: boolean)"
        aligned = attributes.align(self.ITEMS)
        assert (aligned.missing, aligned.unknown) == (1, 0)
        assert aligned.mask({"genre": "fun"}).tolist() == [True, False, False]
        for where in ({"year": 1999}, {"year": {"min": 1990}}, {"price": {"max": 2}}, {"new": True}):
            assert aligned.mask(where).tolist() == [False, True, False]

    def test_csv_and_tsv(self, tmp_path):
        text = "movieId,genre,year,price,new\n7,war,1999,1.5,true\n9,fun,,,\n"
        (tmp_path / "a.csv").write_text(text)
        (tmp_path / "a.tsv").write_text(text.replace(",", "\t"))
        self.check(Attributes.read(tmp_path / "a.csv"))
        self.check(Attributes.read(str(tmp_path / "a.tsv")))

    def test_json_lines(self, tmp_path):
        (tmp_path / "a.jsonl").write_text("\n".join(json.dumps(row) for row in self.ROWS))
        self.check(Attributes.read(tmp_path / "a.jsonl"))

    def test_frames_and_parquet(self, tmp_path):
        frame = pl.DataFrame(self.ROWS)
        frame.write_parquet(tmp_path / "a.parquet")
        for source in (frame, frame.lazy(), frame.to_arrow(), tmp_path / "a.parquet"):
            self.check(Attributes.read(source))

    def test_a_pandas_frame(self):
        frame = pd.DataFrame({"sku": ["a", "b"], "stock": [3, None], "shelf": pd.Categorical(["x", "y"])})
        aligned = Attributes.read(frame).align(Vocabulary(["a", "b"]))
        assert aligned.mask({"stock": 3}).tolist() == [True, False]
        assert aligned.mask({"shelf": "y"}).tolist() == [False, True]

    def test_a_named_item_column_and_format(self, tmp_path):
        (tmp_path / "list.item").write_text("what:token\tkind:token\n1\tx\n")
        attributes = Attributes.read(tmp_path / "list.item", item="what", format="inter")
        assert attributes.align(Vocabulary(np.array([1]))).mask({"kind": "x"}).tolist() == [True]


def test_text_ids_match_integer_ids():
    table = pl.DataFrame({"item": ["7", "007", "x", "9"], "a": [1, 2, 3, 4]})
    aligned = Attributes.read(table).align(Vocabulary(np.array([9, 7])))
    assert aligned.mask({"a": 1}).tolist() == [False, True]
    assert aligned.mask({"a": 4}).tolist() == [True, False]
    assert aligned.unknown == 2
    numbered = Attributes.read(pl.DataFrame({"item": [7], "a": [1]})).align(Vocabulary(["x", "7"]))
    assert numbered.mask({"a": 1}).tolist() == [False, True]


def test_unsupported_column_types_are_skipped():
    table = SHOP.select("item", "shelf").with_columns(
        pl.lit(1).cast(pl.Date).alias("since"),
        pl.struct("shelf").alias("place"),
        pl.lit(2**64 - 1, dtype=pl.UInt64).alias("big"),
        pl.Series("nested", [[["a"]]] * 5),
    )
    attributes = Attributes.read(table)
    assert attributes.columns == ("shelf",)
    assert dict(attributes.skipped).keys() == {"since", "place", "big", "nested"}
    with pytest.raises(
        QueryError,
        match=r"where\['since'\]='2024-01-01': a column of type Date supports no conditions; cast it to text",
    ):
        attributes.align(ITEMS).mask({"since": "2024-01-01"})


@pytest.mark.parametrize(
    ("table", "options", "message"),
    [
        ({"item": [1, 2, 1, 2, 3], "a": [0] * 5}, {},
         r"column 'item' of the DataFrame: 2 items have more than one row \(1, 2\); keep one row per item; several"),
        ({"item": list("abcdef") * 2, "a": [0] * 12}, {},
         r"6 items have more than one row \('a', 'b', 'c', 'd', 'e', \.\.\.\)"),
        ({"item": [1]}, {}, r"the DataFrame has only the column 'item'; add at least one attribute"),
        ({"thing": [1], "a": [1]}, {}, r"no item column found in the DataFrame; its columns are: thing, a; name it"),
        ({"item": [1], "a": [1]}, {"item": "itme"}, r"item='itme': .* has no such column; .*did you mean 'item'\?"),
        ({"item": [1, None], "a": [1, 2]}, {}, r"1 of 2 rows have no item id"),
        ({"item": [], "a": []}, {}, r"the DataFrame has no rows"),
    ],
)  # fmt: skip
def test_invalid_tables_are_errors(table, options, message):
    with pytest.raises(DataError, match=message):
        Attributes.read(pl.DataFrame(table), **options)


def test_a_table_without_any_item_of_the_model_warns():
    with pytest.warns(UserWarning, match="none of the 1 items of the model has a row in the catalogue table"):
        aligned = Attributes.read(SHOP).align(Vocabulary(["sofa"]))
    assert (aligned.missing, aligned.unknown) == (1, 5)
    assert not aligned.mask({"shelf": ["a", "b"]}).any()
    assert aligned.mask({}).all()


class TestCache:
    def test_masks_are_read_only(self):
        with pytest.raises(ValueError, match="read-only"):
            shop().mask({"shelf": "a"})[0] = False

    def test_equal_conditions_share_a_mask(self):
        aligned = shop()
        mask = aligned.mask({"shelf": ["a", "b"], "year": {"min": 2000}})
        assert aligned.mask({"year": {"min": 2000, "max": None}, "shelf": ["b", "a", "a", "unknown"]}) is mask
        assert aligned.mask({"shelf": ["a", "b"]}) is not mask

    def test_least_recently_used_masks_are_evicted(self):
        entry = 1024 + 64 + len(ITEMS)
        aligned = Attributes.read(SHOP).align(ITEMS, cache_bytes=2 * entry)
        first, second = aligned.mask({"year": 2001}), aligned.mask({"year": 1999})
        assert aligned.mask({"year": 2001}) is first
        aligned.mask({"shelf": "a"})
        assert aligned.mask({"year": 2001}) is first
        assert aligned.mask({"year": 1999}) is not second

    def test_a_cache_of_zero_bytes_stores_nothing(self):
        aligned = Attributes.read(SHOP).align(ITEMS, cache_bytes=0)
        assert aligned.mask({"shelf": "a"}) is not aligned.mask({"shelf": "a"})

    def test_threads_share_masks(self):
        aligned = Attributes.read(SHOP).align(ITEMS, cache_bytes=3000)
        years = [1999, 2001, 2005] * 200
        expected = {year: shop().mask({"year": year}).tolist() for year in set(years)}
        with ThreadPoolExecutor(8) as pool:
            masks = list(pool.map(lambda year: aligned.mask({"year": year}), years))
        assert [mask.tolist() for mask in masks] == [expected[year] for year in years]
        assert aligned._cache._bytes == sum(aligned._cache._size(*one) for one in aligned._cache._masks.items()) <= 3000


GENRES = pl.DataFrame(
    {"item": ["x", "y", "z"], "genres": ["Drama|War", "Drama", "War|Drama"], "tags": ["a,b", "b", "c"]}
)


def test_cells_with_several_values_match_by_element() -> None:
    aligned = Attributes.read(GENRES).align(Vocabulary(["x", "y", "z"]))
    assert aligned.mask({"genres": "War"}).tolist() == [True, False, True]
    assert aligned.mask({"genres": ["Drama"]}).tolist() == [True, True, True]
    assert aligned.mask({"tags": "b"}).tolist() == [False, True, False]
    with pytest.raises(QueryError, match=r"holds several values per item, separated by '\|'; pass one of them"):
        aligned.mask({"genres": "Drama|War"})


def test_lists_are_declared() -> None:
    table = Attributes.read(GENRES, lists={"genres": None, "tags": ","})
    aligned = table.align(Vocabulary(["x", "y", "z"]))
    assert aligned.mask({"genres": "Drama|War"}).tolist() == [True, False, False]
    assert aligned.mask({"tags": "b"}).tolist() == [True, True, False]
    assert "tags: list of text" in repr(table)
