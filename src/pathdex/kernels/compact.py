"""Item vectors in 8 bits with a bound on their error, which rule out most candidates before their floats are read.

Reading a random float row is what reranking costs: 260 bytes from five cache lines for 64 dimensions. A compact row has
two lines. It gives an interval that holds the float score, so every candidate whose interval ends below the n-th best
beginning can be left out. The rest is scored in floats: the answer is that of scoring all candidates.
"""

# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False
from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

from pathdex.kernels.gemm import LANES
from pathdex.kernels.layout import as_readonly
from pathdex.kernels.prefetch import prefetch_lines
from pathdex.kernels.select import find_sums_above, new_keys, order_keys, score_of, top_k_bound
from pathdex.kernels.types import Floats, Ints

HEADER = 4
"""Floats before the codes: scale, error, bias, unused."""
CODES = 4
"""Codes that take the space of one float."""
LARGEST = 127
UNIT = 2.0**-23
"""Twice the largest relative rounding error of a float32 operation."""
SLACK = np.float32(4 * UNIT)
"""For the additions of bias and prior in both scores, and for those of the interval itself."""
SUM_SLACK = np.float32(1.001)
"""For the rounding of the error itself."""
MAGNITUDE = np.int32(2**31 - 1)
SMALLEST_SCALE, LARGEST_SCALE = np.float32(1e-12), np.float32(1e12)
"""Between these, squares of the numbers in a vector neither vanish nor overflow."""
PREFETCH_AHEAD = 16
"""Rows between a prefetch and its use."""
COMPACT_LINES = 2
"""Cache lines of a compact row of 64 dimensions."""


def compact_items(table: Floats, dim: int, capacity: int = 0) -> Floats:
    """Compact rows (item, header + codes) of the vectors and biases in the last dim + 1 columns of a table.

    Up to `capacity` items, rows of zeros follow.
    """
    padded = -(-dim // LANES) * LANES
    # By numpy, which asks for huge pages: with small ones, most random reads also miss the table of addresses.
    rows = np.zeros((max(len(table), capacity), HEADER + padded // CODES), np.float32)
    _compact(table, dim, rows)
    return as_readonly(rows)


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def _compact(table: Floats, dim: int, rows: Floats) -> None:
    codes, bits = rows.view(np.int8), table.view(np.int32)
    first = table.shape[1] - dim - 1
    # For the sums of dim products in both scores, whose terms add to at most |x| |y|, for the scale, and for the error.
    rounding = np.float32((dim + 8) * UNIT)
    largest = np.empty(1, np.int32)
    for item in range(len(table)):
        vector, own = table[item, first : first + dim], codes[item, HEADER * CODES : HEADER * CODES + dim]
        # Magnitudes as integers: LLVM vectorises their maximum, and NaN is larger than all numbers.
        magnitudes, top = bits[item, first : first + dim], np.int32(0)
        for k in range(dim):
            top = max(top, magnitudes[k] & MAGNITUDE)
        largest[0] = top
        scale = largest.view(np.float32)[0] / np.float32(LARGEST)
        rows[item, 2] = table[item, first + dim]
        if not SMALLEST_SCALE < scale < LARGEST_SCALE:
            # A vector without an interval, such as one with a NaN, is never ruled out.
            rows[item, 1] = np.float32(0.0) if top == 0 else np.float32(np.inf)
            continue
        inverse = np.float32(1.0) / scale
        square, missing = np.float32(0.0), np.float32(0.0)
        for k in range(dim):
            # Positive before it is cut off, which rounds it to the nearest.
            code = np.int32(vector[k] * inverse + np.float32(LARGEST + 1.5)) - np.int32(LARGEST + 1)
            own[k] = code
            difference = vector[k] - scale * np.float32(code)
            square += vector[k] * vector[k]
            missing += difference * difference
        length, error = np.sqrt(square), np.sqrt(missing)
        rows[item, 0] = scale
        rows[item, 1] = SUM_SLACK * (error + rounding * (length + error))


def _dot_intrinsic(typing_context: Any, rows: Any, row: Any, user: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        integer, floats = ir.IntType(64), ir.VectorType(ir.FloatType(), LANES)
        bytes_, ints = ir.VectorType(ir.IntType(8), LANES), ir.VectorType(ir.IntType(32), LANES)
        records, vector = (
            context.make_array(signature.args[number])(context, builder, arguments[number]) for number in (0, 2)
        )
        length = cgutils.unpack_tuple(builder, records.shape)[1]
        begin = builder.gep(records.data, [builder.add(builder.mul(arguments[1], length), integer(HEADER))])
        codes = builder.bitcast(begin, bytes_.as_pointer())
        inputs = builder.bitcast(vector.data, floats.as_pointer())
        sums = cgutils.alloca_once_value(builder, ir.Constant(floats, [0.0] * LANES))
        blocks = builder.udiv(cgutils.unpack_tuple(builder, vector.shape)[0], integer(LANES))
        with cgutils.for_range(builder, blocks) as loop:
            code = builder.load(builder.gep(codes, [loop.index]), align=1)
            value = builder.sitofp(builder.sext(code, ints), floats)
            product = builder.fmul(value, builder.load(builder.gep(inputs, [loop.index]), align=4), flags=("contract",))
            builder.store(builder.fadd(builder.load(sums), product, flags=("contract",)), sums)
        kind = ir.FunctionType(ir.FloatType(), [ir.FloatType(), floats])
        name = f"llvm.vector.reduce.fadd.v{LANES}f32"
        add = cgutils.get_or_insert_function(builder.module, kind, name)
        return builder.call(add, [ir.FloatType()(0.0), builder.load(sums)], fastmath=("reassoc",))

    return types.float32(rows, types.intp, user), generate


_dot_codes: Any = intrinsic(_dot_intrinsic)
"""_dot_codes(rows, row, user): the inner product of a row's codes with a vector padded to whole blocks of LANES."""


@njit(cache=True, nogil=True, inline="always")
def rule_out(rows: Floats, user: Floats, items: Ints, prior: Floats, n: int) -> Ints:
    """The positions of the items that can be among the best n by x . y_v + b_v + prior; more than n items are given."""
    count = len(items)
    low, high = _intervals(rows, user, items, prior)
    bound, _ = top_k_bound(order_keys(low, count, new_keys(count)), count, n)
    kept = np.empty(len(high), np.int64)
    return kept[: find_sums_above(high, np.float32(0.0), np.nextafter(score_of(bound), np.float32(-np.inf)), kept)]


@njit(cache=True, nogil=True, inline="always")
def _intervals(rows: Floats, user: Floats, items: Ints, prior: Floats) -> tuple[Floats, Floats]:
    """The ends of the interval of each score; the second array is padded with -inf to whole blocks of LANES."""
    count = len(items)
    vector = np.zeros((rows.shape[1] - HEADER) * CODES, np.float32)
    square = 0.0
    for k in range(len(user)):
        vector[k] = user[k]
        square += np.float64(user[k]) ** 2
    norm = np.float32((1 + UNIT) * np.sqrt(square))
    low, errors = np.empty(count, np.float32), np.empty(count, np.float32)
    high = np.full((count + LANES - 1) // LANES * LANES, -np.inf, np.float32)
    dots, biases = np.empty(count, np.float32), np.empty(count, np.float32)
    for i in range(count):
        if i + PREFETCH_AHEAD < count:
            prefetch_lines(rows, items[i + PREFETCH_AHEAD], COMPACT_LINES)
        row = rows[items[i]]
        dots[i], errors[i], biases[i] = row[0] * _dot_codes(rows, items[i], vector), row[1], row[2]
    for i in range(count):
        score = dots[i] + biases[i] + prior[i]
        error = norm * errors[i] + SLACK * (abs(dots[i]) + abs(biases[i]) + abs(prior[i]))
        begin, end = score - error, score + error
        known = end - begin >= 0  # False for NaN
        low[i], high[i] = (begin, end) if known else (np.float32(-np.inf), np.float32(np.inf))
    return low, high
