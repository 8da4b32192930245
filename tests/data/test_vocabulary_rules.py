"""The rules of a stored vocabulary."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pathdex.data import vocabulary_rules
from pathdex.data.vocabulary import Vocabulary
from pathdex.data.vocabulary_rules import vocabulary_problems

NUMBERS = Vocabulary(np.array([5, 9, 7])).arrays()
WORDS = Vocabulary(["a", "zwölf", "", "€"]).arrays()


def problems(arrays: dict[str, Any], **options: Any) -> list[str]:
    return vocabulary_problems(arrays, **options)[0]


@pytest.fixture
def slots(monkeypatch: pytest.MonkeyPatch) -> None:
    """Vocabularies are indexed as if they were large."""
    monkeypatch.setattr(vocabulary_rules, "DICT_LIMIT", 1)
    monkeypatch.setattr("pathdex.data.vocabulary.DICT_LIMIT", 1)


@pytest.mark.parametrize("arrays", [NUMBERS, WORDS, Vocabulary([]).arrays(), Vocabulary(np.empty(0, int)).arrays()])
def test_what_a_vocabulary_writes_is_valid(arrays: dict[str, Any]) -> None:
    count = len(Vocabulary.from_arrays(arrays))
    assert vocabulary_problems(arrays) == ([], count)


@pytest.mark.usefixtures("slots")
@pytest.mark.parametrize("ids", [np.array([5, 9, 7]), ["a", "zwölf", "", "€"]])
def test_a_large_vocabulary_has_the_index_of_its_ids(ids: Any) -> None:
    arrays = Vocabulary(ids).arrays()
    assert problems(arrays) == []
    swapped = {**arrays, "slots": np.roll(arrays["slots"], 1)}
    assert problems(swapped) == ["slots: is not the index of these ids"]
    assert problems({**arrays, "slots": arrays["slots"][:-1]}) != []
    assert problems({**arrays, "slots": np.full_like(arrays["slots"], 10**9)})[0].startswith("slots: holds 1000000000")
    assert problems(arrays, index=False) == ["slots: is not an array of this estimator"]


def test_ids_are_distinct() -> None:
    assert problems({"ids": np.array([5, 9, 5])}) == ["ids: one occurs twice, must be distinct"]
    assert problems(Vocabulary(["a", "b", "a"]).arrays()) == ["ids: one occurs twice, must be distinct"]


@pytest.mark.usefixtures("slots")
def test_ids_of_a_large_vocabulary_are_distinct() -> None:
    assert problems({"ids": np.array([5, 9, 5])}) == ["ids: one occurs twice, must be distinct"]


def test_removed_codes_have_no_id() -> None:
    gone = {"ids": np.array([0, 9, 0]), "removed": np.array([0, 2])}
    assert vocabulary_problems(gone) == ([], 3)
    assert problems({**gone, "removed": np.array([2, 0])}) == ["removed: must be ascending and distinct"]
    assert problems({**gone, "removed": np.array([0, 3])}) == ["removed: holds 3, must hold no value above 2"]


def test_text_is_utf_8() -> None:
    broken = WORDS["text"].copy()
    broken[2] = 0xFF
    assert problems({**WORDS, "text": broken}) == ["text: is not UTF-8"]
    within = WORDS["offsets"].copy()
    within[1] = 4  # "zwö" is z, w and two bytes.
    assert problems({**WORDS, "offsets": within}) == ["offsets: an id begins within a character"]
    half = {"text": WORDS["text"][:-1], "offsets": np.array([0, 1, 7, 7, 9])}
    assert problems(half) == ["text: is not UTF-8"]


def test_offsets_end_where_the_text_ends() -> None:
    longer = np.append(WORDS["offsets"][:-1], 10**9)
    assert problems({**WORDS, "offsets": longer}) == ["offsets: must begin at 0 and end at 10"]


def test_integers_and_texts_do_not_mix() -> None:
    assert problems({**NUMBERS, **WORDS}) != []
    assert problems({}) == ["text: is missing", "offsets: is missing"]
    assert problems({**NUMBERS, "more": NUMBERS["ids"]}) == ["more: is not an array of this estimator"]


def test_without_values_only_shapes_are_checked() -> None:
    assert problems({"ids": np.array([5, 9, 5])}, values=False) == []
