"""A fast exponential and logarithm, built once in LLVM IR for single numbers and for vectors.

exp(x) = 2^y with y = x log2(e) = n + f, f in [0, 1): a polynomial gives 2^f, and n goes into the exponent bits.
The relative error is below 1e-6, plus the rounding of y.

log(x) = n log(2) + log(1 + f) with x = 2^n (1 + f), 1 + f in [sqrt(1/2), sqrt(2)), by the polynomial of the Cephes
library. The error is below 1e-7 of the result or of 1, whichever is larger.
"""

# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False
from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

from pathdex.kernels.types import Floats

LOG2_E = np.float32(1.44269504)
COEFFICIENTS = tuple(
    np.float32(one) for one in (1.89510729e-3, 8.94621467e-3, 5.58632827e-2, 2.4014077e-1, 6.9315462e-1, 9.99999896e-1)
)
"""Of the polynomial for 2^f, highest degree first."""
MAX_EXPONENT = 126.0
"""Results are clamped to 2^-126 .. 2^126, which float32 holds without denormals."""
EXPONENT_BIAS, MANTISSA_BITS = 127, 23


def build_exp(builder: Any, x: Any, *, low: float, high: float | None = None, flags: tuple[str, ...] = ()) -> Any:
    """Emit exp(x) for a float32 or a vector of them, clamped to 2^low .. 2^high."""
    kind = x.type
    lanes = kind.count if isinstance(kind, ir.VectorType) else None
    integer = ir.IntType(32) if lanes is None else ir.VectorType(ir.IntType(32), lanes)

    def constant(value: Any, of: Any = kind) -> Any:
        return ir.Constant(of, value if lanes is None else [value] * lanes)

    y = builder.fmul(x, constant(float(LOG2_E)), flags=flags)
    y = builder.select(builder.fcmp_ordered(">", y, constant(low)), y, constant(low))
    if high is not None:
        y = builder.select(builder.fcmp_ordered("<", y, constant(high)), y, constant(high))
    name = "llvm.floor.f32" if lanes is None else f"llvm.floor.v{lanes}f32"
    floor = cgutils.get_or_insert_function(builder.module, ir.FunctionType(kind, [kind]), name)
    whole = builder.call(floor, [y])
    fraction = builder.fsub(y, whole, flags=flags)
    poly = constant(float(COEFFICIENTS[0]))
    for coefficient in COEFFICIENTS[1:]:
        product = builder.fmul(poly, fraction, flags=(*flags, "contract"))
        poly = builder.fadd(product, constant(float(coefficient)), flags=(*flags, "contract"))
    exponent = builder.add(builder.fptosi(whole, integer), constant(EXPONENT_BIAS, integer))
    power = builder.bitcast(builder.shl(exponent, constant(MANTISSA_BITS, integer)), kind)
    return builder.fmul(poly, power, flags=flags)


LOG_COEFFICIENTS = (
    7.0376836292e-2,
    -1.1514610310e-1,
    1.1676998740e-1,
    -1.2420140846e-1,
    1.4249322787e-1,
    -1.6668057665e-1,
    2.0000714765e-1,
    -2.4999993993e-1,
    3.3333331174e-1,
)
"""Of the polynomial for (log(1 + f) - f + f^2 / 2) / f^3, highest degree first."""
SQRT_HALF = 0x3F3504F3
"""The bits of sqrt(1/2)."""
LOG_2_HIGH, LOG_2_LOW = 0.693359375, -2.12194440e-4
"""log(2) in two parts, of which n times the first is exact."""


def build_log(builder: Any, x: Any) -> Any:
    """Emit log(x) for a float32 or a vector of them; x must be positive, finite and not denormal."""
    kind = x.type
    lanes = kind.count if isinstance(kind, ir.VectorType) else None
    integer = ir.IntType(32) if lanes is None else ir.VectorType(ir.IntType(32), lanes)

    def constant(value: Any, of: Any = kind) -> Any:
        return ir.Constant(of, value if lanes is None else [value] * lanes)

    def add_product(first: Any, second: Any, third: Any) -> Any:
        return builder.fadd(builder.fmul(first, second, flags=("contract",)), third, flags=("contract",))

    bits = builder.bitcast(x, integer)
    above = builder.sub(bits, constant(SQRT_HALF, integer))
    exponent = builder.ashr(above, constant(MANTISSA_BITS, integer))
    mantissa = builder.sub(bits, builder.shl(exponent, constant(MANTISSA_BITS, integer)))
    f = builder.fsub(builder.bitcast(mantissa, kind), constant(1.0))
    n = builder.sitofp(exponent, kind)
    poly = constant(LOG_COEFFICIENTS[0])
    for coefficient in LOG_COEFFICIENTS[1:]:
        poly = add_product(poly, f, constant(coefficient))
    square = builder.fmul(f, f)
    tail = add_product(n, constant(LOG_2_LOW), builder.fmul(builder.fmul(poly, f), square))
    tail = add_product(square, constant(-0.5), tail)
    return add_product(n, constant(LOG_2_HIGH), builder.fadd(f, tail))


def _exp_intrinsic(typing_context: Any, x: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return build_exp(builder, arguments[0], low=-MAX_EXPONENT, high=MAX_EXPONENT, flags=("fast",))

    return types.float32(types.float32), generate


fast_exp: Any = intrinsic(_exp_intrinsic)
"""exp(x) of one float32. LLVM vectorises loops that call it."""


def _log_intrinsic(typing_context: Any, x: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return build_log(builder, arguments[0])

    return types.float32(types.float32), generate


fast_log: Any = intrinsic(_log_intrinsic)
"""log(x) of one positive float32 that is neither infinite nor denormal. LLVM vectorises loops that call it."""


@njit(cache=True, nogil=True, fastmath=True, error_model="numpy")  # A check for zero would keep LLVM from vectorising.
def sigmoid(values: Floats) -> None:
    """1 / (1 + exp(-x)) in place."""
    for k in range(len(values)):
        values[k] = np.float32(1.0) / (np.float32(1.0) + fast_exp(-values[k]))
