"""The softmax loss over a batch's negatives on the CPU, with its gradient.

The gradient of the loss with respect to the scores is the softmax itself, so both come from one pass over the scores of
a block of samples. The gradient has a few items drawn from the softmax instead of all of them (`kernels/draws.py`).
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

from pathdex.kernels.gather import add_rows
from pathdex.kernels.gemm import LANES
from pathdex.kernels.sampled_softmax import softmax_rows
from pathdex.kernels.softmax import PADDING
from pathdex.model.parallel import blocks, run_blocks, sum_in_order

SAMPLES = 512
"""Samples of a block: few enough that their scores stay in the cache."""
DRAWS = 32
"""Draws per sample that replace the softmax in the gradient."""


def sampled_softmax_loss(
    users: Tensor, rows: Tensor, targets: Tensor, num_items: int, offset: Tensor | None, points: Tensor
) -> Tensor:
    """Mean of -log p_softmax(y | x), as `losses.softmax_loss` computes it from `losses.negative_scores`.

    Users (sample, dim), rows (row, [vector | bias]), of which the first `num_items` are the negatives and `targets`
    (sample,) the positives. `offset` (item,) is added to the scores of negatives. The loss is exact, its gradient is
    drawn with `points` (sample,) uniform in [0, 1).
    """
    return _SampledSoftmax.apply(users, rows, targets, num_items, offset, points)  # type: ignore[no-any-return, no-untyped-call]


class _SampledSoftmax(Function):
    @staticmethod
    def forward(
        context: Any,
        users: Tensor,
        rows: Tensor,
        targets: Tensor,
        num_items: int,
        offset: Tensor | None,
        points: Tensor,
    ) -> Tensor:
        dim = users.shape[1]
        width = -(-(num_items + 1) // LANES) * LANES  # The column after the items takes the positive.
        items, added = torch.zeros(width, dim), torch.full((width,), float(PADDING))
        items[:num_items] = rows[:num_items, :dim]
        added[:num_items] = rows[:num_items, dim] if offset is None else rows[:num_items, dim] + offset
        chosen = rows.index_select(0, targets)
        wanted = chosen[:, :dim]
        positive = (users * wanted).sum(dim=1).add_(chosen[:, dim])
        own = torch.where(targets < num_items, targets, -1)
        users_gradient, pulls = torch.empty_like(users), torch.empty(len(users))

        def block(part: slice) -> tuple[float, Tensor, Tensor]:
            scores = users[part] @ items.T
            items_gradient, sums = torch.zeros(width, dim), torch.zeros(width)
            loss: float = softmax_rows(
                scores.numpy(),
                added.numpy(),
                positive[part].numpy(),
                own[part].numpy(),
                num_items,
                points[part].numpy(),
                DRAWS,
                users[part].numpy(),
                items.numpy(),
                pulls[part].numpy(),
                users_gradient[part].numpy(),
                items_gradient.numpy(),
                sums.numpy(),
            )
            return loss, items_gradient, sums

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
        return users * scale, rows * scale, None, None, None, None
