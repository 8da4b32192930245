"""Texts as arrays, for checkpoints."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray


def pack_texts(texts: Iterable[str]) -> dict[str, NDArray[Any]]:
    """Texts as bytes, and where each ends."""
    encoded = [text.encode("utf-8", "surrogatepass") for text in texts]
    return {
        "bytes": np.frombuffer(b"".join(encoded), np.uint8),
        "ends": np.cumsum([len(one) for one in encoded], dtype=np.int64),
    }


def unpack_texts(arrays: Mapping[str, NDArray[Any]]) -> list[str]:
    """The inverse of `pack_texts`."""
    data, ends = arrays["bytes"].tobytes(), [0, *arrays["ends"].tolist()]
    return [data[start:end].decode("utf-8", "surrogatepass") for start, end in pairwise(ends)]
