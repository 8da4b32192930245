"""Small dense arithmetic that compiled code shares: products, exponentials, selection.

Loops are written so that LLVM vectorises them: several rows of a matrix at a time, no branch inside, all in float32.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

Floats = NDArray[np.float32]

LOG2_E = np.float32(1.44269504)


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
def add_products(vectors: Floats, matrix: Floats, results: Floats) -> None:
    """results += vectors @ matrix for several vectors (row, in), two at a time, so that a row of the matrix is read for
    both."""
    inputs = vectors.shape[1]
    whole = inputs // 4 * 4
    for t in range(0, len(vectors) - 1, 2):
        first, second = vectors[t], vectors[t + 1]
        one, two = results[t], results[t + 1]
        for i in range(0, whole, 4):
            a, b, c, d = first[i], first[i + 1], first[i + 2], first[i + 3]
            e, f, g, h = second[i], second[i + 1], second[i + 2], second[i + 3]
            row_a, row_b, row_c, row_d = matrix[i], matrix[i + 1], matrix[i + 2], matrix[i + 3]
            for k in range(len(one)):
                p, q, r, s = row_a[k], row_b[k], row_c[k], row_d[k]
                one[k] += a * p + b * q + c * r + d * s
                two[k] += e * p + f * q + g * r + h * s
        for i in range(whole, inputs):
            a, e, row_a = first[i], second[i], matrix[i]
            for k in range(len(one)):
                one[k] += a * row_a[k]
                two[k] += e * row_a[k]
    if len(vectors) % 2:
        add_product(vectors[len(vectors) - 1], matrix, results[len(vectors) - 1])


@njit(cache=True, nogil=True, fastmath=True)
def add_rows(weights: Floats, rows: NDArray[np.int32], count: int, matrix: Floats, result: Floats) -> None:
    """result += sum_i weights[i] matrix[rows[i]] over the first `count`."""
    whole = count // 8 * 8
    for i in range(0, whole, 8):
        a, b, c, d = weights[i], weights[i + 1], weights[i + 2], weights[i + 3]
        e, f, g, h = weights[i + 4], weights[i + 5], weights[i + 6], weights[i + 7]
        row_a, row_b, row_c, row_d = matrix[rows[i]], matrix[rows[i + 1]], matrix[rows[i + 2]], matrix[rows[i + 3]]
        row_e, row_f, row_g, row_h = matrix[rows[i + 4]], matrix[rows[i + 5]], matrix[rows[i + 6]], matrix[rows[i + 7]]
        for k in range(len(result)):
            first = a * row_a[k] + b * row_b[k] + c * row_c[k] + d * row_d[k]
            result[k] += first + (e * row_e[k] + f * row_f[k] + g * row_g[k] + h * row_h[k])
    for i in range(whole, count):
        a, row_a = weights[i], matrix[rows[i]]
        for k in range(len(result)):
            result[k] += a * row_a[k]


@njit(cache=True, nogil=True, fastmath=True)
def log_sum_exp(values: Floats, count: int) -> np.float32:
    """log sum_k exp(values[k]) over the first `count`."""
    top = highest(values, count)
    total = np.float32(0.0)
    for k in range(count):
        total += _power(values[k] - top)
    result: np.float32 = top + np.log(total)
    return result


@njit(cache=True, nogil=True, fastmath=True, inline="always")
def _power(x: np.float32) -> np.float32:
    """exp(x) as in `exponentiate`, for loops that do not need it in an array."""
    y = min(max(x * LOG2_E, np.float32(-126.0)), np.float32(126.0))
    whole = np.floor(y)
    f = y - whole
    poly = np.float32(1.89510729e-3)
    poly = poly * f + np.float32(8.94621467e-3)
    poly = poly * f + np.float32(5.58632827e-2)
    poly = poly * f + np.float32(2.4014077e-1)
    poly = poly * f + np.float32(6.9315462e-1)
    poly = poly * f + np.float32(9.99999896e-1)
    result: np.float32 = poly * np.int32((np.int32(whole) + np.int32(127)) << np.int32(23)).view(np.float32)
    return result


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
        poly = np.float32(1.89510729e-3)
        poly = poly * f + np.float32(8.94621467e-3)
        poly = poly * f + np.float32(5.58632827e-2)
        poly = poly * f + np.float32(2.4014077e-1)
        poly = poly * f + np.float32(6.9315462e-1)
        values[k] = poly * f + np.float32(9.99999896e-1)
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


@njit(cache=True, nogil=True)
def kth_largest(values: Floats, count: int, k: int) -> np.float32:
    """The k-th largest of the first `count` values by quickselect, which reorders them."""
    low, high, want = 0, count - 1, k - 1
    while low < high:
        pivot = values[(low + high) // 2]
        i, j = low, high
        while i <= j:
            while values[i] > pivot:
                i += 1
            while values[j] < pivot:
                j -= 1
            if i <= j:
                values[i], values[j] = values[j], values[i]
                i += 1
                j -= 1
        if want <= j:
            high = j
        elif want >= i:
            low = i
        else:
            break
    found: np.float32 = values[want]
    return found
