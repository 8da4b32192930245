"""Softmax and log-sum-exp of a row, written in LLVM vectors.

A row holds a few dozen logits, too few for the loops that LLVM vectorises by itself: most of a row would be their
remainder. Rows are therefore padded to a multiple of LANES with `PADDING`, whose exponential is negligible.
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

from pathdex.kernels.exp import build_exp, build_log
from pathdex.kernels.gemm import LANES

PADDING = np.float32(-1e30)
"""The logit of a column that does not exist."""
MIN_EXPONENT = -100.0
"""Shares below 2^-100 of the largest count as 2^-100: smaller ones would make denormals, which are slow."""

_vector, _float, _int = ir.VectorType(ir.FloatType(), LANES), ir.FloatType(), ir.IntType(64)


def _softmax_intrinsic(typing_context: Any, values: Any, row: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        address, blocks = _blocks(context, builder, signature, arguments)
        total = _sum_exp(builder, address, blocks, _max(builder, address, blocks), keep=True)
        scale = _broadcast(builder, builder.fdiv(_float(1.0), total))
        with cgutils.for_range(builder, blocks) as loop:
            block = address(loop.index)
            builder.store(builder.fmul(builder.load(block, align=4), scale), block, align=4)
        return context.get_dummy_value()

    return types.void(values, types.intp), generate


softmax_row: Any = intrinsic(_softmax_intrinsic)
"""softmax_row(values, row): replace `values[row]` of a contiguous matrix by its softmax."""


def _log_sum_exp_intrinsic(typing_context: Any, values: Any, row: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        address, blocks = _blocks(context, builder, signature, arguments)
        top = _max(builder, address, blocks)
        total = _sum_exp(builder, address, blocks, top, keep=False)
        return builder.fadd(top, build_log(builder, total))

    return types.float32(values, types.intp), generate


log_sum_exp_row: Any = intrinsic(_log_sum_exp_intrinsic)
"""log_sum_exp_row(values, row): log sum_k exp(values[row, k]) of a contiguous matrix, which is not changed."""


def _blocks(context: Any, builder: Any, signature: Any, arguments: Any) -> tuple[Callable[[Any], Any], Any]:
    """A function that gives the address of block i of the row, and the number of blocks."""
    matrix = context.make_array(signature.args[0])(context, builder, arguments[0])
    columns = cgutils.unpack_tuple(builder, matrix.shape)[1]
    begin = builder.gep(matrix.data, [builder.mul(arguments[1], columns)])

    def address(block: Any) -> Any:
        return builder.bitcast(builder.gep(begin, [builder.mul(block, _int(LANES))]), _vector.as_pointer())

    return address, builder.udiv(columns, _int(LANES))


def _sum_exp(builder: Any, address: Any, blocks: Any, top: Any, *, keep: bool) -> Any:
    """sum_k exp(x_k - top); with `keep` the exponentials overwrite the row."""
    top = _broadcast(builder, top)
    sums = cgutils.alloca_once_value(builder, ir.Constant(_vector, [0.0] * LANES))
    with cgutils.for_range(builder, blocks) as loop:
        block = address(loop.index)
        power = build_exp(builder, builder.fsub(builder.load(block, align=4), top), low=MIN_EXPONENT)
        if keep:
            builder.store(power, block, align=4)
        builder.store(builder.fadd(builder.load(sums), power), sums)
    return _reduce(builder, "fadd", [_float(0.0), builder.load(sums)], ("reassoc",))


def _max(builder: Any, address: Any, blocks: Any) -> Any:
    best = cgutils.alloca_once_value(builder, ir.Constant(_vector, [float(PADDING)] * LANES))
    with cgutils.for_range(builder, blocks) as loop:
        block, old = builder.load(address(loop.index), align=4), builder.load(best)
        builder.store(builder.select(builder.fcmp_ordered(">", block, old), block, old), best)
    return _reduce(builder, "fmax", [builder.load(best)], ("nnan", "nsz"))


def _reduce(builder: Any, operation: str, arguments: list[Any], flags: tuple[str, ...]) -> Any:
    """Combine the lanes of a vector into one number."""
    kind = ir.FunctionType(_float, [one.type for one in arguments])
    called = cgutils.get_or_insert_function(builder.module, kind, f"llvm.vector.reduce.{operation}.v{LANES}f32")
    return builder.call(called, arguments, fastmath=flags)


def _broadcast(builder: Any, value: Any) -> Any:
    undefined = ir.Constant(_vector, ir.Undefined)
    first = builder.insert_element(undefined, value, ir.IntType(32)(0))
    return builder.shuffle_vector(first, undefined, ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES))
