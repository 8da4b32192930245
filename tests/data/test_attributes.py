import json
import math
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

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
    """By item code: tea, cup, pot, jar, hat. The hat has no row."""
    return Attributes.read(SHOP).align(ITEMS)


def found(where, attributes=None):
    """The ids of the items that meet the conditions."""
    attributes = shop() if attributes is None else attributes
    return set(ITEMS.ids(np.flatnonzero(attributes.mask(where))))


def test_rows_come_in_the_order_of_the_items():
    aligned = shop()
    assert aligned.columns == Attributes.read(SHOP).columns == ("shelf", "year", "open", "price", "tags")
    assert aligned.mask({"shelf": "a"}).tolist() == [True, False, False, True, False]
    assert (aligned.missing, aligned.unknown) == (1, 1)
    assert repr(aligned) == "AlignedAttributes(5 items, 1 without a row; shelf, year, open, price, tags)"


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ({}, {"tea", "cup", "pot", "jar", "hat"}),
        ({"shelf": "a"}, {"tea", "jar"}),
        ({"shelf": ["b", "a"]}, {"tea", "cup", "jar"}),
        ({"shelf": ("b",)}, {"cup"}),
        ({"shelf": "z"}, set()),
        ({"shelf": []}, set()),
        ({"year": 2001}, {"tea", "pot"}),
        ({"year": [1999, 2005]}, {"cup"}),
        ({"year": np.array([1999, 2001])}, {"tea", "cup", "pot"}),
        ({"year": {"min": 2000}}, {"tea", "pot"}),
        ({"year": {"max": 2000.5}}, {"cup"}),
        ({"year": {"min": 1999, "max": 1999}}, {"cup"}),
        ({"year": {"min": 1999.5, "max": 2000.5}}, set()),
        ({"open": True}, {"cup", "jar"}),
        ({"open": [True, False]}, {"cup", "jar", "tea"}),
        ({"price": 5}, {"tea"}),
        ({"price": [2.5, 5.0, 9.0]}, {"tea", "cup"}),
        ({"price": {"min": 2.5, "max": 5}}, {"tea", "cup"}),
        ({"price": {"min": 2.6, "max": None}}, {"tea"}),
        ({"price": {"max": math.inf}}, {"tea", "cup"}),
        ({"tags": "new"}, {"tea", "cup"}),
        ({"tags": ["hot", "old"]}, {"cup"}),
        ({"shelf": "a", "year": 2001}, {"tea"}),
        ({"shelf": "a", "year": {"min": 1990}, "open": False, "price": {"min": 1}, "tags": "new"}, {"tea"}),
        ({"shelf": "a", "year": 1999}, set()),
    ],
)
def test_conditions(where, expected):
    assert found(where) == expected


@pytest.mark.parametrize(
    ("column", "value", "same"),
    [
        ("number", 12, ["12", 12.0, np.int64(12), np.float32(12), ["12", 12]]),
        ("word", "12", [12, np.str_("12"), [12]]),
        ("fraction", 12.0, [12, "12", "12.0", "1.2e1"]),
        ("truth", True, ["true", "True", 1, 1.0, np.True_]),
        ("number", 1, [True]),
    ],
)
def test_text_and_numbers_find_each_other_as_ids_do(column, value, same):
    table = pl.DataFrame(
        {"item": [1, 2], "number": [12, 1], "word": ["12", "1"], "fraction": [12.0, 0.5], "truth": [True, False]}
    )
    aligned = Attributes.read(table).align(Vocabulary(np.array([1, 2])))
    mask = aligned.mask({column: value})
    assert mask.sum() == 1
    for other in same:
        # The same condition, however it is written, is the same mask.
        assert aligned.mask({column: other}) is mask
    assert not aligned.mask({"number": 12.7}).any()
    assert not aligned.mask({"word": "012"}).any()
    assert not aligned.mask({"number": 10**30}).any()


def test_the_bounds_of_integers_are_exact():
    big = 2**60
    aligned = Attributes.read(pl.DataFrame({"item": [0, 1, 2], "n": [big, big + 1, -(2**63)]})).align(
        Vocabulary(np.arange(3))
    )
    assert aligned.mask({"n": {"min": big + 1}}).tolist() == [False, True, False]
    assert aligned.mask({"n": {"max": big}}).tolist() == [True, False, True]
    assert aligned.mask({"n": {"max": "0"}}).tolist() == [False, False, True]
    assert not aligned.mask({"n": {"min": 10**400}}).any()
    assert aligned.mask({"n": {"min": -(10**400), "max": math.inf}}).all()


def test_bounds_past_all_floats_are_endless():
    aligned = shop()
    assert found({"price": {"min": -(10**400), "max": 10**400}}, aligned) == {"tea", "cup"}


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("shelf", r"where='shelf': must map columns to values; write it as \{'category': \['a', 'b'\]\}"),
        ({"shelve": "a"}, r"where\['shelve'\]: the catalogue table has no such column; its columns are: "
         r"shelf, year, open, price, tags; did you mean 'shelf'\?"),
        ({7: "a"}, r"where\[7\]: the catalogue table has no such column"),
        ({"shelf": None}, r"where\['shelf'\]=None: the column holds text; pass text; leave the column out for no cond"),
        ({"shelf": ["a", None]}, r"where\['shelf'\]=\['a', None\]: the column holds text; pass text$"),
        ({"shelf": True}, r"where\['shelf'\]=True: the column holds text"),
        ({"shelf": 1.5}, r"where\['shelf'\]=1.5: the column holds text"),
        ({"shelf": b"a"}, r"where\['shelf'\]=b'a': the column holds text"),
        ({"shelf": {"min": 1}}, r"where\['shelf'\]=\{'min': 1\}: the column holds text values, which have no range"),
        ({"open": {"min": 0}}, r"the column holds boolean values, which have no range"),
        ({"open": "yes"}, r"where\['open'\]='yes': the column holds booleans; pass true or false"),
        ({"open": 2}, r"where\['open'\]=2: the column holds booleans"),
        ({"open": [[True]]}, r"the column holds booleans"),
        ({"year": "new"}, r"where\['year'\]='new': the column holds whole numbers; pass one"),
        ({"year": "02001"}, r"where\['year'\]='02001': the column holds whole numbers"),
        ({"year": "2001.0"}, r"the column holds whole numbers"),
        ({"year": [2001, None]}, r"where\['year'\]=\[2001, None\]: the column holds whole numbers"),
        ({"price": "cheap"}, r"where\['price'\]='cheap': the column holds numbers; pass one"),
        ({"price": math.nan}, r"where\['price'\]=nan: the column holds numbers"),
        ({"price": True}, r"where\['price'\]=True: the column holds numbers"),
        ({"price": {}}, r"where\['price'\]=\{\}: the column takes a range with min, max or both; write it as"),
        ({"price": {"min": None}}, r"the column takes a range with min, max or both"),
        ({"price": {"from": 5}}, r"the column takes a range with min, max or both"),
        ({"price": {"min": "a"}}, r"the column takes numbers for min and max; leave one out for no limit"),
        ({"price": {"max": math.nan}}, r"the column takes numbers for min and max"),
        ({"price": {"min": 5, "max": 4}}, r"the column takes a range whose min is at most its max; exchange them"),
        ({"shelf": ["x" * 100, None]}, r"where\['shelf'\]=\['x{78}\.\.\.: the column"),
    ],
)  # fmt: skip
def test_conditions_that_cannot_be(where, message):
    with pytest.raises(QueryError, match=message):
        shop().mask(where)


def test_a_wrong_condition_leaves_nothing_behind():
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


def test_text_ids_and_integer_ids_find_each_other():
    table = pl.DataFrame({"item": ["7", "007", "x", "9"], "a": [1, 2, 3, 4]})
    aligned = Attributes.read(table).align(Vocabulary(np.array([9, 7])))
    assert aligned.mask({"a": 1}).tolist() == [False, True]
    assert aligned.mask({"a": 4}).tolist() == [True, False]
    assert aligned.unknown == 2
    numbered = Attributes.read(pl.DataFrame({"item": [7], "a": [1]})).align(Vocabulary(["x", "7"]))
    assert numbered.mask({"a": 1}).tolist() == [False, True]


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        (["1", "-20", ""], "integer"),
        (["007", "8"], "text"),
        (["1", "2.50", "1e3", "-0"], "number"),
        (["1.", "2"], "text"),
        (["True", "false", ""], "boolean"),
        (["true", "no"], "text"),
        (["nan", "1.5"], "text"),
        (["99999999999999999999"], "number"),
        (["", ""], "text"),
    ],
)
def test_what_a_column_of_a_text_file_holds(tmp_path, cells, kind):
    (tmp_path / "a.csv").write_text("item,a,b\n" + "".join(f"{row},{cell},x\n" for row, cell in enumerate(cells)))
    assert repr(Attributes.read(tmp_path / "a.csv")) == f"Attributes({len(cells)} items; a: {kind}, b: text)"


def test_lists_of_every_kind():
    table = pl.DataFrame(
        {
            "item": ["tea", "cup"],
            "years": [[1999, 2001], [None, 2005]],
            "prices": [[1.5], [2.5, None, 9.0]],
            "flags": [[True], [False, True]],
            "nothing": [[], []],
            "pair": pl.Series([["a", "b"], ["b", "c"]], dtype=pl.Array(pl.String, 2)),
        }
    )
    attributes = Attributes.read(table)
    kinds = "years: list of integer, prices: list of number, flags: list of boolean, nothing: list of text"
    assert repr(attributes) == f"Attributes(2 items; {kinds}, pair: list of text)"
    aligned = attributes.align(ITEMS)
    assert found({"years": {"min": 2000, "max": 2003}}, aligned) == {"tea"}
    assert found({"prices": {"min": 2, "max": 3}}, aligned) == {"cup"}
    assert found({"prices": [1.5, 9]}, aligned) == {"tea", "cup"}
    assert found({"flags": False}, aligned) == {"cup"}
    assert found({"nothing": "a"}, aligned) == set()
    assert found({"pair": "c"}, aligned) == {"cup"}


def test_columns_that_have_no_conditions_are_skipped():
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
        QueryError, match=r"where\['since'\]: no condition can be put on a column of type Date; cast it to text, whole"
    ):
        attributes.align(ITEMS).mask({"since": "2024-01-01"})


@pytest.mark.parametrize(
    ("table", "options", "message"),
    [
        ({"item": [1, 2, 1, 2, 3], "a": [0] * 5}, {},
         r"column 'item' of the DataFrame: 2 items have more than one row \(1, 2\); keep one row per item; several"),
        ({"item": list("abcdef") * 2, "a": [0] * 12}, {},
         r"6 items have more than one row \('a', 'b', 'c', 'd', 'e', \.\.\.\)"),
        ({"item": [1]}, {}, r"the DataFrame has no column but 'item'; a catalogue table needs an attribute"),
        ({"thing": [1], "a": [1]}, {}, r"no item column found in the DataFrame; its columns are: thing, a; name it"),
        ({"item": [1], "a": [1]}, {"item": "itme"}, r"item='itme': .* has no such column; .*did you mean 'item'\?"),
        ({"item": [1, None], "a": [1, 2]}, {}, r"1 of 2 rows have no item id"),
        ({"item": [], "a": []}, {}, r"the DataFrame has no rows"),
    ],
)  # fmt: skip
def test_tables_that_cannot_be_read(table, options, message):
    with pytest.raises(DataError, match=message):
        Attributes.read(pl.DataFrame(table), **options)


def test_a_table_of_other_items_is_a_warning():
    with pytest.warns(UserWarning, match="none of the 1 items of the model has a row in the catalogue table"):
        aligned = Attributes.read(SHOP).align(Vocabulary(["sofa"]))
    assert (aligned.missing, aligned.unknown) == (1, 5)
    assert not aligned.mask({"shelf": ["a", "b"]}).any()
    assert aligned.mask({}).all()


cell = st.none() | st.integers(-3, 3)
row = st.fixed_dictionaries({"word": st.none() | st.sampled_from("abc"), "whole": cell, "list": st.lists(cell)})
condition = st.fixed_dictionaries(
    {},
    optional={
        "word": st.sampled_from("abcz") | st.lists(st.sampled_from("abcz")),
        "whole": st.integers(-4, 4) | st.tuples(st.integers(-4, 4), st.integers(0, 4)),
        "list": st.lists(st.integers(-4, 4)) | st.tuples(st.integers(-4, 4), st.integers(0, 4)),
    },
)


@settings(deadline=None)
@given(st.lists(row, min_size=1, max_size=8), condition)
def test_masks_agree_with_one_item_at_a_time(rows, asked):
    def holds(value, one):
        values = [each for each in (value if isinstance(value, list) else [value]) if each is not None]
        if isinstance(one, tuple):
            return any(one[0] <= each <= sum(one) for each in values)
        return any(each in (one if isinstance(one, list) else [one]) for each in values)

    schema = {"item": pl.Int64, "word": pl.String, "whole": pl.Int64, "list": pl.List(pl.Int64)}
    table = pl.DataFrame([{"item": number, **one} for number, one in enumerate(rows)], schema=schema)
    where = {name: {"min": one[0], "max": sum(one)} if isinstance(one, tuple) else one for name, one in asked.items()}
    mask = Attributes.read(table).align(Vocabulary(np.arange(len(rows)))).mask(where)
    assert mask.tolist() == [all(holds(one[name], asked[name]) for name in asked) for one in rows]


class TestCache:
    def test_masks_cannot_be_written_to(self):
        with pytest.raises(ValueError, match="read-only"):
            shop().mask({"shelf": "a"})[0] = False

    def test_the_same_conditions_are_the_same_mask(self):
        aligned = shop()
        mask = aligned.mask({"shelf": ["a", "b"], "year": {"min": 2000}})
        assert aligned.mask({"year": {"min": 2000, "max": None}, "shelf": ["b", "a", "a", "unheard"]}) is mask
        assert aligned.mask({"shelf": ["a", "b"]}) is not mask

    def test_the_masks_used_longest_ago_go_first(self):
        entry = 1024 + 64 + len(ITEMS)
        aligned = Attributes.read(SHOP).align(ITEMS, cache_bytes=2 * entry)
        first, second = aligned.mask({"year": 2001}), aligned.mask({"year": 1999})
        assert aligned.mask({"year": 2001}) is first
        aligned.mask({"shelf": "a"})
        assert aligned.mask({"year": 2001}) is first
        assert aligned.mask({"year": 1999}) is not second

    def test_without_room_every_mask_is_new(self):
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
