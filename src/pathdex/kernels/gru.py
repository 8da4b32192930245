"""The GRU encoder, one history at a time.

The products of all inputs are one matrix product. The recurrent steps follow each other, and their weights are larger
than the first-level cache, so a step computes the three gates of some hidden units at a time and keeps their sums in
registers until the new hidden values are known.
"""

# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False
from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic
from numpy.typing import NDArray

from pathdex.kernels.exp import MAX_EXPONENT, build_exp
from pathdex.kernels.gemm import LANES, gemm_accumulate, gemv_accumulate
from pathdex.kernels.layout import as_matrix, as_readonly, as_weights
from pathdex.kernels.types import Floats

GATES = 3
"""r (reset), z (update) and n (new)."""
VECTORS = 2
"""Vectors of LANES hidden units whose gates are computed together: six sums hide the latency of each other."""
UNITS = VECTORS * LANES


class GRU(NamedTuple):
    """State: the GRU's hidden vector, the sum of the inputs, the last input.

    Hidden units are padded to blocks of `UNITS`. The columns of a block are its r, then its z, then its n.
    """

    inputs: Floats
    """(dim, block x gate x unit)"""
    input_bias: Floats
    """Of the inputs and, for r and z, also of the hidden vector."""
    hidden: Floats
    """(block, dim, gate x unit)"""
    hidden_bias: Floats
    """(block, unit), for n."""
    project: Floats
    project_bias: Floats
    last: Floats
    mean: Floats

    @classmethod
    def pack(cls, weights: Mapping[str, NDArray[Any]]) -> GRU:
        """Pack weights by their names in the model, without the prefix `encoder.`."""
        inputs, hidden = (_in_blocks(weights[f"recurrent.weight_{side}_l0"]) for side in ("ih", "hh"))
        input_bias, hidden_bias = (_in_blocks(weights[f"recurrent.bias_{side}_l0"]) for side in ("ih", "hh"))
        new = hidden_bias[:, -1].copy()
        hidden_bias[:, -1] = 0
        dim = inputs.shape[-1]
        return cls(
            as_matrix(inputs.reshape(-1, dim)),
            as_readonly((input_bias + hidden_bias).ravel()),
            as_weights(hidden.reshape(len(hidden), -1, dim).transpose(0, 2, 1)),
            as_readonly(new),
            as_matrix(weights["project.weight"]),
            as_readonly(weights["project.bias"]),
            as_matrix(weights["last.weight"]),
            as_matrix(weights["mean.weight"]),
        )


def _in_blocks(weight: NDArray[Any]) -> NDArray[Any]:
    """A weight (gate x dim, ...) as (block, gate, unit, ...), padded with zeros: a padded unit stays 0."""
    gates = weight.reshape(GATES, -1, *weight.shape[1:])
    padding = [(0, 0), (0, -gates.shape[1] % UNITS), *((0, 0) for _ in weight.shape[1:])]
    padded = np.pad(gates, padding)
    return padded.reshape(GATES, -1, UNITS, *weight.shape[1:]).swapaxes(0, 1).copy()


def _step_intrinsic(
    typing_context: Any, weights: Any, block: Any, hidden: Any, inputs: Any, time: Any, bias: Any, result: Any
) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        integer, lanes = ir.IntType(64), ir.VectorType(ir.FloatType(), LANES)
        undefined = ir.Constant(lanes, ir.Undefined)
        first = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
        matrix, old, sums, shift, new = (
            context.make_array(signature.args[number])(context, builder, arguments[number])
            for number in (0, 2, 3, 5, 6)
        )
        steps = cgutils.unpack_tuple(builder, matrix.shape)[1]
        row_length = cgutils.unpack_tuple(builder, sums.shape)[1]
        width = GATES * UNITS

        def vector(pointer: Any, offset: Any, number: int) -> Any:
            start = builder.gep(pointer, [builder.add(offset, integer(number * LANES))])
            return builder.bitcast(start, lanes.as_pointer())

        def constant(value: float) -> Any:
            return ir.Constant(lanes, [value] * LANES)

        def sigmoid(x: Any) -> Any:
            power = build_exp(builder, builder.fneg(x), low=-MAX_EXPONENT, high=MAX_EXPONENT, flags=("fast",))
            return builder.fdiv(constant(1.0), builder.fadd(constant(1.0), power), flags=("fast",))

        at_block = builder.mul(arguments[1], integer(UNITS))
        at_inputs = builder.add(builder.mul(arguments[4], row_length), builder.mul(arguments[1], integer(width)))
        at_weights = builder.mul(builder.mul(arguments[1], steps), integer(width))
        registers = [cgutils.alloca_once(builder, lanes) for _ in range(GATES * VECTORS)]
        for number, register in enumerate(registers):
            if number < 2 * VECTORS:
                start = vector(sums.data, at_inputs, number)
            else:
                start = vector(shift.data, at_block, number - 2 * VECTORS)
            builder.store(builder.load(start, align=4), register)
        with cgutils.for_range(builder, steps) as loop:
            at = builder.add(at_weights, builder.mul(loop.index, integer(width)))
            value = builder.insert_element(
                undefined, builder.load(builder.gep(old.data, [loop.index])), ir.IntType(32)(0)
            )
            broadcast = builder.shuffle_vector(value, undefined, first)
            for number, register in enumerate(registers):
                read = builder.load(vector(matrix.data, at, number), align=4)
                product = builder.fmul(broadcast, read, flags=("contract",))
                builder.store(builder.fadd(builder.load(register), product, flags=("contract",)), register)
        for number in range(VECTORS):
            reset, update, from_hidden = (builder.load(registers[gate * VECTORS + number]) for gate in range(GATES))
            from_inputs = builder.load(vector(sums.data, at_inputs, 2 * VECTORS + number), align=4)
            reset, update = sigmoid(reset), sigmoid(update)
            total = builder.fadd(from_inputs, builder.fmul(reset, from_hidden, flags=("fast",)), flags=("fast",))
            # tanh(x) = 2 sigmoid(2 x) - 1
            doubled = sigmoid(builder.fadd(total, total))
            value = builder.fsub(builder.fadd(doubled, doubled), constant(1.0))
            before = builder.load(vector(old.data, at_block, number), align=4)
            change = builder.fmul(update, builder.fsub(before, value), flags=("fast",))
            builder.store(builder.fadd(value, change, flags=("fast",)), vector(new.data, at_block, number), align=4)
        return context.get_dummy_value()

    return types.void(weights, types.intp, hidden, inputs, types.intp, bias, result), generate


_step_block: Any = intrinsic(_step_intrinsic)
"""_step_block(weights, block, hidden, inputs, time, bias, result): one step of one block of hidden units."""


@njit(cache=True, nogil=True)
def gru_rows(weights: GRU, capacity: int) -> int:
    """The number of rows of a state."""
    return 3


@njit(cache=True, nogil=True)
def advance_gru(weights: GRU, state: Floats, count: int, inputs: Floats) -> None:
    """Update a state with further inputs (time, dim)."""
    steps, dim = inputs.shape
    blocks = len(weights.hidden)
    from_inputs = np.empty((steps, len(weights.input_bias)), np.float32)
    for t in range(steps):
        for k in range(from_inputs.shape[1]):
            from_inputs[t, k] = weights.input_bias[k]
    gemm_accumulate(inputs, steps, weights.inputs, from_inputs)
    hidden, after = np.zeros(blocks * UNITS, np.float32), np.empty(blocks * UNITS, np.float32)
    for k in range(dim):
        hidden[k] = state[0, k]
    for t in range(steps):
        for i in range(blocks):
            # Back and forth: the weights of the last block are still in the cache when the next step begins.
            _step_block(
                weights.hidden, i if t % 2 == 0 else blocks - 1 - i, hidden, from_inputs, t, weights.hidden_bias, after
            )
        hidden, after = after, hidden
    total = state[1]
    for t in range(steps):
        row = inputs[t]
        for k in range(len(total)):
            total[k] += row[k]
    for k in range(dim):
        state[0, k], state[2, k] = hidden[k], inputs[steps - 1, k]


@njit(cache=True, nogil=True, fastmath=True)
def read_gru(weights: GRU, state: Floats, count: int) -> Floats:
    """The user vector after `count` inputs."""
    user = weights.project_bias.copy()
    gemv_accumulate(state[0], weights.project, user)
    gemv_accumulate(state[2], weights.last, user)
    gemv_accumulate(state[1] / np.float32(count), weights.mean, user)
    return user
