"""Prefetching a row of an array, so that several rows are on their way from memory at once."""

# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False
from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

LINE = 64
"""Bytes of a cache line."""
ROW_LINES = 5
"""Cache lines of an item row: 260 bytes for 64 dimensions, which do not begin on a line."""


def _build_prefetch(array: Any, lines: Any, locality: int) -> Any:
    if not isinstance(lines, types.IntegerLiteral):
        return None

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        matrix = context.make_array(signature.args[0])(context, builder, arguments[0])
        stride = cgutils.unpack_tuple(builder, matrix.strides)[0]
        byte = ir.IntType(8).as_pointer()
        begin = builder.gep(builder.bitcast(matrix.data, byte), [builder.mul(arguments[1], stride)])
        number = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        prefetch = builder.module.declare_intrinsic("llvm.prefetch", [byte], kind)
        for line in range(0, lines.literal_value * LINE, LINE):
            address = builder.gep(begin, [ir.Constant(ir.IntType(64), line)])
            builder.call(prefetch, [address, number(0), number(locality), number(1)])  # read, data
        return context.get_dummy_value()

    return types.void(array, types.intp, lines), generate


def _prefetch_intrinsic(typing_context: Any, array: Any, row: Any, lines: Any) -> Any:
    return _build_prefetch(array, lines, 3)


def _prefetch_outer_intrinsic(typing_context: Any, array: Any, row: Any, lines: Any) -> Any:
    return _build_prefetch(array, lines, 2)


prefetch_lines: Any = intrinsic(prefer_literal=True)(_prefetch_intrinsic)
"""prefetch_lines(array, row, lines): prefetch the first cache lines of a row of an array of any dimension, or from an
element of a vector on. `lines` is a constant. An address that does not exist is safe."""

prefetch_outer: Any = intrinsic(prefer_literal=True)(_prefetch_outer_intrinsic)
"""The same into the second-level cache only, for more lines than the first has room for."""
