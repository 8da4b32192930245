"""The encoder's inputs and its GRU on the CPU, with hand-written gradients.

Torch's GRU on the CPU is a loop of a dozen operators per time step, and its backward pass another. These functions do
the same arithmetic in a few passes, on windows in blocks. All arrays are time-major.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

from pathdex.kernels import gru_training as gru
from pathdex.kernels.gather import add_parts, gather_vectors, scatter_vectors
from pathdex.model.dropout import BatchPart, draw_dropout
from pathdex.model.parallel import ROWS, blocks, run_blocks, sum_in_order
from pathdex.model.precision import gradient_dtype, short_rows

WINDOWS = 24
"""Windows that a thread takes through all time steps at once."""


def gather_inputs(rows: Tensor, start: Tensor, codes: Tensor, dropout: float, part: BatchPart | None = None) -> Tensor:
    """Vectors (time, batch, dim) for indices (batch, time) into `rows`, -1 for `start`, with dropout."""
    return _GatherInputs.apply(rows, start, codes, dropout, part)  # type: ignore[no-any-return, no-untyped-call]


class _GatherInputs(Function):
    @staticmethod
    def forward(
        context: Any, rows: Tensor, start: Tensor, codes: Tensor, dropout: float, part: BatchPart | None
    ) -> Tensor:
        batch, time, dim = *codes.shape, len(start)
        drawn = draw_dropout((batch, time, dim), dropout, part)
        context.save_for_backward(codes)
        context.shape, context.drawn = rows.shape, drawn
        result = torch.empty(time, batch, dim)
        bits = drawn.bits.numpy()
        gather_vectors(rows.numpy(), start.numpy(), codes.numpy(), bits, drawn.limit, drawn.scale, result.numpy())
        return result

    @staticmethod
    def backward(context: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        (codes,), drawn = context.saved_tensors, context.drawn
        rows, start = torch.zeros(context.shape), torch.zeros(gradient.shape[-1])
        arrays = gradient.contiguous().numpy(), codes.numpy(), drawn.bits.numpy()
        scatter_vectors(*arrays, drawn.limit, drawn.scale, rows.numpy(), start.numpy())
        return rows, start, None, None, None


def recurrent_features(vectors: Tensor, recurrent: torch.nn.GRU, samples: Tensor) -> Tensor:
    """[h_t, e_t, mean(e_1..e_t)] at flat places (sample,) of vectors (time, batch, dim): (sample, 3 dim)."""
    weights = recurrent.weight_ih_l0, recurrent.weight_hh_l0, recurrent.bias_ih_l0, recurrent.bias_hh_l0
    return _RecurrentFeatures.apply(vectors, *weights, samples)  # type: ignore[no-any-return, no-untyped-call]


class _RecurrentFeatures(Function):
    @staticmethod
    def forward(context: Any, vectors: Tensor, input_weight: Tensor, state_weight: Tensor, *rest: Tensor) -> Tensor:
        input_bias, state_bias, samples = rest
        time, batch, dim = vectors.shape
        hidden = state_weight.shape[1]
        flat = vectors.reshape(-1, dim)
        gates = torch.empty(len(flat), 3 * hidden)
        run_blocks(
            lambda part: torch.addmm(input_bias, flat[part], input_weight.T, out=gates[part]), blocks(len(flat), ROWS)
        )
        gates = gates.view(time, batch, 3, hidden)
        states, candidate = torch.empty(time + 1, batch, hidden), torch.empty(time, batch, hidden)
        states[0] = 0.0
        matrix = state_weight.T.contiguous().numpy()
        arrays = gates.numpy(), matrix, state_bias.numpy(), states.numpy(), candidate.numpy()
        run_blocks(lambda part: gru.gru_forward(*arrays, part.start, part.stop), blocks(batch, WINDOWS))
        means = torch.empty_like(vectors)
        gru.running_mean(vectors.numpy(), means.numpy())
        context.save_for_backward(vectors, input_weight, state_weight, samples, gates, states, candidate)
        return torch.cat(
            [one.reshape(time * batch, -1).index_select(0, samples) for one in (states[1:], vectors, means)], dim=1
        )

    @staticmethod
    def backward(context: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        vectors, input_weight, state_weight, samples, gates, states, candidate = context.saved_tensors
        time, batch, dim = vectors.shape
        hidden = state_weight.shape[1]
        parts = torch.zeros(3, time, batch, dim)
        add_parts(gradient.contiguous().numpy(), samples.numpy(), parts.view(3, -1, dim).numpy())
        arrays = gates.numpy(), state_weight.contiguous().numpy(), states.numpy(), candidate.numpy(), parts[0].numpy()
        run_blocks(lambda part: gru.gru_backward(*arrays, part.start, part.stop), blocks(batch, WINDOWS))
        gru.running_mean_backward(parts[2].numpy(), parts[1].numpy())
        flat, inputs = gates.view(-1, 3 * hidden), vectors.reshape(-1, dim)
        news, before = candidate.view(-1, hidden), states[:-1].view(-1, hidden)
        vectors_gradient = parts[1].view(-1, dim)

        dtype = gradient_dtype(len(samples))
        matrix = input_weight.to(dtype)

        def weights(part: slice) -> tuple[Tensor, Tensor, Tensor, Tensor]:
            short, short_news, short_before = (short_rows(one[part], dtype) for one in (flat, news, before))
            vectors_gradient[part] += (short @ matrix)[: part.stop - part.start]
            return (
                (short.T @ short_rows(inputs[part], dtype)).float(),
                torch.cat([short[:, : 2 * hidden].T @ short_before, short_news.T @ short_before]).float(),
                flat[part].sum(dim=0),
                news[part].sum(dim=0),
            )

        each = run_blocks(weights, blocks(len(flat), ROWS))
        input_gradient, state_gradient, input_bias, news_bias = (sum_in_order(one) for one in zip(*each, strict=True))
        state_bias = torch.cat([input_bias[: 2 * hidden], news_bias])
        return parts[1], input_gradient, state_gradient, input_bias, state_bias, None
