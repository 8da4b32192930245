"""Products of small matrices at the speed of a BLAS, inside compiled code and on the calling thread.

A tile of the result stays in registers while the inputs stream past; a plain loop would load and store it again for
every few inputs. LLVM does not find this by itself, so the tile is written in LLVM vectors, which suit any processor.
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

LANES = 16
"""Columns of a tile. A matrix whose columns are a multiple of this has no remainder."""
ROWS = 6
"""Rows of the larger tile: with 16 columns they fill the registers of AVX2 and of AVX-512 without spilling."""
BLOCKS = 4
"""Tiles that a single row computes side by side, to hide the latency of one sum."""


def _tile(rows: int, blocks: int) -> Any:
    """An intrinsic that adds vectors @ matrix to `rows` rows and `blocks` x LANES columns of the results."""

    @intrinsic  # type: ignore[untyped-decorator, unused-ignore]
    def add_tile(typing_context: Any, vectors: Any, row: Any, matrix: Any, column: Any, results: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            integer, lanes = ir.IntType(64), ir.VectorType(ir.FloatType(), LANES)
            pointer, undefined = lanes.as_pointer(), ir.Constant(lanes, ir.Undefined)
            first = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
            inputs, weights, sums = (
                context.make_array(signature.args[number])(context, builder, arguments[number]) for number in (0, 2, 4)
            )
            steps, columns, stride = (
                cgutils.unpack_tuple(builder, array.shape)[1] for array in (inputs, weights, sums)
            )

            def address(array: Any, row: Any, stride: Any, column: Any) -> Any:
                return builder.gep(array.data, [builder.add(builder.mul(row, stride), column)])

            at_rows = [builder.add(arguments[1], integer(r)) for r in range(rows)]
            at_columns = [builder.add(arguments[3], integer(LANES * b)) for b in range(blocks)]
            begins = [address(inputs, at, steps, integer(0)) for at in at_rows]
            tiles = []
            for at in at_rows:
                for column in at_columns:
                    memory = builder.bitcast(address(sums, at, stride, column), pointer)
                    register = cgutils.alloca_once(builder, lanes)
                    builder.store(builder.load(memory, align=4), register)
                    tiles.append((memory, register))
            with cgutils.for_range(builder, steps) as loop:
                read = [
                    builder.load(builder.bitcast(address(weights, loop.index, columns, column), pointer), align=4)
                    for column in at_columns
                ]
                for r, begin in enumerate(begins):
                    value = builder.insert_element(
                        undefined, builder.load(builder.gep(begin, [loop.index])), ir.IntType(32)(0)
                    )
                    broadcast = builder.shuffle_vector(value, undefined, first)
                    for b in range(blocks):
                        _, register = tiles[r * blocks + b]
                        product = builder.fmul(broadcast, read[b], flags=("contract",))
                        builder.store(builder.fadd(builder.load(register), product, flags=("contract",)), register)
            for memory, register in tiles:
                builder.store(builder.load(register), memory, align=4)
            return context.get_dummy_value()

        return types.void(vectors, types.intp, matrix, types.intp, results), generate

    return add_tile


_rows_tile = _tile(ROWS, 1)
_one_block, _two_blocks, _three_blocks, _four_blocks = (_tile(1, blocks) for blocks in range(1, BLOCKS + 1))


@njit(cache=True, nogil=True, fastmath={"contract"})
def gemm_accumulate(vectors: Floats, count: int, matrix: Floats, results: Floats) -> None:
    """results[:count] += vectors[:count] @ matrix, (row, in) @ (in, out), all contiguous.

    Each number of the result is summed in the order of the inputs, whichever tile it falls into.
    """
    whole = matrix.shape[1] // LANES * LANES
    tiled = count // ROWS * ROWS
    for column in range(0, whole, LANES):
        for row in range(0, tiled, ROWS):
            _rows_tile(vectors, row, matrix, column, results)
    wide = whole // (BLOCKS * LANES) * (BLOCKS * LANES)
    left = (whole - wide) // LANES
    for row in range(tiled, count):
        for column in range(0, wide, BLOCKS * LANES):
            _four_blocks(vectors, row, matrix, column, results)
        if left == 3:
            _three_blocks(vectors, row, matrix, wide, results)
        elif left == 2:
            _two_blocks(vectors, row, matrix, wide, results)
        elif left == 1:
            _one_block(vectors, row, matrix, wide, results)
    for row in range(count):
        for i in range(len(matrix)):
            for column in range(whole, matrix.shape[1]):
                results[row, column] += vectors[row, i] * matrix[i, column]


@njit(cache=True, nogil=True)
def gemv_accumulate(vector: Floats, matrix: Floats, result: Floats) -> None:
    """result += vector @ matrix, (in,) @ (in, out), all contiguous."""
    gemm_accumulate(vector.reshape(1, -1), 1, matrix, result.reshape(1, -1))


@njit(cache=True, nogil=True, fastmath=True)
def dot(first: Floats, second: Floats) -> np.float32:
    """The inner product of two vectors."""
    total = np.float32(0.0)
    for k in range(len(first)):
        total += first[k] * second[k]
    return total
