"""A `.npy` file whose content comes block by block."""

from __future__ import annotations

import io
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import DTypeLike, NDArray

from pathdex.storage.filesystem import write_file


def write_npy(path: Path, count: int, dtype: DTypeLike, blocks: Iterable[NDArray[Any]]) -> None:
    """Write one array of `count` elements, which the blocks hold one after the other."""
    kind, head = np.dtype(dtype), io.BytesIO()
    npy.write_array_header_1_0(head, {"descr": npy.dtype_to_descr(kind), "fortran_order": False, "shape": (count,)})
    write_file(path, _content(head.getvalue(), kind, blocks))


def _content(head: bytes, kind: np.dtype[Any], blocks: Iterable[NDArray[Any]]) -> Iterable[Any]:
    yield head
    for block in blocks:
        yield np.ascontiguousarray(block, kind).view(np.uint8).data
