"""The GRU encoder, one history or a few at a time.

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
from pathdex.kernels.types import Floats, Ints

GATES = 3
"""r (reset), z (update) and n (new)."""
VECTORS = 2
"""Vectors of LANES hidden units whose gates are computed together: six sums hide the latency of each other."""
UNITS = VECTORS * LANES
HISTORIES = 4
"""Histories whose steps are computed together, so that the weights are read once for all of them."""
PART = 8
"""Hidden units of several histories whose gates are computed together: as many sums as for one history."""
LEAST_TOGETHER = 3
"""Fewer histories take less time one by one."""


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


def _step(histories: int, lanes: int, vectors: int) -> Any:
    """An intrinsic for one step of `lanes` x `vectors` hidden units of some histories.

    Each number of the result is computed in the same order, however many histories and units there are.
    """

    @intrinsic  # type: ignore[untyped-decorator, unused-ignore]
    def step_units(
        typing_context: Any,
        weights: Any,
        block: Any,
        part: Any,
        hidden: Any,
        inputs: Any,
        rows: Any,
        bias: Any,
        result: Any,
    ) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            integer, kind = ir.IntType(64), ir.VectorType(ir.FloatType(), lanes)
            undefined = ir.Constant(kind, ir.Undefined)
            first = ir.Constant(ir.VectorType(ir.IntType(32), lanes), [0] * lanes)
            matrix, old, sums, at_rows, shift, new = (
                context.make_array(signature.args[number])(context, builder, arguments[number])
                for number in (0, 3, 4, 5, 6, 7)
            )
            steps = cgutils.unpack_tuple(builder, matrix.shape)[1]
            row_length = cgutils.unpack_tuple(builder, sums.shape)[1]
            units = cgutils.unpack_tuple(builder, old.shape)[1]
            width = GATES * UNITS

            def vector(pointer: Any, offset: Any, number: int) -> Any:
                start = builder.gep(pointer, [builder.add(offset, integer(number))])
                return builder.bitcast(start, kind.as_pointer())

            def constant(value: float) -> Any:
                return ir.Constant(kind, [value] * lanes)

            def sigmoid(x: Any) -> Any:
                power = build_exp(builder, builder.fneg(x), low=-MAX_EXPONENT, high=MAX_EXPONENT, flags=("fast",))
                # Not "fast": the approximate reciprocal of a processor differs between vectors of 8 and of 16 lanes.
                return builder.fdiv(constant(1.0), builder.fadd(constant(1.0), power))

            at_part = builder.mul(arguments[2], integer(lanes * vectors))
            at_units = builder.add(builder.mul(arguments[1], integer(UNITS)), at_part)
            at_weights = builder.add(builder.mul(builder.mul(arguments[1], steps), integer(width)), at_part)
            at_columns = builder.add(builder.mul(arguments[1], integer(width)), at_part)
            at_inputs = [
                builder.add(
                    builder.mul(builder.load(builder.gep(at_rows.data, [integer(one)])), row_length), at_columns
                )
                for one in range(histories)
            ]
            olds, news = (
                [builder.gep(array.data, [builder.mul(units, integer(one))]) for one in range(histories)]
                for array in (old, new)
            )
            places = [(one, number) for one in range(histories) for number in range(vectors)]
            registers = {}
            for one, number in places:
                for gate in range(GATES):
                    if gate < GATES - 1:
                        start = vector(sums.data, at_inputs[one], gate * UNITS + number * lanes)
                    else:
                        start = vector(shift.data, at_units, number * lanes)
                    registers[one, gate, number] = cgutils.alloca_once(builder, kind)
                    builder.store(builder.load(start, align=4), registers[one, gate, number])
            with cgutils.for_range(builder, steps) as loop:
                at = builder.add(at_weights, builder.mul(loop.index, integer(width)))
                read = {
                    (gate, number): builder.load(vector(matrix.data, at, gate * UNITS + number * lanes), align=4)
                    for gate in range(GATES)
                    for number in range(vectors)
                }
                for one in range(histories):
                    value = builder.insert_element(
                        undefined, builder.load(builder.gep(olds[one], [loop.index])), ir.IntType(32)(0)
                    )
                    broadcast = builder.shuffle_vector(value, undefined, first)
                    for (gate, number), weight in read.items():
                        register = registers[one, gate, number]
                        product = builder.fmul(broadcast, weight, flags=("contract",))
                        builder.store(builder.fadd(builder.load(register), product, flags=("contract",)), register)
            # Two at a time, so that one hides the latency of the other.
            for pair in range(0, len(places), 2):
                totals, updates = [], []
                for one, number in places[pair : pair + 2]:
                    from_inputs = vector(sums.data, at_inputs[one], 2 * UNITS + number * lanes)
                    reset, update, from_hidden = (builder.load(registers[one, gate, number]) for gate in range(GATES))
                    change = builder.fmul(sigmoid(reset), from_hidden, flags=("fast",))
                    totals.append(builder.fadd(builder.load(from_inputs, align=4), change, flags=("fast",)))
                    updates.append(sigmoid(update))
                for (one, number), total, update in zip(places[pair : pair + 2], totals, updates, strict=True):
                    # tanh(x) = 2 sigmoid(2 x) - 1
                    doubled = sigmoid(builder.fadd(total, total))
                    value = builder.fsub(builder.fadd(doubled, doubled), constant(1.0))
                    before = builder.load(vector(olds[one], at_units, number * lanes), align=4)
                    change = builder.fmul(update, builder.fsub(before, value), flags=("fast",))
                    after = vector(news[one], at_units, number * lanes)
                    builder.store(builder.fadd(value, change, flags=("fast",)), after, align=4)
            return context.get_dummy_value()

        arrays = hidden, inputs, rows, bias, result
        return types.void(weights, types.intp, types.intp, *arrays), generate

    return step_units


_step_one = _step(1, LANES, VECTORS)
"""_step_one(weights, block, part, hidden, inputs, rows, bias, result): one step of a block of units; `part` is 0.

`hidden` and `result` are (history, unit), and `rows` are the rows of `inputs` that the histories read."""
_step_together = _step(HISTORIES, PART, 1)
"""The same for `HISTORIES` histories and one part of a block, `PART` units."""


@njit(cache=True, nogil=True)
def gru_rows(weights: GRU, capacity: int) -> int:
    """The number of rows of a state."""
    return 3


@njit(cache=True, nogil=True)
def advance_gru(weights: GRU, state: Floats, count: int, inputs: Floats) -> None:
    """Update a state with further inputs (time, dim)."""
    starts = np.zeros(2, np.int64)
    starts[1] = len(inputs)
    advance_grus(weights, state.reshape(1, state.shape[0], state.shape[1]), inputs, starts)


@njit(cache=True, nogil=True)
def advance_grus(weights: GRU, states: Floats, inputs: Floats, starts: Ints) -> None:
    """Update at most `HISTORIES` states (history, row, dim) with the inputs from `starts[i]` to `starts[i + 1]`."""
    dim, blocks = inputs.shape[1], len(weights.hidden)
    from_inputs = np.empty((len(inputs), len(weights.input_bias)), np.float32)
    for t in range(len(inputs)):
        for k in range(from_inputs.shape[1]):
            from_inputs[t, k] = weights.input_bias[k]
    gemm_accumulate(inputs, len(inputs), weights.inputs, from_inputs)
    hidden = np.zeros((HISTORIES, blocks * UNITS), np.float32)
    for one in range(len(states)):
        for k in range(dim):
            hidden[one, k] = states[one, 0, k]
    together = _common_steps(starts)
    hidden = _steps_together(weights, states, hidden, from_inputs, starts, together)
    for one in range(len(states)):
        if starts[one + 1] - starts[one] > together:
            rest = from_inputs[starts[one] + together : starts[one + 1]]
            _keep(_steps_alone(weights, hidden[one : one + 1], rest, together), 0, states[one])
        total = states[one, 1]
        for t in range(starts[one], starts[one + 1]):
            row = inputs[t]
            for k in range(len(total)):
                total[k] += row[k]
        for k in range(dim):
            states[one, 2, k] = inputs[starts[one + 1] - 1, k]


@njit(cache=True, nogil=True)
def _common_steps(starts: Ints) -> int:
    """The number of steps that at least `LEAST_TOGETHER` histories take."""
    most = np.int64(0)
    for one in range(len(starts) - 1):
        steps, as_long = starts[one + 1] - starts[one], 0
        for other in range(len(starts) - 1):
            as_long += starts[other + 1] - starts[other] >= steps
        if as_long >= LEAST_TOGETHER:
            most = max(most, steps)
    return int(most)


@njit(cache=True, nogil=True)
def _keep(hidden: Floats, row: int, state: Floats) -> None:
    for k in range(state.shape[1]):
        state[0, k] = hidden[row, k]


@njit(cache=True, nogil=True)
def _steps_together(
    weights: GRU, states: Floats, hidden: Floats, from_inputs: Floats, starts: Ints, steps: int
) -> Floats:
    """The hidden vectors after some steps; of histories that end before, the hidden vector is kept in the state."""
    after, rows = np.empty_like(hidden), np.zeros(HISTORIES, np.int64)
    parts = hidden.shape[1] // PART
    for t in range(steps):
        for one in range(len(states)):
            rows[one] = min(starts[one] + t, starts[one + 1] - 1)
        for i in range(parts):
            part = i if t % 2 == 0 else parts - 1 - i
            block, within = part // (UNITS // PART), part % (UNITS // PART)
            _step_together(weights.hidden, block, within, hidden, from_inputs, rows, weights.hidden_bias, after)
        hidden, after = after, hidden
        for one in range(len(states)):
            if starts[one] + t == starts[one + 1] - 1:
                _keep(hidden, one, states[one])
    return hidden


@njit(cache=True, nogil=True)
def _steps_alone(weights: GRU, hidden: Floats, from_inputs: Floats, first: int) -> Floats:
    """The hidden vector (1, unit) after the steps of one history."""
    hidden, after, rows = hidden.copy(), np.empty_like(hidden), np.zeros(1, np.int64)
    blocks = len(weights.hidden)
    for t in range(len(from_inputs)):
        rows[0] = t
        for i in range(blocks):
            # Back and forth: the weights of the last block are still in the cache when the next step begins.
            block = i if (first + t) % 2 == 0 else blocks - 1 - i
            _step_one(weights.hidden, block, 0, hidden, from_inputs, rows, weights.hidden_bias, after)
        hidden, after = after, hidden
    return hidden


@njit(cache=True, nogil=True, fastmath=True)
def read_gru(weights: GRU, state: Floats, count: int) -> Floats:
    """The user vector after `count` inputs."""
    user = weights.project_bias.copy()
    gemv_accumulate(state[0], weights.project, user)
    gemv_accumulate(state[2], weights.last, user)
    gemv_accumulate(state[1] / np.float32(count), weights.mean, user)
    return user
