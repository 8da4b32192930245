"""Ids to codes and back, for few ids and for many."""

from contextlib import contextmanager
from decimal import Decimal

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pathdex.data import UNKNOWN, Vocabulary, vocabulary
from pathdex.errors import DataError

texts = st.lists(st.text(max_size=6), unique=True, max_size=10)
int64s = st.integers(-(2**63), 2**63 - 1)
no_deadline = settings(deadline=None)
integers = st.lists(st.integers(-5, 20) | int64s, unique=True, max_size=30)


@contextmanager
def looked_up_in(way):
    """Look ids up in the dict or in the hash index, however many there are."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vocabulary, "DICT_LIMIT", {"dict": 10**9, "index": -1}[way])
        yield


@pytest.fixture(params=["dict", "index"])
def both_ways(request):
    with looked_up_in(request.param):
        yield


@no_deadline
@given(texts)
def test_text_ids_round_trip(ids):
    vocabulary = Vocabulary(ids)
    assert vocabulary.kind == "str"
    assert vocabulary.ids(range(len(vocabulary))) == ids
    assert vocabulary.codes(ids).tolist() == list(range(len(ids)))


@no_deadline
@given(texts)
def test_a_column_gives_the_same_vocabulary_as_a_list(ids):
    column = Vocabulary.from_column(pl.Series(ids, dtype=pl.String))
    assert column.ids(range(len(column))) == ids


@no_deadline
@given(texts, st.data())
def test_take_renumbers_in_the_given_order(ids, data):
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


@pytest.mark.usefixtures("both_ways")
def test_text_matches_integer_ids():
    assert Vocabulary(np.array([7, 12])).code("12") == 1
    assert Vocabulary(["7", "12"]).code(12) == 1


UNLIKE_12 = ["012", "1_2", "12.0", " 12", "１２", "x", "", b"12", 12.7, None, float("inf"), float("nan"), 10**30, [12]]


@pytest.mark.usefixtures("both_ways")
@pytest.mark.parametrize("one", UNLIKE_12)
def test_values_that_resemble_an_integer_id_are_unknown(one):
    assert Vocabulary(np.array([12, 0])).code(one) == UNKNOWN
    assert Vocabulary(np.array([12, 0])).codes([0, one, 12]).tolist() == [1, UNKNOWN, 0]


@pytest.mark.usefixtures("both_ways")
@pytest.mark.parametrize(
    "one", ["12", 12, 12.0, Decimal(12), np.int8(12), np.uint64(12), np.float32(12), np.str_("12")]
)
def test_values_equal_to_an_integer_id_match_it(one):
    assert Vocabulary(np.array([0, 12])).code(one) == 1
    assert Vocabulary(np.array([0, 12])).codes((one, "0")).tolist() == [1, 0]


@pytest.mark.usefixtures("both_ways")
def test_values_match_text_ids_by_their_text():
    ids = ["12", "12.5", "None", "True", "grün", "", "b'12'"]
    asked = [12, 12.5, None, True, "grün", "", b"12", "gru\u0308n", "\ud800", "1", "x"]
    assert Vocabulary(ids).codes(asked).tolist() == [0, 1, 2, 3, 4, 5, 6, *[UNKNOWN] * 4]
    assert [Vocabulary(ids).code(one) for one in asked] == [0, 1, 2, 3, 4, 5, 6, *[UNKNOWN] * 4]


@pytest.mark.usefixtures("both_ways")
@pytest.mark.parametrize(
    "asked",
    [
        np.array([30, 7, 10]),
        np.array([30, 7, 10], np.uint8),
        np.array(["30", "7", "10"]),
        (30, 7, 10),
    ],
)
def test_ids_come_in_any_container(asked):
    assert Vocabulary(np.array([10, 30])).codes(asked).tolist() == [1, UNKNOWN, 0]
    assert Vocabulary(np.array([10, 30])).codes(iter(asked)).tolist() == [1, UNKNOWN, 0]


@pytest.mark.parametrize("way", ["dict", "index"])
@no_deadline
@given(integers, st.lists(int64s | st.integers(-5, 20) | st.integers()))
def test_integer_lookups_agree_with_a_dict(way, ids, asked):
    plain = {one: code for code, one in enumerate(ids)}
    expected = [plain.get(one, UNKNOWN) for one in [*ids, *asked]]
    with looked_up_in(way):
        words = Vocabulary(np.array(ids, np.int64))
        assert words.codes([*ids, *asked]).tolist() == expected
        assert words.codes([str(one) for one in [*ids, *asked]]).tolist() == expected
        assert [words.code(one) for one in [*ids, *asked]] == expected


@pytest.mark.parametrize("way", ["dict", "index"])
@no_deadline
@given(st.lists(st.text("ab", max_size=4) | st.text(), unique=True, max_size=30), st.lists(st.text("ab") | st.text()))
def test_text_lookups_agree_with_a_dict(way, ids, asked):
    plain = {one: code for code, one in enumerate(ids)}
    expected = [plain.get(one, UNKNOWN) for one in [*ids, *asked]]
    with looked_up_in(way):
        assert Vocabulary(ids).codes([*ids, *asked]).tolist() == expected
        assert [Vocabulary(ids).code(one) for one in [*ids, *asked]] == expected


@pytest.mark.parametrize("way", ["dict", "index"])
@no_deadline
@given(st.lists(st.integers(0, 3), max_size=8))
def test_the_last_of_duplicate_ids_wins(way, ids):
    plain = {one: code for code, one in enumerate(ids)}
    with looked_up_in(way):
        assert Vocabulary(np.array(ids, np.int64)).codes(range(5)).tolist() == [plain.get(one, -1) for one in range(5)]
        named = Vocabulary([str(one) for one in ids])
        assert named.codes(range(5)).tolist() == [plain.get(one, -1) for one in range(5)]


def test_contains_accepts_ids_only():
    vocabulary = Vocabulary(np.array([12]))
    assert 12 in vocabulary
    assert "12" in vocabulary
    assert 13 not in vocabulary
    assert None not in vocabulary


@pytest.mark.parametrize("ids", [np.array([5, 3]), ["x", "grün", ""]])
def test_arrays_round_trip(ids):
    vocabulary = Vocabulary(ids)
    again = Vocabulary.from_arrays(vocabulary.arrays())
    assert again.kind == vocabulary.kind
    assert again.ids(range(len(again))) == vocabulary.ids(range(len(vocabulary)))


@pytest.mark.parametrize("ids", [np.array([5, 3, 9]), ["x", "grün", ""]])
class TestIndex:
    """The hash index, with every vocabulary treated as large."""

    @pytest.fixture(autouse=True)
    def large(self):
        with looked_up_in("index"):
            yield

    def test_it_is_stored_with_the_ids(self, ids):
        arrays = Vocabulary(ids).arrays()
        assert (arrays["slots"].dtype, arrays["slots"].shape) == (np.int32, (6,))
        assert sorted(arrays["slots"].tolist()) == [-1, -1, -1, 0, 1, 2]
        assert "slots" not in Vocabulary(ids).arrays(index=False)

    def test_the_same_ids_give_the_same_index(self, ids):
        first, second = Vocabulary(ids).arrays(), Vocabulary(ids).take(np.arange(3)).arrays()
        assert first["slots"].tolist() == second["slots"].tolist()

    def test_it_is_mapped_without_copies(self, ids, tmp_path):
        for name, array in Vocabulary(ids).arrays().items():
            np.save(tmp_path / f"{name}.npy", array)
        mapped = {file.stem: np.load(file, mmap_mode="r") for file in tmp_path.iterdir()}
        opened = Vocabulary.from_arrays(mapped)
        assert opened.codes(opened.ids(range(3))).tolist() == [0, 1, 2]
        assert all(np.shares_memory(array, mapped[name]) for name, array in opened.arrays().items())

    def test_without_it_the_index_is_built(self, ids):
        opened = Vocabulary.from_arrays(Vocabulary(ids).arrays(index=False))
        assert opened.codes(opened.ids(range(3))).tolist() == [0, 1, 2]

    def test_the_index_of_other_ids_is_an_error(self, ids):
        arrays = Vocabulary(ids).arrays()
        for slots in (arrays["slots"][:-1], arrays["slots"].astype(np.int64)):
            with pytest.raises(
                DataError, match=r"slots: int.. of shape .* is not an index of 3 ids; leave it out to build it again"
            ):
                Vocabulary.from_arrays({**arrays, "slots": slots})

    @pytest.mark.parametrize("code", [0, 3, -7, 2**31 - 1])
    def test_a_damaged_index_gives_no_wrong_code(self, ids, code):
        words = Vocabulary(ids)
        damaged = Vocabulary.from_arrays({**words.arrays(), "slots": np.full(6, code, np.int32)})
        assert damaged.codes(words.ids(range(3))).tolist() == [0 if code == 0 else UNKNOWN, UNKNOWN, UNKNOWN]


def test_few_ids_are_stored_without_an_index():
    assert list(Vocabulary(np.array([5, 3])).arrays()) == ["ids"]
    assert list(Vocabulary(["a"]).arrays()) == ["text", "offsets"]


@no_deadline
@given(texts)
def test_a_vocabulary_becomes_a_column(ids):
    assert Vocabulary(ids).column().to_list() == ids
    assert Vocabulary(np.array([3, 1])).column().to_list() == [3, 1]


@no_deadline
@given(st.lists(st.text(max_size=2)))
def test_encoding_numbers_the_values_in_sorted_order(values):
    codes, distinct = Vocabulary.encode(pl.Series(values, dtype=pl.String))
    assert distinct.ids(range(len(distinct))) == sorted(set(values), key=str.encode)
    assert distinct.ids(codes) == values


def test_repr_is_short():
    assert repr(Vocabulary(["a", "b"])) == "Vocabulary(2 str ids)"


@pytest.mark.parametrize("many", [False, True])
def test_a_removed_code_has_no_id(monkeypatch: pytest.MonkeyPatch, many: bool) -> None:
    monkeypatch.setattr(vocabulary, "DICT_LIMIT", 0 if many else 100)
    for first in (Vocabulary(["a", "b", "c"]), Vocabulary(np.array([0, 7, 8]))):
        a, b, c = first.ids(range(3))
        changed = first.with_changes(np.array([3]), first.take(np.array([1])), np.array([0, 1]), 4)
        for one in (changed, Vocabulary.from_arrays(changed.arrays())):
            assert one.codes([a, b, c]).tolist() == [-1, 3, 2]
            assert a not in one
            assert (len(one), one.num_ids, one.removed.tolist()) == (4, 2, [0, 1])
            assert one.first_ids(5) == [c, b]
            assert one.column().to_list() == [None, None, c, b]
