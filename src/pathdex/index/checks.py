"""Input checks shared by the public functions of this package."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pathdex.errors import ConfigError, DataError, Problem
from pathdex.kernels.types import Floats, Ints
from pathdex.parameters import count_problems


def check_int(name: str, value: Any, *, low: int = 1) -> int:
    """The value as an int, if it is a whole number of at least `low`."""
    if problems := count_problems(name, value, low, remedy="pass one"):
        raise ConfigError(problems)
    return int(value)


def check_number(name: str, value: Any, *, low: float, high: float = math.inf) -> float:
    """The value as a float, if it is a finite number from `low` to `high`."""
    number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if not number or not math.isfinite(value) or not low <= value <= high:
        rule = f"at least {low:g}" if high == math.inf else f"between {low:g} and {high:g}"
        raise ConfigError([Problem(f"must be a finite number {rule}", name, value, "pass one")])
    return float(value)


def int_array(name: str, values: ArrayLike, *shape: int | None, low: int = 0) -> Ints:
    """The values as a contiguous int64 array of this shape (None: any length), none below `low`."""
    array = np.asarray(values)
    if not np.issubdtype(array.dtype, np.integer):
        raise DataError(f"{name}: has dtype {array.dtype}, must hold whole numbers; convert it with .astype(np.int64)")
    _check_shape(name, array, shape)
    if array.size and (smallest := array.min()) < low:
        raise DataError(f"{name}: holds {smallest}, must hold no value below {low}; check how it was computed")
    return np.asarray(array, np.int64, order="C")


def score_array(name: str, values: ArrayLike, *shape: int | None) -> Floats:
    """The values as a contiguous float32 array of this shape (None: any length), finite and not negative."""
    array = np.ascontiguousarray(values, np.float32)
    _check_shape(name, array, shape)
    # The extremes are NaN or infinite if any value is, and need no mask as large as the array.
    if array.size and not (array.min() >= 0 and math.isfinite(array.max())):
        raise DataError(f"{name}: must hold finite values of at least 0; pass probabilities, not their logarithms")
    return array


def path_array(name: str, values: ArrayLike, num_items: int | None = None, *, low: int = 0) -> Ints:
    """The paths of all items as codes (item, path), at least one path per item."""
    array = int_array(name, values, num_items, None, low=low)
    if not array.size:
        raise DataError(f"{name}: has shape {array.shape}, must hold at least one item with one path; pass all items")
    return array


def _check_shape(name: str, array: NDArray[Any], shape: tuple[int | None, ...]) -> None:
    if array.ndim != len(shape) or any(
        wanted is not None and wanted != length for wanted, length in zip(shape, array.shape, strict=True)
    ):
        wanted = ", ".join("any" if length is None else str(length) for length in shape)
        raise DataError(f"{name}: has shape {array.shape}, must have shape ({wanted}); reshape it")
