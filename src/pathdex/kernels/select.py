"""The k largest of many scores without unpredictable branches.

Scores become integers of the same order. The k-th largest is found by bisection of their range: every step counts the
keys above the middle, sixteen at a time. A quickselect reads less but mispredicts a branch at every other score.
"""

# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False
from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic
from numpy.typing import NDArray

from pathdex.kernels.gemm import LANES
from pathdex.kernels.types import Floats, Int32s, Ints

LOWEST = -(2**31)
"""Below the key of every score."""
_MAGNITUDE = np.int32(2**31 - 1)
_LOW_WORD = 2**32 - 1
RANK_SORT = 256
"""Up to this many values are sorted by counting the larger ones of each, which has no branches."""
RUN = 32
"""More values are sorted in runs of this many, which are merged."""

_int, _lanes = ir.IntType(64), ir.VectorType(ir.IntType(32), LANES)


@contextmanager
def _above(builder: Any, values: Any, bound: Any, shift: Any = None) -> Iterator[tuple[Any, Any]]:
    """A loop over the blocks of an array: yields the block and the bits of its values that are larger than `bound`.

    With `shift`, the sum of the value and `shift` counts.
    """
    kind = ir.VectorType(bound.type, LANES)
    blocks = builder.udiv(cgutils.unpack_tuple(builder, values.shape)[0], _int(LANES))
    bounds, shifts = (None if one is None else _broadcast(builder, one) for one in (bound, shift))
    start = builder.bitcast(values.data, kind.as_pointer())
    with cgutils.for_range(builder, blocks) as loop:
        block = builder.load(builder.gep(start, [loop.index]), align=4)
        if shift is None:
            larger = builder.icmp_signed(">", block, bounds)
        else:
            larger = builder.fcmp_ordered(">", builder.fadd(block, shifts), bounds)
        yield loop.index, builder.bitcast(larger, ir.IntType(LANES))


def _broadcast(builder: Any, value: Any) -> Any:
    undefined = ir.Constant(ir.VectorType(value.type, LANES), ir.Undefined)
    first = builder.insert_element(undefined, value, ir.IntType(32)(0))
    return builder.shuffle_vector(first, undefined, ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES))


def _write_positions(builder: Any, above: Any, positions: Any) -> Any:
    """Write the positions of all set bits; returns their number."""
    size = cgutils.alloca_once_value(builder, _int(0))
    left = cgutils.alloca_once(builder, ir.IntType(LANES))
    with above as (block, bits):
        builder.store(bits, left)
        first = builder.mul(block, _int(LANES))
        with cgutils.for_range(builder, builder.zext(builder.ctpop(bits), _int)):
            now, at = builder.load(left), builder.load(size)
            lane = builder.zext(builder.cttz(now, ir.IntType(1)(1)), _int)
            builder.store(builder.add(first, lane), builder.gep(positions.data, [at]))
            builder.store(builder.add(at, _int(1)), size)
            builder.store(builder.and_(now, builder.sub(now, now.type(1))), left)
    return builder.load(size)


def _array(context: Any, builder: Any, signature: Any, arguments: Any, number: int) -> Any:
    return context.make_array(signature.args[number])(context, builder, arguments[number])


def _count_intrinsic(typing_context: Any, keys: Any, bound: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        total = cgutils.alloca_once_value(builder, _int(0))
        with _above(builder, _array(context, builder, signature, arguments, 0), arguments[1]) as (_, bits):
            count = builder.zext(builder.ctpop(bits), _int)
            builder.store(builder.add(builder.load(total), count), total)
        return builder.load(total)

    return types.intp(keys, types.int32), generate


count_above: Any = intrinsic(_count_intrinsic)
"""count_above(keys, bound): how many keys are larger than `bound`; the array must consist of whole blocks of LANES."""


def _find_intrinsic(typing_context: Any, keys: Any, bound: Any, positions: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        values, found = (_array(context, builder, signature, arguments, number) for number in (0, 2))
        return _write_positions(builder, _above(builder, values, arguments[1]), found)

    return types.intp(keys, types.int32, positions), generate


find_above: Any = intrinsic(_find_intrinsic)
"""find_above(keys, bound, positions): write the positions of the keys larger than `bound`; returns their number."""


def _find_sums_intrinsic(typing_context: Any, values: Any, shift: Any, bound: Any, positions: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        row, found = (_array(context, builder, signature, arguments, number) for number in (0, 3))
        return _write_positions(builder, _above(builder, row, arguments[2], arguments[1]), found)

    return types.intp(values, types.float32, types.float32, positions), generate


find_sums_above: Any = intrinsic(_find_sums_intrinsic)
"""find_sums_above(values, shift, bound, positions): the same for float32 values to each of which `shift` is added."""


@njit(cache=True, nogil=True)
def take(values: NDArray[Any], positions: Ints) -> NDArray[Any]:
    """values[positions], which takes numba longer to compile."""
    taken = np.empty(len(positions), values.dtype)
    for i in range(len(positions)):
        taken[i] = values[positions[i]]
    return taken


@njit(cache=True, nogil=True)
def new_keys(count: int) -> Int32s:
    """Room for `count` keys in whole blocks of LANES."""
    return np.empty((count + LANES - 1) // LANES * LANES, np.int32)


@njit(cache=True, nogil=True)
def order_keys(scores: Floats, count: int, keys: Int32s) -> Int32s:
    """Write integers in the order of the first `count` scores; returns the whole blocks that hold them.

    NaN must not occur; -0.0 and 0.0 have the same key.
    """
    bits = keys.view(np.float32)
    for i in range(count):
        bits[i] = scores[i] + np.float32(0.0)
    for i in range(count):
        keys[i] ^= (keys[i] >> np.int32(31)) & _MAGNITUDE
    end = (count + LANES - 1) // LANES * LANES
    keys[count:end] = LOWEST
    return keys[:end]


@njit(cache=True, nogil=True)
def scores_of(keys: Int32s) -> Floats:
    """The scores of keys, which are overwritten."""
    for i in range(len(keys)):
        keys[i] ^= (keys[i] >> np.int32(31)) & _MAGNITUDE
    return keys.view(np.float32)


@njit(cache=True, nogil=True)
def score_of(key: np.int32) -> np.float32:
    """The score of one key."""
    keys = np.empty(1, np.int32)
    keys[0] = key
    score: np.float32 = scores_of(keys)[0]
    return score


@njit(cache=True, nogil=True)
def top_k_bound(keys: Int32s, count: int, k: int) -> tuple[np.int32, int]:
    """A bound: the k largest keys are those above it and, as the second result says, some of those equal to it.

    `keys` are whole blocks that begin with `count` keys, at least k, and end with `LOWEST`.
    """
    low, high = np.int64(keys[0]), np.int64(keys[0])
    for i in range(count):
        low, high = min(low, keys[i]), max(high, keys[i])
    low -= 1
    # count_above(low) >= k and count_above(high) = 0 < k
    while high - low > 1:
        middle = (low + high) >> 1
        count = count_above(keys, np.int32(middle))
        if count == k:
            return np.int32(middle), 0
        if count > k:
            low = middle
        else:
            high = middle
    return np.int32(high), k - count_above(keys, np.int32(high))


@njit(cache=True, nogil=True)
def sort_descending(values: Ints) -> Ints:
    """Distinct integers, largest first."""
    count = len(values)
    ordered = np.empty(count, np.int64)
    if count > RANK_SORT:
        for i in range(count):
            ordered[i] = values[i]
        _merge_sort(ordered, values.copy())
        return ordered
    for i in range(count):
        rank, value = 0, values[i]
        for j in range(count):
            rank += values[j] > value
        ordered[rank] = value
    return ordered


@njit(cache=True, nogil=True)
def _merge_sort(values: Ints, other: Ints) -> None:
    """Sort integers in place, largest first; `other` is memory of the same size.

    Numba takes seconds to compile numpy's sort.
    """
    count = len(values)
    for first in range(0, count, RUN):
        for i in range(first + 1, min(first + RUN, count)):
            value, j = values[i], i
            while j > first and values[j - 1] < value:
                values[j] = values[j - 1]
                j -= 1
            values[j] = value
    width = RUN
    while width < count:
        for i in range(count):
            other[i] = values[i]
        for first in range(0, count, 2 * width):
            a, b, out = first, min(first + width, count), first
            end_a, end_b = b, min(first + 2 * width, count)
            while a < end_a and b < end_b:
                later = other[b] > other[a]
                values[out] = other[b] if later else other[a]
                a, b, out = a + (not later), b + later, out + 1
            while a < end_a:
                values[out], a, out = other[a], a + 1, out + 1
            while b < end_b:
                values[out], b, out = other[b], b + 1, out + 1
        width *= 2


@njit(cache=True, nogil=True)
def top_k_in_order(scores: Floats, count: int, k: int, keys: Int32s) -> Ints:
    """The positions of the k largest of the first `count` scores, largest first, ties by position."""
    keys = order_keys(scores, count, keys)
    positions = np.empty(count, np.int64)
    if count <= k:
        for i in range(count):
            positions[i] = i
        size = count
    else:
        select_first(keys, count, k, positions)
        size = k
    for i in range(size):
        positions[i] = (np.int64(keys[positions[i]]) << 32) | (_LOW_WORD - positions[i])
    ordered = sort_descending(positions[:size])
    for i in range(size):
        ordered[i] = _LOW_WORD - (ordered[i] & _LOW_WORD)
    return ordered


@njit(cache=True, nogil=True)
def select_first(keys: Int32s, count: int, k: int, positions: Ints) -> np.int32:
    """Write the positions of the k largest keys in ascending order; of equal keys the first are taken.

    Returns a bound that a further key must exceed to be among the k largest.
    """
    bound, ties = top_k_bound(keys, count, k)
    if ties == 0:
        find_above(keys, bound, positions)
        return bound
    size = 0
    for i in range(count):
        tied = keys[i] == bound and ties > 0
        if tied or keys[i] > bound:
            positions[size] = i
            size += 1
            ties -= tied
    return bound


@njit(cache=True, nogil=True)
def top_k_items(items: Ints, scores: Floats, k: int) -> Ints:
    """The positions of the k highest scores, unsorted; equal scores go by item."""
    count = len(scores)
    if k == 0 or count <= k:
        return np.arange(min(count, k))
    keys = order_keys(scores, count, new_keys(count))
    bound, ties = top_k_bound(keys, count, k)
    best = np.empty(count, np.int64)
    size = find_above(keys, bound, best)
    if ties:
        tied, end = np.empty(count, np.int64), 0
        for i in range(count):
            if keys[i] == bound:
                tied[end] = i
                end += 1
        if end > ties:
            for i in range(end):
                tied[i] = (-items[tied[i]] << 32) | tied[i]
            tied = sort_descending(tied[:end])
        for i in range(ties):
            best[size + i] = tied[i] & _LOW_WORD
    return best[:k]


@njit(cache=True, nogil=True)
def best_items(items: Ints, scores: Floats, n: int) -> tuple[Ints, Floats]:
    """The n items with the highest scores, best first, ties by item; NaN counts as -inf. `scores` are overwritten."""
    count = len(scores)
    for i in range(count):
        if np.isnan(scores[i]):
            scores[i] = -np.inf
    keys = order_keys(scores, count, new_keys(count))
    chosen = np.empty(count, np.int64)
    if count > n:
        bound, ties = top_k_bound(keys, count, n)
        # All that tie: their order decides.
        size = find_above(keys, bound - np.int32(ties > 0), chosen)
    else:
        size = count
        for i in range(count):
            chosen[i] = i
    for i in range(size):
        position = chosen[i]
        chosen[i] = (np.int64(keys[position]) << 32) | (_LOW_WORD - items[position])
    ordered = sort_descending(chosen[:size])[:n]
    best, best_keys = np.empty(len(ordered), np.int64), np.empty(len(ordered), np.int32)
    for i in range(len(ordered)):
        best[i], best_keys[i] = _LOW_WORD - (ordered[i] & _LOW_WORD), ordered[i] >> 32
    return best, scores_of(best_keys)
