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
from pathdex.kernels.types import Floats, Int16s, Ints

HEADER = 4
"""Floats before the codes: scale, error, bias, a bound on the length of scale times codes."""
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
AT_ONCE = 4
"""Rows whose products are computed together: they share the reads of the user's vector."""
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
        rows[item, 0], rows[item, 3] = scale, SUM_SLACK * (length + error)
        rows[item, 1] = SUM_SLACK * (error + rounding * (length + error))


def _dots_intrinsic(typing_context: Any, rows: Any, items: Any, first: Any, vector: Any, sums: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        integer, word = ir.IntType(64), ir.IntType(32)
        bytes_, halves, words = (ir.VectorType(ir.IntType(bits), LANES) for bits in (8, 16, 32))
        pairs = ir.VectorType(word, LANES // 2)
        records, codes_of, user, result = (
            context.make_array(signature.args[number])(context, builder, arguments[number]) for number in (0, 1, 3, 4)
        )
        length = cgutils.unpack_tuple(builder, records.shape)[1]
        last = builder.sub(cgutils.unpack_tuple(builder, codes_of.shape)[0], integer(1))
        begins, totals = [], []
        for number in range(AT_ONCE):
            at = builder.add(arguments[2], integer(number))
            at = builder.select(builder.icmp_signed("<", at, last), at, last)
            row = builder.load(builder.gep(codes_of.data, [at]))
            begin = builder.gep(records.data, [builder.add(builder.mul(row, length), integer(HEADER))])
            begins.append(builder.bitcast(begin, bytes_.as_pointer()))
            totals.append(cgutils.alloca_once_value(builder, ir.Constant(pairs, [0] * (LANES // 2))))
        inputs = builder.bitcast(user.data, halves.as_pointer())
        blocks = builder.udiv(cgutils.unpack_tuple(builder, user.shape)[0], integer(LANES))
        even, odd = (ir.Constant(pairs, list(range(start, LANES, 2))) for start in (0, 1))
        with cgutils.for_range(builder, blocks) as loop:
            values = builder.sext(builder.load(builder.gep(inputs, [loop.index]), align=2), words)
            for begin, total in zip(begins, totals, strict=True):
                code = builder.sext(builder.load(builder.gep(begin, [loop.index]), align=1), words)
                product = builder.mul(code, values)
                # Sums of two neighbours: one instruction for the products and these sums where the processor has it.
                both = (builder.shuffle_vector(product, product, half) for half in (even, odd))
                builder.store(builder.add(builder.load(total), builder.add(*both)), total)
        kind = ir.FunctionType(word, [pairs])
        add = cgutils.get_or_insert_function(builder.module, kind, f"llvm.vector.reduce.add.v{LANES // 2}i32")
        for number, total in enumerate(totals):
            at = builder.gep(result.data, [builder.add(arguments[2], integer(number))])
            builder.store(builder.call(add, [builder.load(total)]), at)
        return context.get_dummy_value()

    return types.void(rows, items, types.intp, vector, sums), generate


_dot_codes: Any = intrinsic(_dots_intrinsic)
"""_dot_codes(rows, items, first, vector, sums): the inner products of the codes of `AT_ONCE` items from `first` on with
a vector of 16-bit integers, padded to whole blocks of LANES, written to `sums` from `first` on."""


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
    vector, unit, norm, missing = _in_16_bits(user, (rows.shape[1] - HEADER) * CODES)
    sums = np.empty((count + AT_ONCE - 1) // AT_ONCE * AT_ONCE, np.int32)
    dots, errors, biases = np.empty(count, np.float32), np.empty(count, np.float32), np.empty(count, np.float32)
    for first in range(0, count, AT_ONCE):
        _dot_codes(rows, items, first, vector, sums)
        for i in range(first, min(first + AT_ONCE, count)):
            row = rows[items[i]]
            dots[i], biases[i] = row[0] * (unit * np.float32(sums[i])), row[2]
            errors[i] = norm * row[1] + missing * row[3]
            if i + PREFETCH_AHEAD < count:
                prefetch_lines(rows, items[i + PREFETCH_AHEAD], COMPACT_LINES)
    low, high = np.empty(count, np.float32), np.full((count + LANES - 1) // LANES * LANES, -np.inf, np.float32)
    for i in range(count):
        score = dots[i] + biases[i] + prior[i]
        error = errors[i] + SLACK * (abs(dots[i]) + abs(biases[i]) + abs(prior[i]))
        begin, end = score - error, score + error
        known = end - begin >= 0  # False for NaN
        low[i], high[i] = (begin, end) if known else (np.float32(-np.inf), np.float32(np.inf))
    return low, high


@njit(cache=True, nogil=True)
def _in_16_bits(user: Floats, size: int) -> tuple[Int16s, np.float32, np.float32, np.float32]:
    """A vector as integers, padded to `size`, their unit, the vector's length and that of what they miss of it."""
    vector, top, square = np.zeros(size, np.int16), np.float32(0.0), 0.0
    for k in range(len(user)):
        top = max(top, abs(user[k]))
        square += np.float64(user[k]) ** 2
    # No sum of products with codes exceeds 32 bits.
    unit = top / np.float32(min(2**15 - 1, (2**31 - 1) // (LARGEST * size)))
    missing = 0.0
    if SMALLEST_SCALE < unit < LARGEST_SCALE:
        for k in range(len(user)):
            vector[k] = np.int16(np.rint(user[k] / unit))
    for k in range(len(user)):
        missing += (np.float64(user[k]) - np.float64(unit) * np.float64(vector[k])) ** 2
    upward = 1 + 4 * UNIT
    return vector, unit, np.float32(upward * np.sqrt(square)), np.float32(upward * np.sqrt(missing))
