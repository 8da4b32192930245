"""The node model's score and gradient as compiled loops, node by node.

No tensor (user, node, hidden) is ever built: the parts of users and nodes are computed once each, and combining them
needs a few hundred numbers, which stay in the first-level cache. `NodeModel.forward` is the reference in torch.
"""

# mypy: disallow-untyped-decorators=False
from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from numba import njit, prange
from numpy.typing import NDArray
from torch import Tensor

from pathdex.kernels.exp import fast_exp
from pathdex.kernels.prefetch import ROW_LINES, prefetch_lines
from pathdex.kernels.types import Floats
from pathdex.recommenders.tree.node_model import NodeModel, User

NOTHING, ONE = np.float32(0.0), np.float32(1.0)


class NodeInputs(NamedTuple):
    """Inputs of the score; also used for their gradients."""

    keys: Floats
    windows: Floats
    values: Floats
    vector: Floats
    hidden: Floats
    recency: Floats
    out: Floats
    """(hidden,)."""
    table: Floats
    """(row, dim + 1): node vectors and, in the last column, biases."""
    nodes: Floats
    """(row, hidden): the nodes' part of the hidden units."""


def node_logits(model: NodeModel, user: User, table: Tensor, codes: NDArray[np.int64]) -> Floats:
    """Logits (user, node) for indices (user, node) into a table of rows."""
    logits = np.empty(codes.shape, np.float32)
    _score(_node_inputs(*_tensors(model, user, table)), user.reached.numpy(), codes, logits)
    return logits


def node_loss(
    model: NodeModel,
    user: User,
    table: Tensor,
    codes: NDArray[np.int64],
    labels: Floats,
    weights: Floats,
    offsets: Floats,
) -> Tensor:
    """Weighted sum of binary cross-entropies for labels (user, node), with `offsets` added to the logits."""
    apply: Callable[..., Tensor] = _Loss.apply
    return apply(user.reached.numpy(), codes, labels, weights, offsets, *_tensors(model, user, table))


def _tensors(model: NodeModel, user: User, table: Tensor) -> tuple[Tensor, ...]:
    return (*user[:5], model.recency, model.out.weight, table, model.node_part.weight)


def _node_inputs(*tensors: Tensor) -> NodeInputs:
    *parts, out, table, weight = (tensor.detach().contiguous() for tensor in tensors)
    nodes = table[:, :-1] @ weight.T
    return NodeInputs(*(tensor.numpy() for tensor in (*parts, out[0], table, nodes)))


class _Loss(torch.autograd.Function):
    @staticmethod
    def forward(
        context: Any,
        reached: NDArray[np.int64],
        codes: NDArray[np.int64],
        labels: Floats,
        weights: Floats,
        offsets: Floats,
        *tensors: Tensor,
    ) -> Tensor:
        inputs = _node_inputs(*tensors)
        gradient = NodeInputs(*(np.zeros_like(array) for array in inputs))
        loss = _loss_gradient(inputs, reached, codes, labels, weights, offsets, gradient)
        *parts, to_out, to_table, to_nodes = (torch.from_numpy(array) for array in gradient)
        table, weight = tensors[-2:]
        to_table[:, :-1] += to_nodes @ weight
        context.save_for_backward(*parts, to_out[None], to_table, to_nodes.T @ table[:, :-1])
        return torch.tensor(loss, dtype=torch.float32)

    @staticmethod
    def backward(context: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        return None, None, None, None, None, *(gradient.mul_(upstream) for gradient in context.saved_tensors)


@njit(cache=True, nogil=True, fastmath=True, inline="always")
def _node_logit(
    inputs: NodeInputs, user: int, count: int, node: int, attention: Floats, likeness: Floats, units: Floats
) -> np.float32:
    """The logit; leaves the attention, each window's product with the node, and the hidden units before relu."""
    keys, windows, values, vector, hidden, recency, out, table, nodes = inputs
    dim, top = vector.shape[1], np.float32(-np.inf)
    for w in range(count):
        first, second = NOTHING, NOTHING
        for d in range(dim):
            first += table[node, d] * keys[user, w, d]
            second += table[node, d] * windows[user, w, d]
        attention[w], likeness[w] = first + recency[w], second
        top = max(top, attention[w])
    total = NOTHING
    for w in range(count):
        attention[w] = fast_exp(attention[w] - top)
        total += attention[w]
    logit: np.float32 = table[node, dim]
    for w in range(count):
        attention[w] /= total
        logit += attention[w] * likeness[w]
    for d in range(dim):
        logit += table[node, d] * vector[user, d]
    for h in range(len(units)):
        units[h] = nodes[node, h] + hidden[user, h]
    for w in range(count):
        share = attention[w]
        for h in range(len(units)):
            units[h] += share * values[user, w, h]
    for h in range(len(units)):
        logit += max(units[h], NOTHING) * out[h]
    return logit


@njit(cache=True, nogil=True, fastmath=True, parallel=True)
def _score(inputs: NodeInputs, count: NDArray[np.int64], codes: NDArray[np.int64], logits: Floats) -> None:
    for user in prange(len(codes)):
        attention, likeness = np.empty((2, inputs.keys.shape[1]), np.float32)
        units = np.empty(len(inputs.out), np.float32)
        for place in range(codes.shape[1]):
            logits[user, place] = _node_logit(inputs, user, count[user], codes[user, place], attention, likeness, units)


@njit(cache=True, nogil=True, fastmath=True)
def _loss_gradient(
    inputs: NodeInputs,
    count: NDArray[np.int64],
    codes: NDArray[np.int64],
    labels: Floats,
    weights: Floats,
    offsets: Floats,
    gradient: NodeInputs,
) -> float:
    """The loss; adds its gradient.

    The score is inlined, since a call to `_node_logit` per node takes an eighth of the time.
    No inner loop writes to more than one array: LLVM vectorises only loops where few arrays might overlap.
    """
    keys, windows, values, vector, hidden, recency, out, table, nodes = inputs
    to_keys, to_windows, to_values, to_vector, to_hidden, to_recency, to_out, to_table, to_nodes = gradient
    dim, hidden_dim = vector.shape[1], len(out)
    attention, likeness, slope = np.empty((3, keys.shape[1]), np.float32)
    units = np.empty(hidden_dim, np.float32)
    loss = 0.0
    for user in range(len(codes)):
        for place in range(codes.shape[1]):
            weight, label, node = weights[user, place], labels[user, place], codes[user, place]
            if place + 1 < codes.shape[1]:
                ahead = codes[user, place + 1]
                for rows in (table, nodes, to_table, to_nodes):
                    prefetch_lines(rows, ahead, ROW_LINES)
            if weight == NOTHING:
                continue
            top = np.float32(-np.inf)
            for w in range(count[user]):
                first, second = NOTHING, NOTHING
                for d in range(dim):
                    first += table[node, d] * keys[user, w, d]
                    second += table[node, d] * windows[user, w, d]
                attention[w], likeness[w] = first + recency[w], second
                top = max(top, attention[w])
            total = NOTHING
            for w in range(count[user]):
                attention[w] = fast_exp(attention[w] - top)
                total += attention[w]
            logit = table[node, dim] + offsets[user, place]
            for w in range(count[user]):
                attention[w] /= total
                logit += attention[w] * likeness[w]
            for d in range(dim):
                logit += table[node, d] * vector[user, d]
            for h in range(hidden_dim):
                units[h] = nodes[node, h] + hidden[user, h]
            for w in range(count[user]):
                share = attention[w]
                for h in range(hidden_dim):
                    units[h] += share * values[user, w, h]
            for h in range(hidden_dim):
                logit += max(units[h], NOTHING) * out[h]

            small = fast_exp(-abs(logit))
            loss += weight * (max(logit, NOTHING) - logit * label + np.log(ONE + small))
            error = weight * ((ONE if logit >= NOTHING else small) / (ONE + small) - label)
            for h in range(hidden_dim):
                to_out[h] += error * max(units[h], NOTHING)
            for h in range(hidden_dim):
                units[h] = error * out[h] if units[h] > NOTHING else NOTHING
            for h in range(hidden_dim):
                to_nodes[node, h] += units[h]
            for h in range(hidden_dim):
                to_hidden[user, h] += units[h]
            mean = NOTHING
            for w in range(count[user]):
                share, total = attention[w], NOTHING
                for h in range(hidden_dim):
                    total += values[user, w, h] * units[h]
                for h in range(hidden_dim):
                    to_values[user, w, h] += share * units[h]
                slope[w] = total + error * likeness[w]
                mean += share * slope[w]
            to_table[node, dim] += error
            for d in range(dim):
                to_table[node, d] += error * vector[user, d]
            for d in range(dim):
                to_vector[user, d] += error * table[node, d]
            for w in range(count[user]):
                change, share = attention[w] * (slope[w] - mean), error * attention[w]
                to_recency[w] += change
                for d in range(dim):
                    to_table[node, d] += change * keys[user, w, d] + share * windows[user, w, d]
                for d in range(dim):
                    to_keys[user, w, d] += change * table[node, d]
                for d in range(dim):
                    to_windows[user, w, d] += share * table[node, d]
    return loss
