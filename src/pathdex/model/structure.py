"""The structure model p(c | x) = prod_d p(c_d | x, c_1..c_{d-1}): Eq. (1).

A layer network has three methods: `begin` makes a state from user vectors, `logits` reads the scores of a layer off the
state, and `advance` updates the state by the node chosen in that layer. To add a layer network, add a class here and an
entry in `STRUCTURES`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn


class LayerNetwork(Protocol):
    """Interface of structure models for path probabilities and beam search."""

    num_nodes: int
    depth: int

    def begin(self, users: Tensor) -> Tensor:
        """The state before the first layer: (batch, dim) -> (batch, ...)."""

    def logits(self, state: Tensor, layer: int) -> Tensor:
        """Scores of a layer's nodes: (..., node)."""

    def advance(self, state: Tensor, layer: int, nodes: Tensor) -> Tensor:
        """The state after choosing `nodes` in `layer`."""

    def follow(self, users: Tensor, paths: Tensor) -> Iterator[Tensor]:
        """Logits of each layer along the paths (batch, path, layer) of users (batch, dim).

        (batch, node) for the first layer, which is the same for all paths of a user, then (batch, path, node).
        """


class MLPStructure(nn.Module):
    """One MLP with a K-class softmax per layer, over the user vector and the embeddings of all previous nodes.

    A linear map of a concatenation is a sum of linear maps, W [x; e(c1); ..] = W_x x + W_1 e(c1) + .., so the state
    holds these sums for the remaining layers, and choosing a node adds one row of a table.
    """

    def __init__(self, dim: int, num_nodes: int, depth: int, hidden: int, node_dim: int) -> None:
        super().__init__()
        self.num_nodes, self.depth, self.hidden = num_nodes, depth, hidden
        self.user = nn.Linear(dim, depth * hidden)
        self.nodes = nn.ParameterList(nn.Parameter(torch.randn(num_nodes, node_dim)) for _ in range(depth - 1))
        self.inputs = nn.ModuleList(
            nn.Linear(node_dim, (depth - 1 - layer) * hidden, bias=False) for layer in range(depth - 1)
        )
        self.outputs = nn.ModuleList(nn.Linear(hidden, num_nodes) for _ in range(depth))

    def begin(self, users: Tensor) -> Tensor:
        return self.user(users).unflatten(-1, (self.depth, self.hidden))  # type: ignore[no-any-return]

    def logits(self, state: Tensor, layer: int) -> Tensor:
        return self.outputs[layer](torch.relu(state[..., 0, :]))  # type: ignore[no-any-return]

    def advance(self, state: Tensor, layer: int, nodes: Tensor) -> Tensor:
        return state[..., 1:, :] + self.node_table(layer)[nodes]  # (..., later layer, hidden)

    def follow(self, users: Tensor, paths: Tensor) -> Iterator[Tensor]:
        # Like `begin` and `advance`, but layer by layer: gradients through slices of one state would double the cost.
        sums = self.begin(users).unbind(dim=-2)  # each (batch, hidden)
        tables = [self.node_table(layer).unbind(dim=1) for layer in range(self.depth - 1)]  # each (node, hidden)
        yield self.outputs[0](torch.relu(sums[0]))
        for layer in range(1, self.depth):
            hidden = sums[layer].unsqueeze(1)
            for before in range(layer):
                chosen = nn.functional.embedding(paths[..., before], tables[before][layer - before - 1])
                hidden = hidden + chosen  # (batch, path, hidden)
            yield self.outputs[layer](hidden.relu_())

    def node_table(self, layer: int) -> Tensor:
        """(node, later layer, hidden): what a node of this layer adds to later layers."""
        return self.inputs[layer](self.nodes[layer]).unflatten(-1, (-1, self.hidden))  # type: ignore[no-any-return]

    @torch.no_grad()
    def layer_arrays(self) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float32]]:
        """Weights for compiled code: nodes (layer, node, later layer, hidden), outputs (layer, node, hidden), bias."""
        nodes = np.zeros((self.depth, self.num_nodes, self.depth, self.hidden), np.float32)
        for layer in range(self.depth - 1):
            nodes[layer, :, layer + 1 :] = self.node_table(layer).cpu().numpy()
        weights = [output.state_dict() for output in self.outputs]
        outputs, bias = (np.stack([one[name].cpu().numpy() for one in weights]) for name in ("weight", "bias"))
        return nodes, outputs, bias


class RecurrentStructure(nn.Module):
    """A GRU cell over the path with one softmax per layer: the alternative in the paper's footnote."""

    def __init__(self, dim: int, num_nodes: int, depth: int, hidden: int, node_dim: int) -> None:
        super().__init__()
        self.num_nodes, self.depth, self.hidden = num_nodes, depth, hidden
        self.user = nn.Linear(dim, hidden)
        self.nodes = nn.ParameterList(nn.Parameter(torch.randn(num_nodes, node_dim)) for _ in range(depth - 1))
        self.cell = nn.GRUCell(node_dim, hidden)
        self.outputs = nn.ModuleList(nn.Linear(hidden, num_nodes) for _ in range(depth))

    def begin(self, users: Tensor) -> Tensor:
        return torch.tanh(self.user(users))

    def logits(self, state: Tensor, layer: int) -> Tensor:
        return self.outputs[layer](torch.relu(state))  # type: ignore[no-any-return]

    def advance(self, state: Tensor, layer: int, nodes: Tensor) -> Tensor:
        shape = (*nodes.shape, self.hidden)
        inputs = self.nodes[layer][nodes]
        after: Tensor = self.cell(inputs.flatten(0, -2), state.expand(shape).reshape(-1, self.hidden))
        return after.view(shape)

    def follow(self, users: Tensor, paths: Tensor) -> Iterator[Tensor]:
        state = self.begin(users)
        yield self.logits(state, 0)
        state = state.unsqueeze(1)  # (batch, 1, hidden)
        for layer in range(1, self.depth):
            state = self.advance(state, layer - 1, paths[..., layer - 1])  # (batch, path, hidden)
            yield self.logits(state, layer)


STRUCTURES: dict[str, Callable[[int, int, int, int, int], MLPStructure | RecurrentStructure]] = {
    "mlp": MLPStructure,
    "recurrent": RecurrentStructure,
}


def path_log_probabilities(structure: LayerNetwork, users: Tensor, paths: Tensor) -> Tensor:
    """log p(c | x), Eq. (1): users (batch, dim), paths (batch, path, layer) -> (batch, path)."""
    layers = structure.follow(users, paths)
    total = next(layers).log_softmax(dim=-1).gather(1, paths[..., 0])  # (batch, path)
    for layer, logits in enumerate(layers, start=1):
        total = total + logits.log_softmax(dim=-1).gather(2, paths[..., layer, None]).squeeze(2)
    return total
