"""How arrays are handed to compiled code.

Numba compiles a function once for each type of its arguments, and a mapped array is of another type than one in memory:
it cannot be written to. So all weights are made read-only, and one compiled version serves both.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray


def frozen(array: NDArray[Any], dtype: DTypeLike = np.float32) -> NDArray[Any]:
    """A contiguous read-only view of this type, or a copy where the array is not like that yet."""
    view = np.ascontiguousarray(array, dtype).view(np.ndarray)
    if view is array:
        view = array.view()
    view.flags.writeable = False
    return view


def linear(weight: NDArray[Any]) -> NDArray[Any]:
    """A weight (out, in), as torch keeps it, as a matrix (in, out): a product then goes row by row."""
    return frozen(np.swapaxes(weight, -1, -2))
