"""The softmax loss over a batch's negatives on the CPU, with its gradient.

The gradient of the loss with respect to the scores is the softmax itself, so both come from one pass over the scores of
a block of samples. The matrix (sample, item) is never stored as a whole.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

from pathdex.kernels.gather import add_rows
from pathdex.kernels.sampled_softmax import softmax_rows
from pathdex.kernels.softmax import PADDING
from pathdex.model.parallel import blocks, run_blocks, sum_in_order
from pathdex.model.precision import STEP, gradient_dtype, short_rows

SAMPLES = 512
"""Samples of a block: few enough that their scores stay in the cache."""


def sampled_softmax_loss(users: Tensor, rows: Tensor, targets: Tensor, num_items: int, offset: Tensor | None) -> Tensor:
    """Mean of -log p_softmax(y | x), as `losses.softmax_loss` computes it from `losses.negative_scores`.

    Users (sample, dim), rows (row, [vector | bias]), of which the first `num_items` are the negatives and `targets`
    (sample,) the positives. `offset` (item,) is added to the scores of negatives.
    """
    return _SampledSoftmax.apply(users, rows, targets, num_items, offset)  # type: ignore[no-any-return, no-untyped-call]


class _SampledSoftmax(Function):
    @staticmethod
    def forward(
        context: Any, users: Tensor, rows: Tensor, targets: Tensor, num_items: int, offset: Tensor | None
    ) -> Tensor:
        dim = users.shape[1]
        width = -(-(num_items + 1) // STEP) * STEP  # The column after the items takes the positive.
        items, added = torch.zeros(width, dim), torch.full((width,), float(PADDING))
        items[:num_items] = rows[:num_items, :dim]
        added[:num_items] = rows[:num_items, dim] if offset is None else rows[:num_items, dim] + offset
        chosen = rows.index_select(0, targets)
        wanted = chosen[:, :dim]
        positive = (users * wanted).sum(dim=1).add_(chosen[:, dim])
        own = torch.where(targets < num_items, targets, -1)
        users_gradient, pulls = torch.empty_like(users), torch.empty(len(users))
        dtype = gradient_dtype(len(users))
        short_items = items.to(dtype)

        def block(part: slice) -> tuple[float, Tensor, Tensor]:
            scores, sums = users[part] @ items.T, torch.zeros(width)
            loss = softmax_rows(
                scores.numpy(),
                added.numpy(),
                positive[part].numpy(),
                own[part].numpy(),
                num_items,
                pulls[part].numpy(),
                sums.numpy(),
            )
            softmax = short_rows(scores, dtype)
            users_gradient[part] = (softmax @ short_items)[: part.stop - part.start]
            return loss, (softmax.T @ short_rows(users[part], dtype)).float(), sums

        losses, vectors, biases = zip(*run_blocks(block, blocks(len(users), SAMPLES)), strict=True)
        rows_gradient = torch.zeros(rows.shape)
        rows_gradient[:num_items, :dim] = sum_in_order(vectors)[:num_items]
        rows_gradient[:num_items, dim] = sum_in_order(biases)[:num_items]
        users_gradient.addcmul_(wanted, pulls[:, None])
        add_rows(
            torch.cat([users * pulls[:, None], pulls[:, None]], dim=1).numpy(), targets.numpy(), rows_gradient.numpy()
        )
        context.save_for_backward(users_gradient, rows_gradient)
        return torch.tensor(sum(losses) / len(users), dtype=users.dtype)

    @staticmethod
    def backward(context: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        users, rows = context.saved_tensors
        scale = gradient / len(users)
        return users * scale, rows * scale, None, None, None
