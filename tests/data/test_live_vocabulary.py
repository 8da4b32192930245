"""A vocabulary that changes equals one that is built again."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pathdex.data.live_vocabulary import LiveVocabulary
from pathdex.data.vocabulary import Vocabulary
from pathdex.errors import DataError

NONE = np.empty(0, np.int64)


def test_new_removed_and_returning_ids() -> None:
    live = LiveVocabulary(Vocabulary(["a", "b", "c"]))
    live.apply(np.array([3]), Vocabulary(["d"]), np.array([1]), 4)
    assert live.codes(["a", "b", "c", "d", "e"]).tolist() == [0, -1, 2, 3, -1]
    assert (len(live), live.num_ids, live.removed.tolist()) == (4, 3, [1])
    live.apply(np.array([1]), Vocabulary(["e"]), NONE, 4)
    assert live.ids([0, 1, 2, 3]) == ["a", "e", "c", "d"]
    assert live.num_ids == 4
    live.apply(np.array([4]), Vocabulary(["b"]), np.array([3]), 5)
    assert live.codes(["b", "d"]).tolist() == [4, -1]
    assert "d" not in live
    assert live.id(4) == "b"
    assert live.first_ids(9) == ["a", "e", "c", "b"]
    assert live.column().to_list() == ["a", "e", "c", None, "b"]


def test_a_vocabulary_can_begin_empty() -> None:
    live = LiveVocabulary(Vocabulary([]))
    live.apply(np.array([0]), Vocabulary(np.array([7])), NONE, 1)
    assert live.kind == "int"
    assert live.code("7") == 0


def test_text_does_not_join_integers_but_integers_become_text() -> None:
    numbers, texts = Vocabulary(np.array([1, 2])), Vocabulary(["a"])
    live = LiveVocabulary(numbers)
    message = "the catalogue has integer ids, and 'x' is text; use integers, or write a new base with text ids"
    for change in (live.apply, numbers.with_changes):
        with pytest.raises(DataError, match=message):
            change(np.array([2]), Vocabulary(["x"]), NONE, 3)
    assert live.ids([0, 1]) == [1, 2]
    live = LiveVocabulary(texts)
    live.apply(np.array([1]), Vocabulary(np.array([7])), NONE, 2)
    plain = texts.with_changes(np.array([1]), Vocabulary(np.array([7])), NONE, 2)
    assert live.ids([0, 1]) == plain.ids([0, 1]) == ["a", "7"]
    assert live.codes([7, "7"]).tolist() == plain.codes([7, "7"]).tolist() == [1, 1]


def test_a_change_without_ids_may_have_either_type() -> None:
    for none in (Vocabulary([]), Vocabulary(NONE)):
        for items in (Vocabulary(["5", "6"]), Vocabulary(np.array([5, 6]))):
            live, plain = LiveVocabulary(items), items.with_changes(NONE, none, np.array([0]), 2)
            live.apply(NONE, none, np.array([0]), 2)
            assert live.codes([5, 6]).tolist() == plain.codes([5, 6]).tolist() == [-1, 1]


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3), st.integers(0, 3)), max_size=6), st.booleans())
def test_any_changes_equal_the_plain_version(steps: list[tuple[int, int, int]], text: bool) -> None:
    def vocabulary(numbers: list[int]) -> Vocabulary:
        return Vocabulary([str(one) for one in numbers]) if text else Vocabulary(np.array(numbers, np.int64))

    plain, fresh = vocabulary([50, 51, 52]), 100
    live = LiveVocabulary(plain)
    for new, reused, removed in steps:
        places = plain.removed[:reused]
        living = np.setdiff1d(np.arange(len(plain)), plain.removed)
        codes = np.concatenate([places, np.arange(len(plain), len(plain) + new)])
        ids = vocabulary(list(range(fresh, fresh + len(codes))))
        fresh += len(codes)
        change = codes, ids, living[:removed], len(plain) + new
        plain = plain.with_changes(*change)
        live.apply(*change)
        asked = [*range(48, 55), *range(99, fresh + 1)]
        assert live.codes(asked).tolist() == plain.codes(asked).tolist()
        assert [live.code(one) for one in asked] == plain.codes(asked).tolist()
        assert live.removed.tolist() == plain.removed.tolist()
        assert live.num_ids == plain.num_ids
        assert live.column().to_list() == plain.column().to_list()
        for name, array in plain.arrays().items():
            assert live.arrays()[name].tolist() == array.tolist()
