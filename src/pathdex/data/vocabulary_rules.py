"""What the arrays of a stored vocabulary must hold before an id is looked up in them."""

from __future__ import annotations

import codecs
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pathdex.data.vocabulary import DICT_LIMIT, SLOTS_PER_ID, Vocabulary
from pathdex.storage.array_spec import ArraySpec, array_problems, blocks, offsets_spec

MAX_IDS = 2**31 - 1
"""Codes are stored in 32 bits."""
_CONTINUATION, _MASK = 0x80, 0xC0
"""Bytes of this form continue a character in UTF-8."""


def vocabulary_problems(
    arrays: Mapping[str, NDArray[Any]], *, index: bool = True, values: bool = True
) -> tuple[list[str], int]:
    """What is wrong with the arrays of a vocabulary, and its number of codes.

    Without `index`, a hash index is not allowed. Without `values`, only names, dtypes and shapes are checked.
    """
    lengths: dict[str, int] = {}
    specs = _integers() if "ids" in arrays else _texts()
    problems = array_problems({name: one for name, one in arrays.items() if name in specs}, specs, lengths=lengths)
    count = lengths.get("codes", 0)
    others = {
        "removed": ArraySpec(dtype="int64", shape=("removed",), low=0, high=count - 1, order="ascending", optional=True)
    }
    if index:
        shape = (SLOTS_PER_ID * count,)
        others["slots"] = ArraySpec(dtype="int32", shape=shape, low=-1, high=count - 1, optional=True)
    rest = {name: one for name, one in arrays.items() if name not in specs}
    problems += array_problems(rest, others, lengths=lengths, values=values)
    if not problems and count > MAX_IDS:
        problems.append(f"ids: {count} are more than the {MAX_IDS} that a model can have")
    if values and not problems:
        problems += text_problems(arrays) if "text" in arrays else []
        problems += [] if problems else _lookup_problems(arrays, count)
    return problems, count


def _integers() -> dict[str, ArraySpec]:
    return {"ids": ArraySpec(dtype="int64", shape=("codes",))}


def _texts() -> dict[str, ArraySpec]:
    return {"text": ArraySpec(dtype="uint8", shape=("bytes",)), "offsets": offsets_spec("codes+1", "bytes")}


def text_problems(arrays: Mapping[str, NDArray[Any]]) -> list[str]:
    """The bytes are UTF-8, and no id begins within a character; then every id is UTF-8."""
    text, offsets = arrays["text"], arrays["offsets"]
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        for part in blocks(len(text)):
            decoder.decode(text[part].tobytes())
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return ["text: is not UTF-8"]
    for part in blocks(len(offsets)):
        begins = offsets[part]
        if (text[begins[begins < len(text)]] & _MASK == _CONTINUATION).any():
            return ["offsets: an id begins within a character"]
    return []


def _lookup_problems(arrays: Mapping[str, NDArray[Any]], count: int) -> list[str]:
    """The ids are distinct, and the hash index finds them: it is what indexing them again gives."""
    given = {name: one for name, one in arrays.items() if name != "slots"}
    vocabulary, slots = Vocabulary.from_arrays(given), arrays.get("slots")
    if slots is None and count <= DICT_LIMIT:
        codes = np.setdiff1d(np.arange(count), vocabulary.removed)
        distinct = len(set(vocabulary.ids(codes)))
    else:
        built = vocabulary.build_index()
        distinct = int(np.count_nonzero(built >= 0))
        if slots is not None and not np.array_equal(built, slots):
            return ["slots: is not the index of these ids"]
    return [] if distinct == vocabulary.num_ids else ["ids: one occurs twice, must be distinct"]
