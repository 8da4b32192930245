import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pathdex.data import UNKNOWN, Vocabulary

texts = st.lists(st.text(max_size=6), unique=True, max_size=10)


@given(texts)
def test_text_ids_come_back(ids):
    vocabulary = Vocabulary(ids)
    assert vocabulary.kind == "str"
    assert vocabulary.ids(range(len(vocabulary))) == ids
    assert vocabulary.codes(ids).tolist() == list(range(len(ids)))


@given(texts)
def test_a_column_gives_the_same_vocabulary_as_a_list(ids):
    column = Vocabulary.from_column(pl.Series(ids, dtype=pl.String))
    assert column.ids(range(len(column))) == ids


@given(texts, st.data())
def test_take_renumbers_in_the_order_asked(ids, data):
    codes = data.draw(st.permutations(range(len(ids))))[: len(ids) // 2]
    taken = Vocabulary(ids).take(np.array(codes, np.int64))
    assert taken.ids(range(len(taken))) == [ids[code] for code in codes]


def test_a_slice_of_a_column_keeps_only_its_own_text():
    column = pl.Series(["aa", "bbb", "c", "dd"]).slice(1, 2)
    vocabulary = Vocabulary.from_column(column)
    assert vocabulary.ids([0, 1]) == ["bbb", "c"]
    assert vocabulary.arrays()["text"].tobytes() == b"bbbc"


@pytest.mark.parametrize("dtype", [pl.Int8, pl.UInt32, pl.Int64])
def test_integer_columns_become_int64(dtype):
    vocabulary = Vocabulary.from_column(pl.Series([3, 1], dtype=dtype))
    assert vocabulary.kind == "int"
    assert vocabulary.arrays()["ids"].dtype == np.int64
    assert vocabulary.ids([0, 1]) == [3, 1]


def test_integer_ids_can_be_taken():
    assert Vocabulary(np.array([30, 10, 20])).take(np.array([2, 0])).ids([0, 1]) == [20, 30]


def test_text_and_integer_find_each_other():
    assert Vocabulary(np.array([7, 12])).code("12") == 1
    assert Vocabulary(["7", "12"]).code(12) == 1


@pytest.mark.parametrize("one", ["012", "1_2", "12.0", " 12", "x", "", 12.7, None, float("inf")])
def test_what_only_resembles_an_integer_id_is_unknown(one):
    assert Vocabulary(np.array([12])).code(one) == UNKNOWN


def test_contains_asks_for_ids_only():
    vocabulary = Vocabulary(np.array([12]))
    assert 12 in vocabulary
    assert "12" in vocabulary
    assert 13 not in vocabulary
    assert None not in vocabulary


@pytest.mark.parametrize("ids", [np.array([5, 3]), ["x", "grün", ""]])
def test_arrays_bring_the_vocabulary_back(ids):
    vocabulary = Vocabulary(ids)
    again = Vocabulary.from_arrays(vocabulary.arrays())
    assert again.kind == vocabulary.kind
    assert again.ids(range(len(again))) == vocabulary.ids(range(len(vocabulary)))


def test_repr_is_short():
    assert repr(Vocabulary(["a", "b"])) == "Vocabulary(2 str ids)"
