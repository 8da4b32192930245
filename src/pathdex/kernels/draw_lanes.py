"""`draw_row` for LANES rows side by side, in LLVM vectors.

Which columns a row draws is random, so a processor predicts the branches of `draw_row` wrongly, and that is most of
their cost. Here each row is a lane of a vector, and all lanes look at all columns. The results are those of `draw_row`
to the last bit, since sums are taken in the same order.
"""

# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False
from __future__ import annotations

from typing import Any, NamedTuple

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from pathdex.kernels.gemm import LANES

QUARTER = 4
"""Columns that `draw_row` sums before it looks at them one by one."""
_float, _int = ir.FloatType(), ir.IntType(64)
_vector, _four = ir.VectorType(_float, LANES), ir.VectorType(_float, QUARTER)


class _Draw(NamedTuple):
    """What all blocks of columns share: vectors, and addresses of the state and of the results."""

    scale: Any
    divisor: Any
    reached: Any
    point: Any
    counts: Any
    masks: Any


def _draw_lanes_intrinsic(
    typing_context: Any, shares: Any, rows: Any, scales: Any, lines: Any, divisor: Any, counts: Any, masks: Any
) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        arrays = [
            context.make_array(signature.args[number])(context, builder, arguments[number])
            for number in (0, 1, 2, 3, 5, 6)
        ]
        source, numbers, factors, state, target, marks = (one.data for one in arrays)
        width = cgutils.unpack_tuple(builder, arrays[0].shape)[1]
        begins = [
            builder.gep(source, [builder.mul(builder.load(builder.gep(numbers, [_int(lane)])), width)])
            for lane in range(LANES)
        ]
        reached, point = (_address(builder, state, _int(row)) for row in (0, 1))
        kept = [cgutils.alloca_once_value(builder, builder.load(one, align=4)) for one in (reached, point)]
        scale = builder.load(_address(builder, factors, _int(0)), align=4)
        draw = _Draw(scale, _spread(builder, arguments[4]), kept[0], kept[1], target, marks)
        with cgutils.for_range_slice(builder, _int(0), width, _int(LANES), inc=True) as (begin, _):
            quarters = [builder.add(begin, _int(quarter)) for quarter in range(0, LANES, QUARTER)]
            _draw_block(builder, [one for at in quarters for one in _transposed(builder, begins, at)], begin, draw)
        for register, place in zip(kept, (reached, point), strict=True):
            builder.store(builder.load(register), place, align=4)
        return context.get_dummy_value()

    return types.void(shares, rows, scales, lines, types.float32, counts, masks), generate


draw_lanes: Any = intrinsic(_draw_lanes_intrinsic)
"""draw_lanes(shares, rows, scales, lines, divisor, counts, masks): draw from shares[rows[lane]] for each lane.

Scales (lane,) and lines (2, lane) are `scale` and `place` of `draw_row`. Counts (column, lane) receives how often each
column is drawn, divided by `divisor`, and masks (column,) in bit `lane` whether it is drawn at all.
"""


def _draw_block(builder: Any, shares: list[Any], begin: Any, draw: _Draw) -> None:
    """Draw from the LANES columns that begin at `begin`."""
    sums = shares
    while len(sums) > 1:  # The order of `block_sum`.
        half = len(sums) // 2
        sums = [builder.fadd(one, two) for one, two in zip(sums[:half], sums[half:], strict=True)]
    reached, point = builder.load(draw.reached), builder.load(draw.point)
    whole = builder.fadd(reached, builder.fmul(draw.scale, sums[0]))
    inside = builder.fcmp_unordered(">", whole, point)
    for quarter in range(0, LANES, QUARTER):
        parts = shares[quarter : quarter + QUARTER]
        part = builder.fadd(builder.fadd(parts[0], parts[1]), builder.fadd(parts[2], parts[3]))
        after = builder.fadd(reached, builder.fmul(draw.scale, part))
        opened = builder.and_(inside, builder.fcmp_unordered(">", after, point))
        for column, one in enumerate(parts, quarter):
            reached = builder.fadd(reached, builder.fmul(draw.scale, one))
            hit = builder.and_(opened, builder.fcmp_ordered(">", reached, point))
            count = builder.select(hit, _count(builder, reached, point), ir.Constant(_vector, [0.0] * LANES))
            point = builder.fadd(point, count)
            place = builder.add(begin, _int(column))
            builder.store(builder.fdiv(count, draw.divisor), _address(builder, draw.counts, place), align=4)
            mask = builder.zext(builder.bitcast(hit, ir.IntType(LANES)), _int)
            builder.store(mask, builder.gep(draw.masks, [place]))
        reached = builder.select(opened, reached, after)
    builder.store(builder.select(inside, reached, whole), draw.reached)
    builder.store(point, draw.point)


def _count(builder: Any, reached: Any, point: Any) -> Any:
    """The number of points at distance 1 from `point` on, below `reached`."""
    kind = ir.FunctionType(_vector, [_vector])
    floor = cgutils.get_or_insert_function(builder.module, kind, f"llvm.floor.v{LANES}f32")
    whole = builder.call(floor, [builder.fsub(reached, point)])
    return builder.fadd(whole, ir.Constant(_vector, [1.0] * LANES))


def _transposed(builder: Any, begins: list[Any], column: Any) -> list[Any]:
    """QUARTER columns of the rows that begin at these addresses, each a vector over the rows."""
    loaded = [
        builder.load(builder.bitcast(builder.gep(begin, [column]), _four.as_pointer()), align=4) for begin in begins
    ]
    # Vector i holds rows i, i + 4, i + 8 and i + 12, so that the quarters of vectors are transposed at once.
    pairs = [
        _shuffle(builder, loaded[one], loaded[one + QUARTER], list(range(2 * QUARTER)))
        for first in (0, 2 * QUARTER)
        for one in range(first, first + QUARTER)
    ]
    joined = [_shuffle(builder, pairs[one], pairs[one + QUARTER], list(range(LANES))) for one in range(QUARTER)]
    halves = []
    for order in ((0, 4, 1, 5), (2, 6, 3, 7)):
        first, second = (_shuffle_quarters(builder, joined[one], joined[one + 1], order) for one in (0, 2))
        halves.append((first, second))
    return [
        _shuffle_quarters(builder, first, second, order)
        for first, second in halves
        for order in ((0, 1, 4, 5), (2, 3, 6, 7))
    ]


def _shuffle_quarters(builder: Any, first: Any, second: Any, order: tuple[int, ...]) -> Any:
    """Within each quarter of the vectors, elements 0 to 3 of the first and 4 to 7 of the second in this order."""
    places = [one if one < QUARTER else LANES + one - QUARTER for one in order]
    return _shuffle(builder, first, second, [begin + one for begin in range(0, LANES, QUARTER) for one in places])


def _shuffle(builder: Any, first: Any, second: Any, order: list[int]) -> Any:
    return builder.shuffle_vector(first, second, ir.Constant(ir.VectorType(ir.IntType(32), len(order)), order))


def _address(builder: Any, data: Any, row: Any) -> Any:
    return builder.bitcast(builder.gep(data, [builder.mul(row, _int(LANES))]), _vector.as_pointer())


def _spread(builder: Any, value: Any) -> Any:
    undefined = ir.Constant(_vector, ir.Undefined)
    return _shuffle(builder, builder.insert_element(undefined, value, ir.IntType(32)(0)), undefined, [0] * LANES)


def _first_bit_intrinsic(typing_context: Any, mask: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.IntType(1)(1))

    return types.int64(types.int64), generate


first_bit: Any = intrinsic(_first_bit_intrinsic)
"""first_bit(mask): the number of the lowest bit that is set; there must be one."""
