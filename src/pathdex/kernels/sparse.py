"""Products with a few rows of a matrix, written in LLVM vectors.

A call with several arrays costs as much as adding a row of 64 numbers, and LLVM cannot know that the arrays do not
overlap, so these functions are emitted in place. All arrays are contiguous.
"""

# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from pathdex.kernels.gemm import LANES

_BLOCKS = 4
"""Vectors that stay in registers."""
_float, _int = ir.FloatType(), ir.IntType(64)
_vector = ir.VectorType(_float, LANES)


def _sum_rows(
    context: Any,
    builder: Any,
    rows: tuple[Any, Any, Any, Any],
    target: tuple[Any, Any],
    place: Any,
    begin: Callable[[Any, Any], Any],
    end: Callable[[Any, Any, Any], Any],
) -> Any:
    """target[place] = end(begin + sum_e weights[e] matrix[columns[e]]), rows = (weights, columns, count, matrix)."""
    values, numbers, count, matrix = rows

    def part(kind: Any, starts: list[Any]) -> None:
        registers = [cgutils.alloca_once(builder, kind) for _ in starts]
        for start, register in zip(starts, registers, strict=True):
            builder.store(begin(kind, start), register)
        with cgutils.for_range(builder, count) as loop:
            column = builder.load(builder.gep(numbers[0], [loop.index]))
            weight = _spread(builder, builder.load(builder.gep(values[0], [loop.index])), kind)
            for start, register in zip(starts, registers, strict=True):
                one = builder.load(_address(builder, matrix, column, start, kind), align=4)
                builder.store(_add_product(builder, weight, one, builder.load(register)), register)
        for start, register in zip(starts, registers, strict=True):
            found = end(kind, start, builder.load(register))
            builder.store(found, _address(builder, target, place, start, kind), align=4)

    _by_parts(builder, target[1], part)
    return context.get_dummy_value()


def _gather_intrinsic(
    typing_context: Any, weights: Any, columns: Any, count: Any, matrix: Any, sums: Any, place: Any
) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        values, numbers, source, target = _arrays(context, builder, signature, arguments, (0, 1, 3, 4))
        rows = values, numbers, arguments[2], source
        return _sum_rows(
            context, builder, rows, target, arguments[5], lambda kind, _: _zero(kind), lambda _, __, found: found
        )

    return types.void(weights, columns, types.intp, matrix, sums, types.intp), generate


gather_sum: Any = intrinsic(_gather_intrinsic)
"""gather_sum(weights, columns, count, matrix, sums, place): sums[place] = sum_e weights[e] matrix[columns[e]]."""


def _gather_relu_intrinsic(
    typing_context: Any, weights: Any, columns: Any, count: Any, matrix: Any, base: Any, row: Any, sums: Any, place: Any
) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        values, numbers, source, own, target = _arrays(context, builder, signature, arguments, (0, 1, 3, 4, 6))

        def begin(kind: Any, start: Any) -> Any:
            return builder.load(_address(builder, own, arguments[5], start, kind), align=4)

        def relu(kind: Any, start: Any, found: Any) -> Any:
            return builder.select(builder.fcmp_ordered(">", found, _zero(kind)), found, _zero(kind))

        rows = values, numbers, arguments[2], source
        return _sum_rows(context, builder, rows, target, arguments[7], begin, relu)

    return types.void(weights, columns, types.intp, matrix, base, types.intp, sums, types.intp), generate


gather_relu: Any = intrinsic(_gather_relu_intrinsic)
"""gather_relu(weights, columns, count, matrix, base, row, sums, place): relu(base[row] + `gather_sum`)."""


def _scatter_intrinsic(
    typing_context: Any, weights: Any, columns: Any, count: Any, vectors: Any, row: Any, matrix: Any
) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        values, numbers, source, target = _arrays(context, builder, signature, arguments, (0, 1, 3, 5))

        def part(kind: Any, starts: list[Any]) -> None:
            kept = [builder.load(_address(builder, source, arguments[4], at, kind), align=4) for at in starts]
            with cgutils.for_range(builder, arguments[2]) as loop:
                weight, column = (builder.load(builder.gep(one[0], [loop.index])) for one in (values, numbers))
                weight = _spread(builder, weight, kind)
                for start, one in zip(starts, kept, strict=True):
                    place = _address(builder, target, column, start, kind)
                    builder.store(_add_product(builder, weight, one, builder.load(place, align=4)), place, align=4)

        _by_parts(builder, target[1], part)
        return context.get_dummy_value()

    return types.void(weights, columns, types.intp, vectors, types.intp, matrix), generate


scatter_add: Any = intrinsic(_scatter_intrinsic)
"""scatter_add(weights, columns, count, vectors, row, matrix): matrix[columns[e]] += weights[e] vectors[row], all e."""


def _row_gradient_intrinsic(
    typing_context: Any,
    weights: Any,
    columns: Any,
    count: Any,
    vectors: Any,
    row: Any,
    gradient: Any,
    matrix: Any,
    targets: Any,
    number: Any,
    nodes: Any,
    sums: Any,
    place: Any,
    adds: Any,
) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        values, numbers, source, scattered, gathered, others, onto, target = _arrays(
            context, builder, signature, arguments, (0, 1, 3, 5, 6, 7, 9, 10)
        )
        adds_up = builder.icmp_signed("!=", arguments[12], _int(0))

        def part(kind: Any, starts: list[Any]) -> None:
            registers = [cgutils.alloca_once(builder, kind) for _ in starts]
            for register in registers:
                builder.store(_zero(kind), register)
            with cgutils.for_range(builder, arguments[2]) as loop:
                weight, column = (builder.load(builder.gep(one[0], [loop.index])) for one in (values, numbers))
                weight = _spread(builder, weight, kind)
                for start, register in zip(starts, registers, strict=True):
                    one = builder.load(_address(builder, gathered, column, start, kind), align=4)
                    builder.store(_add_product(builder, weight, one, builder.load(register)), register)
                    at = _address(builder, scattered, column, start, kind)
                    own = builder.load(_address(builder, source, arguments[4], start, kind), align=4)
                    builder.store(_add_product(builder, weight, own, builder.load(at, align=4)), at, align=4)
            for start, register in zip(starts, registers, strict=True):
                opened = builder.load(_address(builder, source, arguments[4], start, kind), align=4)
                found = builder.select(
                    builder.fcmp_ordered(">", opened, _zero(kind)), builder.load(register), _zero(kind)
                )
                builder.store(found, register)
                at = _address(builder, target, arguments[11], start, kind)
                total = builder.fadd(builder.load(at, align=4), found)
                builder.store(builder.select(adds_up, total, found), at, align=4)
            with cgutils.for_range(builder, arguments[8]) as loop:
                node = builder.load(builder.gep(others[0], [loop.index]))
                for start, register in zip(starts, registers, strict=True):
                    at = _address(builder, onto, node, start, kind)
                    builder.store(builder.fadd(builder.load(at, align=4), builder.load(register)), at, align=4)

        _by_parts(builder, target[1], part)
        return context.get_dummy_value()

    return types.void(
        weights,
        columns,
        types.intp,
        vectors,
        types.intp,
        gradient,
        matrix,
        targets,
        types.intp,
        nodes,
        sums,
        types.intp,
        types.intp,
    ), generate


row_gradient: Any = intrinsic(_row_gradient_intrinsic)
"""row_gradient(weights, columns, count, vectors, row, gradient, matrix, targets, number, nodes, sums, place, adds).

The gradient of a layer with ReLU in one pass over its entries e: gradient[columns[e]] += weights[e] vectors[row], and
flow = sum_e weights[e] matrix[columns[e]] where vectors[row] > 0, else 0. The flow is added to nodes[targets[:number]]
and to sums[place], or replaces sums[place] if `adds` is 0.
"""


def _block_sum_intrinsic(typing_context: Any, matrix: Any, row: Any, column: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        (source,) = _arrays(context, builder, signature, arguments, (0,))
        block = builder.load(_address(builder, source, arguments[1], arguments[2], _vector), align=4)
        kind = ir.FunctionType(_float, [_float, _vector])
        called = cgutils.get_or_insert_function(builder.module, kind, f"llvm.vector.reduce.fadd.v{LANES}f32")
        return builder.call(called, [_float(0.0), block], fastmath=("reassoc",))

    return types.float32(matrix, types.intp, types.intp), generate


block_sum: Any = intrinsic(_block_sum_intrinsic)
"""block_sum(matrix, row, column): the sum of the LANES numbers from matrix[row, column] on."""


def _arrays(
    context: Any, builder: Any, signature: Any, arguments: Any, which: tuple[int, ...]
) -> list[tuple[Any, Any]]:
    """Address and length of a row of each of these arguments."""
    arrays = [context.make_array(signature.args[number])(context, builder, arguments[number]) for number in which]
    return [(one.data, cgutils.unpack_tuple(builder, one.shape)[-1]) for one in arrays]


def _address(builder: Any, array: tuple[Any, Any], row: Any, column: Any, kind: Any) -> Any:
    data, width = array
    return builder.bitcast(builder.gep(data, [builder.add(builder.mul(row, width), column)]), kind.as_pointer())


def _by_parts(builder: Any, width: Any, part: Callable[[Any, list[Any]], None]) -> None:
    """Emit `part` for a row's blocks of several vectors, then of one vector, then of one number."""
    wide, lanes = _int(_BLOCKS * LANES), _int(LANES)
    first, second = (builder.mul(builder.udiv(width, size), size) for size in (wide, lanes))
    for begin, end, step, kind, number in (
        (_int(0), first, wide, _vector, _BLOCKS),
        (first, second, lanes, _vector, 1),
        (second, width, _int(1), _float, 1),
    ):
        with cgutils.for_range_slice(builder, begin, end, step, inc=True) as (column, _):
            part(kind, [builder.add(column, _int(LANES * block)) for block in range(number)])


def _spread(builder: Any, value: Any, kind: Any) -> Any:
    """`value` in each lane."""
    if kind == _float:
        return value
    undefined = ir.Constant(_vector, ir.Undefined)
    first = builder.insert_element(undefined, value, ir.IntType(32)(0))
    return builder.shuffle_vector(first, undefined, ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES))


def _zero(kind: Any) -> Any:
    return ir.Constant(kind, 0.0 if kind == _float else [0.0] * LANES)


def _add_product(builder: Any, first: Any, second: Any, third: Any) -> Any:
    return builder.fadd(builder.fmul(first, second, flags=("contract",)), third, flags=("contract",))
