"""Find items by the beginnings of words of their titles: a sorted index of words, built at the first search.

Case and diacritics make no difference. Items are numbered by popularity, so answers come in that order.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from pathdex.data.vocabulary import Vocabulary
from pathdex.explorer.labels import normalize
from pathdex.kernels.types import Int32s, Ints

MAX_INDEXED = 2_000_000
"""Items whose words are indexed, the most popular; this bounds memory."""
WORD_BYTES = 24
"""Bytes of a word that are compared."""
MAX_WORDS = 8
"""Words of a search that count."""
_SPLIT = r"[\p{L}\p{N}]+"


class TitleSearch:
    """Words of titles to items. `texts` are those of the items by popularity, null for none."""

    def __init__(self, texts: pl.Series) -> None:
        self.num_items = len(texts)
        words = (
            pl.DataFrame({"text": texts})
            .with_row_index("item")
            .drop_nulls()
            .with_columns(pl.col("text").str.to_lowercase().str.normalize("NFKD").str.replace_all(r"\p{M}", ""))
            .select("item", pl.col("text").str.extract_all(_SPLIT).alias("word"))
            .explode("word", empty_as_null=False)
            .drop_nulls()
        )
        codes, distinct = Vocabulary.encode(words["word"])
        # As numbers, pairs of word and item are sorted several times as fast as with text.
        pairs = np.unique(codes * np.int64(max(1, self.num_items)) + words["item"].to_numpy())
        self._items: Int32s = (pairs % max(1, self.num_items)).astype(np.int32)
        ends = np.cumsum(np.bincount(pairs // max(1, self.num_items), minlength=len(distinct)))
        self._starts: Ints = np.concatenate([[0], ends]).astype(np.int64)
        self._words: NDArray[np.bytes_] = _as_bytes(distinct)

    def find(self, text: str) -> Ints:
        """Items with words that begin with each word of a text, by popularity."""
        wanted = words_of(text)
        if not wanted:
            return np.empty(0, np.int64)
        kept: NDArray[np.bool_] | None = None
        for word in wanted:
            first, last = self._range(word.encode()[:WORD_BYTES])
            mask = np.zeros(self.num_items, np.bool_)
            mask[self._items[self._starts[first] : self._starts[last]]] = True
            kept = mask if kept is None else kept & mask
        assert kept is not None
        return np.flatnonzero(kept)

    def _range(self, word: bytes) -> tuple[int, int]:
        first = int(np.searchsorted(self._words, np.bytes_(word)))
        # The next string that does not begin with the word.
        last = int(np.searchsorted(self._words, np.bytes_(word + b"\xff"))) if len(word) < WORD_BYTES else None
        if last is None:
            last = int(np.searchsorted(self._words, np.bytes_(word), "right"))
        return first, last

    @cached_property
    def num_bytes(self) -> int:
        """The memory of the index."""
        arrays: list[NDArray[Any]] = [self._words, self._starts, self._items]
        return sum(one.nbytes for one in arrays)


def words_of(text: str) -> list[str]:
    """The normalised words of a search."""
    plain = normalize(text)
    found = pl.Series([plain]).str.extract_all(_SPLIT)[0].to_list()
    return list(dict.fromkeys(found))[:MAX_WORDS]


def _as_bytes(words: Vocabulary) -> NDArray[np.bytes_]:
    """The first bytes of each word."""
    arrays = words.arrays(index=False)
    text, starts = arrays["text"], arrays["offsets"][:-1]
    lengths = np.diff(arrays["offsets"])
    cut = np.zeros((len(words), WORD_BYTES), np.uint8)
    for place in range(WORD_BYTES):
        has = np.flatnonzero(lengths > place)
        cut[has, place] = text[starts[has] + place]
    return cut.reshape(-1).view(f"S{WORD_BYTES}")
