"""The hash index: the same answers as a dict, even if slots collide or the arrays are damaged."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pathdex.data.id_index import EMPTY, find_integers, find_texts, index_integers, index_texts
from pathdex.data.vocabulary import SLOTS_PER_ID

int64s = st.integers(-(2**63), 2**63 - 1)


def packed(texts):
    """Texts back to back, and their lengths."""
    encoded = [text.encode() for text in texts]
    return np.frombuffer(b"".join(encoded), np.uint8), np.array([len(one) for one in encoded], np.int64)


def offsets(lengths):
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


@settings(deadline=None)
@given(st.lists(st.integers(-3, 9) | int64s, unique=True), st.lists(st.integers(-3, 9) | int64s))
def test_integers_are_found_as_in_a_dict(ids, wanted):
    array = np.array(ids, np.int64)
    slots = index_integers(array, np.zeros(len(array), np.bool_))
    assert len(slots) == SLOTS_PER_ID * len(ids)
    assert sorted(slots[slots != EMPTY].tolist()) == list(range(len(ids)))
    known = {one: code for code, one in enumerate(ids)}
    found = find_integers(array, slots, np.array([*ids, *wanted], np.int64))
    assert found.tolist() == [known.get(one, -1) for one in [*ids, *wanted]]


@settings(deadline=None)
@given(st.lists(st.text("ab", max_size=4) | st.text(), unique=True), st.lists(st.text("ab", max_size=4)))
def test_texts_are_found_as_in_a_dict(ids, wanted):
    text, lengths = packed(ids)
    slots = index_texts(text, offsets(lengths), np.zeros(len(lengths), np.bool_))
    known = {one: code for code, one in enumerate(ids)}
    found = find_texts(text, offsets(lengths), slots, *packed([*ids, *wanted]))
    assert found.tolist() == [known.get(one, -1) for one in [*ids, *wanted]]


def test_the_same_ids_give_the_same_slots():
    ids = np.arange(100, dtype=np.int64) * 7919
    none = np.zeros(len(ids), np.bool_)
    assert index_integers(ids, none).tolist() == index_integers(ids.copy(), none).tolist()


@pytest.mark.parametrize("code", [0, 3, -7, 2**31 - 1])
def test_a_damaged_index_gives_no_wrong_code(code):
    ids = np.array([5, 6, 7], np.int64)
    slots = np.full(6, code, np.int32)
    assert find_integers(ids, slots, ids).tolist() == [0 if code == 0 else -1, -1, -1]
    text, lengths = packed(["x", "yy", "z"])
    found = find_texts(text, offsets(lengths), slots, text, lengths)
    assert found.tolist() == [0 if code == 0 else -1, -1, -1]
