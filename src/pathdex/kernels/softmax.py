"""Softmax and log-sum-exp of rows whose length is a whole number of tiles, spelt out in vectors.

A row has a few dozen nodes, too few for the loops that LLVM makes by itself: most of a row would be their remainder.
Columns behind the last node hold `PADDING`, whose exponential is nothing.
"""

# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from pathdex.kernels.arithmetic import LOG2_E, POWER
from pathdex.kernels.gemm import LANES

PADDING = np.float32(-1e30)
"""The logit of a node that does not exist."""

_lanes, _single, _whole = ir.VectorType(ir.FloatType(), LANES), ir.FloatType(), ir.IntType(64)


@intrinsic  # type: ignore[untyped-decorator, unused-ignore]
def softmax_row(typing_context: Any, values: Any, row: Any) -> Any:
    """Turn `values[row]`, of a contiguous matrix, into its softmax."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        each, blocks = _blocks(context, builder, signature, arguments)
        total = _exponentials(builder, each, blocks, keep=True)
        scale = _spread(builder, builder.fdiv(_single(1.0), total))
        with cgutils.for_range(builder, blocks) as loop:
            place = each(loop.index)
            builder.store(builder.fmul(builder.load(place, align=4), scale), place, align=4)
        return context.get_dummy_value()

    return types.void(values, types.intp), generate


@intrinsic  # type: ignore[untyped-decorator, unused-ignore]
def log_sum_exp_row(typing_context: Any, values: Any, row: Any) -> Any:
    """log sum_k exp(values[row, k]), of a contiguous matrix, which stays as it is."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        each, blocks = _blocks(context, builder, signature, arguments)
        top = _highest(builder, each, blocks)
        total = _exponentials(builder, each, blocks, keep=False, top=top)
        log = builder.module.declare_intrinsic("llvm.log", [_single])
        return builder.fadd(top, builder.call(log, [total]))

    return types.float32(values, types.intp), generate


def _blocks(context: Any, builder: Any, signature: Any, arguments: Any) -> tuple[Callable[[Any], Any], Any]:
    """The address of block i of a row, as a function, and the number of blocks."""
    held = context.make_array(signature.args[0])(context, builder, arguments[0])
    width = cgutils.unpack_tuple(builder, held.shape)[1]
    begin = builder.gep(held.data, [builder.mul(arguments[1], width)])

    def each(block: Any) -> Any:
        return builder.bitcast(builder.gep(begin, [builder.mul(block, _whole(LANES))]), _lanes.as_pointer())

    return each, builder.udiv(width, _whole(LANES))


def _exponentials(builder: Any, each: Any, blocks: Any, *, keep: bool, top: Any = None) -> Any:
    """sum_k exp(x_k - top), top being the highest; with `keep` the exponentials take the place of the values."""
    top = _spread(builder, _highest(builder, each, blocks) if top is None else top)
    sums = cgutils.alloca_once_value(builder, ir.Constant(_lanes, [0.0] * LANES))
    with cgutils.for_range(builder, blocks) as loop:
        place = each(loop.index)
        power = _power(builder, builder.fsub(builder.load(place, align=4), top))
        if keep:
            builder.store(power, place, align=4)
        builder.store(builder.fadd(builder.load(sums), power), sums)
    return _call(builder, "llvm.vector.reduce.fadd", _single, [_single(0.0), builder.load(sums)], ("reassoc",))


def _highest(builder: Any, each: Any, blocks: Any) -> Any:
    best = cgutils.alloca_once_value(builder, ir.Constant(_lanes, [float(PADDING)] * LANES))
    with cgutils.for_range(builder, blocks) as loop:
        block, old = builder.load(each(loop.index), align=4), builder.load(best)
        builder.store(builder.select(builder.fcmp_ordered(">", block, old), block, old), best)
    return _call(builder, "llvm.vector.reduce.fmax", _single, [builder.load(best)], ("nnan", "nsz"))


def _power(builder: Any, x: Any) -> Any:
    """exp(x) for x <= 0 as in `arithmetic.exponentiate`, but at least 2^-100: smaller shares make slow numbers."""
    y = builder.fmul(x, _constant(LOG2_E))
    low = _constant(-100.0)
    y = builder.select(builder.fcmp_ordered(">", y, low), y, low)
    floor = _call(builder, "llvm.floor", _lanes, [y])
    fraction = builder.fsub(y, floor)
    poly = _constant(POWER[0])
    for coefficient in POWER[1:]:
        poly = builder.fadd(
            builder.fmul(poly, fraction, flags=("contract",)), _constant(coefficient), flags=("contract",)
        )
    integers = ir.VectorType(ir.IntType(32), LANES)
    shifted = builder.add(builder.fptosi(floor, integers), ir.Constant(integers, [127] * LANES))
    bits = builder.shl(shifted, ir.Constant(integers, [23] * LANES))
    return builder.fmul(poly, builder.bitcast(bits, _lanes))


def _call(builder: Any, name: str, result: Any, arguments: list[Any], flags: tuple[str, ...] = ()) -> Any:
    """Call the intrinsic of LLVM for vectors of LANES numbers."""
    kind = ir.FunctionType(result, [one.type for one in arguments])
    called = cgutils.get_or_insert_function(builder.module, kind, f"{name}.v{LANES}f32")
    return builder.call(called, arguments, fastmath=flags)


def _spread(builder: Any, value: Any) -> Any:
    nothing = ir.Constant(_lanes, ir.Undefined)
    one = builder.insert_element(nothing, value, ir.IntType(32)(0))
    return builder.shuffle_vector(one, nothing, ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES))


def _constant(value: float | np.float32) -> Any:
    return ir.Constant(_lanes, [float(value)] * LANES)
