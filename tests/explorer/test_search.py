"""Search: words and their beginnings, against a plain loop."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pathdex.explorer.labels import normalize
from pathdex.explorer.search import MAX_WORDS, WORD_BYTES, TitleSearch, words_of

TITLES = ["260 Star Wars: Épisode IV (1977)", "1 Toy Story", None, "7 Start me up", "9 ÜMLÄUT über", ""]
SEARCH = TitleSearch(pl.Series(TITLES))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("star", [0, 3]),
        ("Star wars", [0]),
        ("wars STAR", [0]),
        ("epi star", [0]),
        ("épi", [0]),
        ("umlaut", [4]),
        ("ub", [4]),
        ("26", [0]),
        ("19", [0]),
        ("tory", []),
        ("(", []),
        ("", []),
        ("x" * 100, []),
    ],
)
def test_words_are_found_by_their_beginnings(text: str, found: list[int]) -> None:
    assert SEARCH.find(text).tolist() == found


words = st.lists(st.sampled_from(["a", "ab", "abc", "b", "ba", "é", "e", "ß"]), min_size=0, max_size=4).map(" ".join)


@given(st.lists(words, min_size=1, max_size=6), words)
def test_it_agrees_with_a_loop(titles: list[str], text: str) -> None:
    wanted = normalize(text).split()
    expected = [
        place
        for place, title in enumerate(titles)
        if wanted and all(any(own.startswith(one) for own in normalize(title).split()) for one in wanted)
    ]
    assert TitleSearch(pl.Series(titles, dtype=pl.String)).find(text).tolist() == expected


def test_long_words_are_compared_by_their_first_bytes() -> None:
    search = TitleSearch(pl.Series(["x" * WORD_BYTES + "one", "x" * WORD_BYTES + "two"]))
    assert search.find("x" * WORD_BYTES + "three").tolist() == [0, 1]
    assert search.num_bytes > 0


def test_only_some_words_count() -> None:
    assert len(words_of(" ".join(f"w{number}" for number in range(50)))) == MAX_WORDS


def test_a_catalogue_without_text_finds_nothing() -> None:
    assert TitleSearch(pl.Series([None, None], dtype=pl.String)).find("a").tolist() == []
