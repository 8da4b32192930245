"""Small dense arithmetic that compiled code shares: products, exponentials, selection.

Loops are written so that LLVM vectorises them: several rows of a matrix at a time, no branch inside, all in float32.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

Floats = NDArray[np.float32]

LOG2_E = np.float32(1.44269504)
POWER = tuple(
    np.float32(one) for one in (1.89510729e-3, 8.94621467e-3, 5.58632827e-2, 2.4014077e-1, 6.9315462e-1, 9.99999896e-1)
)
"""The coefficients of 2^f for f in [0, 1), highest degree first."""


@njit(cache=True, nogil=True, fastmath=True)
def add_product(vector: Floats, matrix: Floats, result: Floats) -> None:
    """result += vector @ matrix, for a matrix (in, out)."""
    whole = len(vector) // 4 * 4
    for i in range(0, whole, 4):
        a, b, c, d = vector[i], vector[i + 1], vector[i + 2], vector[i + 3]
        row_a, row_b, row_c, row_d = matrix[i], matrix[i + 1], matrix[i + 2], matrix[i + 3]
        for k in range(len(result)):
            result[k] += a * row_a[k] + b * row_b[k] + c * row_c[k] + d * row_d[k]
    for i in range(whole, len(vector)):
        a, row_a = vector[i], matrix[i]
        for k in range(len(result)):
            result[k] += a * row_a[k]


@njit(cache=True, nogil=True, fastmath=True)
def exponentiate(values: Floats, count: int, bits: NDArray[np.int32]) -> None:
    """exp in place for the first `count`, to a relative error of 1e-6 within float32's range; `bits` is scratch.

    exp(x) = 2^n 2^f with f in [0, 1): a polynomial for 2^f, and n put into the exponent bits of a float.
    """
    power = bits.view(np.float32)
    for k in range(count):
        y = min(max(values[k] * LOG2_E, np.float32(-126.0)), np.float32(126.0))
        whole = np.floor(y)
        f = y - whole
        bits[k] = (np.int32(whole) + np.int32(127)) << np.int32(23)
        poly = POWER[0] * f + POWER[1]
        poly = (poly * f + POWER[2]) * f + POWER[3]
        values[k] = (poly * f + POWER[4]) * f + POWER[5]
    for k in range(count):
        values[k] *= power[k]


@njit(cache=True, nogil=True, fastmath=True)
def sigmoid(values: Floats, count: int, bits: NDArray[np.int32]) -> None:
    """1 / (1 + exp(-x)) in place for the first `count`."""
    for k in range(count):
        values[k] = -values[k]
    exponentiate(values, count, bits)
    for k in range(count):
        values[k] = np.float32(1.0) / (np.float32(1.0) + values[k])


@njit(cache=True, nogil=True, fastmath=True)
def highest(values: Floats, count: int) -> np.float32:
    top: np.float32 = values[0]
    for k in range(1, count):
        top = max(top, values[k])
    return top


@njit(cache=True, nogil=True, fastmath=True)
def dot(first: Floats, second: Floats) -> np.float32:
    total = np.float32(0.0)
    for k in range(len(first)):
        total += first[k] * second[k]
    return total
