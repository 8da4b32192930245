"""Asking for a row of an array before it is needed, so that several are on their way from memory at once."""

# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False
from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

LINE = 64
"""Bytes of a cache line."""


@intrinsic  # type: ignore[untyped-decorator, unused-ignore]
def prefetch_row(typing_context: Any, array: Any, row: Any) -> Any:
    """Ask for `array[row]`, for an array of two dimensions; all of it where it has at most 256 bytes and a bit."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        held = context.make_array(signature.args[0])(context, builder, arguments[0])
        stride = cgutils.unpack_tuple(builder, held.strides)[0]
        byte = ir.IntType(8).as_pointer()
        begin = builder.gep(builder.bitcast(held.data, byte), [builder.mul(arguments[1], stride)])
        number = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        ask = builder.module.declare_intrinsic("llvm.prefetch", [byte], kind)
        for line in range(0, 5 * LINE, LINE):
            place = builder.gep(begin, [ir.Constant(ir.IntType(64), line)])
            builder.call(ask, [place, number(0), number(3), number(1)])  # to read, to be kept, data
        return context.get_dummy_value()

    return types.void(array, types.intp), generate
