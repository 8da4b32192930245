"""Columns of a catalogue table and the conditions on them."""

import math

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pathdex.data import Attributes, Vocabulary
from pathdex.data.attribute_filters import AnyOf, Between, make_column
from pathdex.errors import QueryError
from tests.data.test_attributes import ITEMS, found, shop


def test_conditions_are_dictionary_codes():
    column = make_column(pl.Series("shelf", ["b", "a", None, "c"]), text_file=False)
    assert (column.kind, column.data.tolist()) == ("text", [1, 0, -1, 2])
    assert column.condition("c") == column.condition(["c", "unknown"]) == AnyOf((2,))
    assert column.select(column.condition(["c", "b"]), 4).tolist() == [True, False, False, True]


def test_ranges_are_dictionary_codes_for_integers_and_values_for_numbers():
    whole = make_column(pl.Series("year", [1999, 2005, 2001]), text_file=False)
    assert whole.condition({"min": 2000}) == Between(1, 2)
    assert whole.condition({"min": 2006}) == AnyOf(())
    number = make_column(pl.Series("price", [2.5, 7.0]), text_file=False)
    assert number.condition({"max": 5}) == Between(-math.inf, 5.0)


def test_errors_carry_fields():
    column = make_column(pl.Series("shelf", ["a"]), text_file=False)
    with pytest.raises(QueryError) as caught:
        column.condition(1.5)
    error = caught.value
    assert (error.argument, error.value, error.rule, error.remedy) == (
        "where['shelf']",
        1.5,
        "the column holds text",
        "pass text",
    )


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
def test_conditions_select_items(where, expected):
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
def test_text_and_numbers_match_like_ids(column, value, same):
    table = pl.DataFrame(
        {"item": [1, 2], "number": [12, 1], "word": ["12", "1"], "fraction": [12.0, 0.5], "truth": [True, False]}
    )
    aligned = Attributes.read(table).align(Vocabulary(np.array([1, 2])))
    mask = aligned.mask({column: value})
    assert mask.sum() == 1
    for other in same:
        # Equal conditions share one mask.
        assert aligned.mask({column: other}) is mask
    assert not aligned.mask({"number": 12.7}).any()
    assert not aligned.mask({"word": "012"}).any()
    assert not aligned.mask({"number": 10**30}).any()


def test_integer_bounds_are_exact():
    big = 2**60
    aligned = Attributes.read(pl.DataFrame({"item": [0, 1, 2], "n": [big, big + 1, -(2**63)]})).align(
        Vocabulary(np.arange(3))
    )
    assert aligned.mask({"n": {"min": big + 1}}).tolist() == [False, True, False]
    assert aligned.mask({"n": {"max": big}}).tolist() == [True, False, True]
    assert aligned.mask({"n": {"max": "0"}}).tolist() == [False, False, True]
    assert not aligned.mask({"n": {"min": 10**400}}).any()
    assert aligned.mask({"n": {"min": -(10**400), "max": math.inf}}).all()


def test_bounds_beyond_float64_are_infinite():
    aligned = shop()
    assert found({"price": {"min": -(10**400), "max": 10**400}}, aligned) == {"tea", "cup"}


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("shelf", r"where='shelf': must map columns to values; write it as \{'category': \['a', 'b'\]\}"),
        ({"shelve": "a"}, r"where\['shelve'\]='a': the catalogue table has no such column; its columns are: "
         r"shelf, year, open, price, tags; did you mean 'shelf'\?"),
        ({7: "a"}, r"where\[7\]='a': the catalogue table has no such column"),
        ({"shelf": None}, r"where\['shelf'\]=None: the column holds text; pass text, or leave the column out"),
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
        ({"price": {"min": 5, "max": 4}}, r"the column takes a range whose min is at most its max; swap them"),
        ({"shelf": ["x" * 300, None]}, r"where\['shelf'\]=\['x{198}\.\.\.: the column"),
    ],
)  # fmt: skip
def test_invalid_conditions_are_errors(where, message):
    with pytest.raises(QueryError, match=message):
        shop().mask(where)


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
def test_column_kinds_in_text_files(tmp_path, cells, kind):
    (tmp_path / "a.csv").write_text("item,a,b\n" + "".join(f"{row},{cell},x\n" for row, cell in enumerate(cells)))
    assert repr(Attributes.read(tmp_path / "a.csv")) == f"Attributes({len(cells)} items; a: {kind}, b: text)"


def test_list_columns_of_every_kind():
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
def test_masks_agree_with_a_check_of_each_item(rows, asked):
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
