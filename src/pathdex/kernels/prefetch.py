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
LINES = 5
"""Cache lines to prefetch: a row of 256 bytes that does not begin on a line."""


def _prefetch_intrinsic(typing_context: Any, array: Any, row: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        matrix = context.make_array(signature.args[0])(context, builder, arguments[0])
        stride = cgutils.unpack_tuple(builder, matrix.strides)[0]
        byte = ir.IntType(8).as_pointer()
        begin = builder.gep(builder.bitcast(matrix.data, byte), [builder.mul(arguments[1], stride)])
        number = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        prefetch = builder.module.declare_intrinsic("llvm.prefetch", [byte], kind)
        for line in range(0, LINES * LINE, LINE):
            address = builder.gep(begin, [ir.Constant(ir.IntType(64), line)])
            builder.call(prefetch, [address, number(0), number(3), number(1)])  # read, keep in all caches, data
        return context.get_dummy_value()

    return types.void(array, types.intp), generate


prefetch_row: Any = intrinsic(_prefetch_intrinsic)
"""prefetch_row(array, row): prefetch the first 256 bytes of a row of a matrix. A row that does not exist is safe."""
