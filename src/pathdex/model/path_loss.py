"""The structure loss of the MLP on the CPU, with its gradient.

Autograd computes logits and their gradient for each of the J paths of a sample. Here paths that share a prefix share
the layer after it, and the gradient skips paths that contribute nearly nothing to log sum_j p(c_j | x).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd import Function
from torch.nn.functional import pad

from pathdex.kernels import path_loss
from pathdex.kernels.gemm import LANES
from pathdex.kernels.softmax import PADDING
from pathdex.model.losses import structure_loss
from pathdex.model.parallel import blocks, run_blocks, sum_in_order
from pathdex.model.precision import gradient_dtype, short_rows
from pathdex.model.structure import LayerNetwork, MLPStructure, path_log_probabilities

SAMPLES = 1024
"""Samples of a block."""
NEGLIGIBLE = 0.003
"""A prefix whose paths have less than this share of sum_j p(c_j | x) gets no gradient."""


def mean_path_loss(structure: LayerNetwork, users: Tensor, paths: Tensor) -> Tensor:
    """Mean of -log sum_j p(c_j | x) for users (sample, dim) and paths (sample, path, layer).

    Computed here for the MLP on the CPU, by autograd for other layer networks and devices.
    """
    if not isinstance(structure, MLPStructure) or users.device.type != "cpu":
        return structure_loss(path_log_probabilities(structure, users, paths))
    layers = [(one.weight, one.bias) for one in structure.outputs]
    tables = [structure.node_table(layer) for layer in range(structure.depth - 1)]
    arguments = [structure.user.weight, structure.user.bias, *tables, *(one for pair in layers for one in pair)]
    return _PathLoss.apply(users, paths, *arguments)  # type: ignore[no-any-return, no-untyped-call]


class _PathLoss(Function):
    @staticmethod
    def forward(context: Any, users: Tensor, paths: Tensor, weight: Tensor, bias: Tensor, *rest: Tensor) -> Tensor:
        depth = paths.shape[2]
        hidden = len(weight) // depth
        tables, outputs, biases = rest[: depth - 1], rest[depth - 1 :: 2], rest[depth::2]
        num_nodes = len(biases[0])
        padding = -num_nodes % LANES
        dtype = gradient_dtype(len(users))
        nodes = torch.zeros(depth, num_nodes, depth, hidden)
        for layer, table in enumerate(tables):
            nodes[layer, :, layer + 1 :] = table
        matrices = [pad(one, (0, 0, 0, padding)).to(dtype) for one in outputs]
        offsets = [pad(one, (0, padding), value=float(PADDING)) for one in biases]
        users_gradient = torch.empty_like(users) if context.needs_input_grad[0] else None

        def block(part: slice) -> tuple[Tensor, ...]:
            step = _Block(paths[part], nodes, dtype)
            sums = torch.addmm(bias, users[part], weight.T).view(-1, depth, hidden)
            loss = step.forward(sums, matrices, offsets)
            sums, nodes_gradient, layers = step.backward(matrices)
            sums = sums.flatten(1)
            if users_gradient is not None:
                users_gradient[part] = sums @ weight
            short = short_rows(sums, dtype)
            weight_gradient = (short.T @ short_rows(users[part], dtype)).float()
            return torch.tensor(loss), weight_gradient, sums.sum(dim=0), nodes_gradient, *layers

        each = zip(*run_blocks(block, blocks(len(users), SAMPLES)), strict=True)
        loss, weight_gradient, bias_gradient, nodes_gradient, *layers = (sum_in_order(one) for one in each)
        table_gradients = [nodes_gradient[layer, :, layer + 1 :] for layer in range(depth - 1)]
        layers = [one[:num_nodes] for one in layers]
        found = [users_gradient, weight_gradient, bias_gradient, *table_gradients, *layers]
        context.gradients = [None if one is None else one / len(users) for one in found]
        return (loss / len(users)).to(users.dtype)

    @staticmethod
    def backward(context: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        users, *others = (None if one is None else one * gradient for one in context.gradients)
        return users, None, *others


class _Block:
    """Forward and backward pass of a block of samples."""

    def __init__(self, paths: Tensor, nodes: Tensor, dtype: torch.dtype) -> None:
        self.number, self.each, self.depth = paths.shape
        self.hidden, self.dtype, self.nodes = nodes.shape[3], dtype, nodes
        self.paths = paths.contiguous().numpy()
        self.layers: list[tuple[Any, Any, Tensor, Tensor, Tensor]] = []
        """For each layer: row of each path, first path of each row, hidden rows in float32 and short, softmax."""

    def forward(self, sums: Tensor, matrices: list[Tensor], offsets: list[Tensor]) -> float:
        """The summed loss; `sums` (sample, layer, hidden) is W_x x + b."""
        number, each = self.number, self.each
        rows = np.repeat(np.arange(number), each).reshape(number, each)
        owners, count = np.arange(number) * each, number
        self.total = np.zeros((number, each), np.float32)
        for layer in range(self.depth):
            if layer > 0:
                before, rows, owners = rows, np.empty_like(rows), np.empty(number * each, np.int64)
                count = path_loss.prefix_rows(self.paths, layer, before, rows, owners)
                owners = owners[:count]
            hidden = torch.empty(count, self.hidden)
            path_loss.hidden_rows(sums.numpy(), self.nodes.numpy(), self.paths, owners, layer, hidden.numpy())
            short = short_rows(hidden, self.dtype)
            logits = (short @ matrices[layer].T).float()
            path_loss.add_log_probabilities(
                logits.numpy(), offsets[layer].numpy(), rows, self.paths, layer, count, self.total
            )
            self.layers.append((rows, owners, hidden, short, logits))
        return path_loss.responsibilities(self.total)

    def backward(self, matrices: list[Tensor]) -> tuple[Tensor, Tensor, list[Tensor]]:
        """Gradients of the sums, of the node table, and of each layer's weight and bias in turn."""
        sums = torch.zeros(self.number, self.depth, self.hidden)
        nodes, found = torch.zeros_like(self.nodes), []
        for layer, (rows, owners, hidden, short_hidden, shares) in enumerate(self.layers):
            gradient, bias = torch.empty_like(shares), torch.zeros(shares.shape[1])
            kept = np.empty(len(owners), np.int64)
            made = path_loss.logit_gradient(
                shares.numpy(),
                rows,
                self.paths,
                layer,
                self.total,
                np.float32(NEGLIGIBLE),
                np.empty(len(owners), np.float32),
                kept,
                gradient.numpy(),
                bias.numpy(),
            )
            kept = kept[:made]
            short = short_rows(gradient[:made], self.dtype)
            if made < len(owners):  # Padded rows have no gradient, so any row will do for them.
                padded = np.concatenate([kept, np.zeros(len(short) - made, np.int64)])
                short_hidden = short_hidden.index_select(0, torch.from_numpy(padded))
            found += [(short.T @ short_hidden).float(), bias]
            flow = (short @ matrices[layer]).float()
            path_loss.scatter_hidden(
                flow.numpy(), hidden.numpy(), kept, self.paths, owners, layer, sums.numpy(), nodes.numpy()
            )
        return sums, nodes, found
