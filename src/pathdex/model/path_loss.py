"""The structure loss of the MLP on the CPU, with its gradient.

Autograd computes logits and their gradient for each of the J paths of a sample. Here paths that share a prefix share
the layer after it, and the gradient has a few nodes drawn from the softmax instead of all of them (`kernels/draws.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd import Function

from pathdex.kernels.gemm import LANES
from pathdex.kernels.path_loss import path_loss
from pathdex.kernels.softmax import PADDING
from pathdex.model.losses import structure_loss
from pathdex.model.parallel import blocks, run_blocks, sum_in_order
from pathdex.model.precision import gradient_dtype, short_rows
from pathdex.model.structure import LayerNetwork, MLPStructure, path_log_probabilities

SAMPLES = 1024
"""Samples of a block."""
DRAWS = 16
"""Draws per sample and layer that replace the softmax in the gradient."""


def mean_path_loss(structure: LayerNetwork, users: Tensor, paths: Tensor, offsets: Tensor) -> Tensor:
    """Mean of -log sum_j p(c_j | x) for users (sample, dim) and paths (sample, path, layer).

    Computed here for the MLP on the CPU, by autograd for other layer networks and devices.

    Differs from the paper: here the gradient has `DRAWS` draws from each softmax instead of the whole of it, which is
    unbiased. `offsets` (sample,) are uniform in [0, 1). The loss itself is exact.
    """
    if not isinstance(structure, MLPStructure) or users.device.type != "cpu":
        return structure_loss(path_log_probabilities(structure, users, paths))
    layers = [(one.weight, one.bias) for one in structure.outputs]
    tables = [structure.node_table(layer) for layer in range(structure.depth - 1)]
    arguments = [structure.user.weight, structure.user.bias, *tables, *(one for pair in layers for one in pair)]
    return _PathLoss.apply(users, paths, offsets, *arguments)  # type: ignore[no-any-return, no-untyped-call]


@torch.no_grad()
def set_path_gradients(structure: MLPStructure, users: Tensor, paths: Tensor, offsets: Tensor) -> float:
    """`mean_path_loss` of fixed users on the CPU; its gradient becomes that of the structure's parameters.

    The same numbers as a backward pass. A step of a thousand samples is so short that autograd takes a tenth of it.
    """
    inputs: list[Any] = [one.weight for one in structure.inputs]
    tables = [structure.node_table(layer) for layer in range(structure.depth - 1)]
    outputs, biases = ([getattr(one, name) for one in structure.outputs] for name in ("weight", "bias"))
    loss, found = _gradients(
        users, paths, offsets, structure.user.weight, structure.user.bias, tables, outputs, biases, with_users=False
    )
    structure.user.weight.grad, structure.user.bias.grad = found.weight, found.bias
    for nodes, matrix, gradient in zip(structure.nodes, inputs, found.tables, strict=True):
        flat = gradient.flatten(1)
        nodes.grad, matrix.grad = flat @ matrix, flat.T @ nodes
    for layer, one in enumerate(structure.outputs):
        one.weight.grad, one.bias.grad = found.outputs[layer], found.biases[layer]
    return float(loss)


class _Gradients(NamedTuple):
    users: Tensor | None
    weight: Tensor
    bias: Tensor
    tables: list[Tensor]
    outputs: Tensor
    biases: Tensor


def _gradients(
    users: Tensor,
    paths: Tensor,
    offsets: Tensor,
    weight: Tensor,
    bias: Tensor,
    tables: Sequence[Tensor],
    outputs: Sequence[Tensor],
    biases: Sequence[Tensor],
    *,
    with_users: bool,
) -> tuple[Tensor, _Gradients]:
    """The mean loss and its gradients."""
    depth = paths.shape[2]
    hidden, num_nodes = len(weight) // depth, len(biases[0])
    padding = -num_nodes % LANES
    dtype = gradient_dtype(len(users))
    pairs = [(before, layer) for layer in range(depth) for before in range(layer)]
    nodes = torch.empty(len(pairs), num_nodes, hidden)
    for number, (before, layer) in enumerate(pairs):
        nodes[number] = tables[before][:, layer - before - 1]
    weights, added = torch.stack(list(outputs)), torch.full((depth, num_nodes + padding), float(PADDING))
    added[:, :num_nodes] = torch.stack(list(biases))
    matrices = torch.zeros(depth, hidden, num_nodes + padding)
    matrices[:, :, :num_nodes] = weights.transpose(1, 2)
    users_gradient = torch.empty_like(users) if with_users else None
    constant = nodes.numpy(), matrices.numpy(), weights.numpy(), added.numpy()

    def block(part: slice) -> tuple[Tensor, ...]:
        sums = torch.addmm(bias, users[part], weight.T).view(-1, depth, hidden)
        gradients = torch.zeros(nodes.shape), torch.zeros(weights.shape), torch.zeros(added.shape)
        samples = paths[part].numpy(), offsets[part].numpy()
        loss: float = path_loss(sums.numpy(), *constant, *samples, DRAWS, *(one.numpy() for one in gradients))
        sums = sums.flatten(1)
        if users_gradient is not None:
            users_gradient[part] = sums @ weight
        short = short_rows(sums, dtype)
        weight_gradient = (short.T @ short_rows(users[part], dtype)).float()
        return torch.tensor(loss), weight_gradient, sums.sum(dim=0), *gradients

    each = zip(*run_blocks(block, blocks(len(users), SAMPLES)), strict=True)
    loss, weight_gradient, bias_gradient, *gradients = (sum_in_order(one).div_(len(users)) for one in each)
    nodes_gradient, outputs_gradient, added_gradient = gradients
    table_gradients = [torch.empty_like(one) for one in tables]
    for number, (before, layer) in enumerate(pairs):
        table_gradients[before][:, layer - before - 1] = nodes_gradient[number]
    if users_gradient is not None:
        users_gradient /= len(users)
    found = _Gradients(
        users_gradient, weight_gradient, bias_gradient, table_gradients, outputs_gradient, added_gradient[:, :num_nodes]
    )
    return loss.to(users.dtype), found


class _PathLoss(Function):
    @staticmethod
    def forward(context: Any, users: Tensor, paths: Tensor, offsets: Tensor, *rest: Tensor) -> Tensor:
        weight, bias, *others = rest
        depth = paths.shape[2]
        tables, outputs, biases = others[: depth - 1], others[depth - 1 :: 2], others[depth::2]
        loss, found = _gradients(
            users, paths, offsets, weight, bias, tables, outputs, biases, with_users=context.needs_input_grad[0]
        )
        layers = [one for each in zip(found.outputs, found.biases, strict=True) for one in each]
        context.gradients = [found.users, found.weight, found.bias, *found.tables, *layers]
        return loss

    @staticmethod
    def backward(context: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        users, *others = (None if one is None else one * gradient for one in context.gradients)
        return users, None, None, *others
