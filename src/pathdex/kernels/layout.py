"""How arrays are passed to compiled code.

Numba compiles a function once per argument type, and a mapped array has another type than one in memory: it is
read-only. Making all weights read-only lets one compiled version serve both.
"""

# mypy: disallow-untyped-calls=False

from __future__ import annotations

from typing import Any

import numpy as np
from numba import typeof
from numpy.typing import DTypeLike, NDArray

LINE, FLOAT = 64, 4
"""Bytes of a cache line and of a number."""


def as_readonly(array: NDArray[Any], dtype: DTypeLike = np.float32) -> NDArray[Any]:
    """A contiguous read-only view with this dtype; a copy only where layout or dtype differ."""
    view = np.ascontiguousarray(array, dtype).view(np.ndarray)
    view.flags.writeable = False
    return view


def as_weights(array: NDArray[Any]) -> NDArray[Any]:
    """A read-only copy that begins on a cache line: a vector that crosses lines takes two reads."""
    memory = np.empty(array.size + LINE // FLOAT, np.float32)
    first = -memory.ctypes.data % LINE // FLOAT
    aligned = memory[first : first + array.size].reshape(array.shape)
    aligned[...] = array
    return as_readonly(aligned)


def as_matrix(weight: NDArray[Any]) -> NDArray[Any]:
    """A weight (out, in), as torch stores it, as a read-only matrix (in, out), so that products go row by row."""
    return as_weights(np.swapaxes(weight, -1, -2))


def entry_point(function: Any, *arguments: Any) -> Any:
    """The machine code of a compiled function for the types of some arguments.

    A call of it skips the look-up of types, which takes longer than a narrow beam. Later arguments must have the same
    types; only whether an array is read-only does not matter.
    """
    return function.compile(tuple(typeof(one) for one in arguments))
