"""The structure model p(c | x) = prod_d p(c_d | x, c_1..c_{d-1}): Eq. (1).

A layer network has three verbs: `begin` a state from user vectors, read the `logits` of a layer off the state, and
`advance` the state by the node chosen in that layer. Path probabilities and the beam need nothing else, so a new layer
network is one class here and one entry in `STRUCTURES`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn


class LayerNetwork(Protocol):
    """What path probabilities and the beam need of a structure model."""

    num_nodes: int
    depth: int

    def begin(self, users: Tensor) -> Tensor:
        """The state before the first layer: (batch, dim) -> (batch, ...)."""

    def logits(self, state: Tensor, layer: int) -> Tensor:
        """The scores of a layer's nodes: (..., node)."""

    def advance(self, state: Tensor, layer: int, nodes: Tensor) -> Tensor:
        """The state after choosing `nodes` in `layer`."""

    def follow(self, users: Tensor, paths: Tensor) -> Iterator[Tensor]:
        """The logits of each layer along users' (batch, dim) paths (batch, path, layer): (batch, node) for the first
        layer, where all paths of a user agree, then (batch, path, node)."""


class MLPStructure(nn.Module):
    """One MLP with a K-class softmax per layer, over the user vector and the embeddings of all previous nodes.

    The first linear map of a concatenation is a sum of linear maps, W [x; e(c1); ..] = W_x x + W_1 e(c1) + .., so the
    state holds these sums for the layers still to come, and a node adds one row of a table to them.
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
        # As `begin` and `advance` would, but layer by layer: gradients through slices of one state cost as much again.
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
        """(node, later layer, hidden): what choosing a node of this layer adds to the layers after it."""
        return self.inputs[layer](self.nodes[layer]).unflatten(-1, (-1, self.hidden))  # type: ignore[no-any-return]

    @torch.no_grad()
    def layer_arrays(self) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float32]]:
        """For compiled code: node tables (layer, node, later layer, hidden), outputs (layer, node, hidden) and bias."""
        nodes = np.zeros((self.depth, self.num_nodes, self.depth, self.hidden), np.float32)
        for layer in range(self.depth - 1):
            nodes[layer, :, layer + 1 :] = self.node_table(layer).cpu().numpy()
        weights = [output.state_dict() for output in self.outputs]
        outputs, bias = (np.stack([one[name].cpu().numpy() for one in weights]) for name in ("weight", "bias"))
        return nodes, outputs, bias


class RecurrentStructure(nn.Module):
    """A GRU cell carries the user and the path so far; each layer reads a softmax off its state.

    The alternative that the paper's footnote names.
    """

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
    """log p(c | x) of each user's paths: users (batch, dim), paths (batch, path, layer) -> (batch, path)."""
    layers = structure.follow(users, paths)
    total = next(layers).log_softmax(dim=-1).gather(1, paths[..., 0])  # (batch, path)
    for layer, logits in enumerate(layers, start=1):
        total = total + logits.log_softmax(dim=-1).gather(2, paths[..., layer, None]).squeeze(2)
    return total
