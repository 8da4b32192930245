"""A tree, the vectors of its items and nodes, and the node model over them."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from pathdex.recommenders.tree.config import TreeConfig
from pathdex.recommenders.tree.kernels import node_logits, node_loss
from pathdex.recommenders.tree.node_model import NodeModel, User
from pathdex.recommenders.tree.tree import Tree

VECTORS = "vectors"


class TreeNetwork:
    """Rows of [vector | bias] per item and inner node, and the node model that scores them."""

    def __init__(self, settings: TreeConfig, tree: Tree, device: torch.device) -> None:
        dim = settings.embedding_dim
        self.settings, self.tree = settings, tree
        self.model = NodeModel(
            dim, settings.windows, settings.hidden, settings.dropout, attention=settings.node_model == "attention"
        ).to(device)
        self.rows: Tensor = torch.randn(tree.num_rows, dim + 1) * dim**-0.5
        self.rows[:, -1] = 0.0
        self.rows = self.rows.to(device)

    @property
    def device(self) -> torch.device:
        return self.rows.device

    @property
    def first_level(self) -> int:
        """The topmost scored level."""
        return min(self.settings.first_level, self.tree.depth - 1)

    @property
    def item_vectors(self) -> NDArray[np.float32]:
        return self.rows[: self.tree.num_items, :-1].cpu().numpy()

    def node_rows(self, level: int, nodes: NDArray[np.int64]) -> NDArray[np.int64]:
        """Table rows of a level's nodes."""
        return nodes + self.tree.first_row(level)

    def reading_level(self, level: int) -> int:
        """The level whose nodes represent history items when `level` is scored."""
        return level if self.settings.hierarchical else self.tree.depth

    def history_rows(self, level: int, items: NDArray[np.int64]) -> NDArray[np.int64]:
        """Table rows that represent history items when `level` is scored; -1 stays -1."""
        level = self.reading_level(level)
        rows = self.node_rows(level, self.tree.ancestors(level))
        return np.where(items < 0, -1, rows[items])

    def read(self, table: Tensor, codes: Tensor, sequence: Tensor, last: Tensor) -> User:
        """Users from histories of indices (sequence, time) into a table of rows; -1 is the start token."""
        inputs = torch.cat([table[:, :-1], self.model.start[None]])
        vectors = nn.functional.embedding(torch.where(codes < 0, len(table), codes), inputs)
        return self.model.read(vectors, sequence, last)

    def score(self, table: Tensor, user: User, codes: NDArray[np.int64]) -> NDArray[np.float32]:
        """Logits (user, node) for indices (user, node) into a table of rows."""
        if self.device.type == "cpu":
            return node_logits(self.model, user, table, codes)
        logits: NDArray[np.float32] = self._logits(table, user, codes).cpu().numpy()
        return logits

    def loss(
        self,
        table: Tensor,
        user: User,
        codes: NDArray[np.int64],
        labels: NDArray[np.float32],
        weights: NDArray[np.float32],
        offsets: NDArray[np.float32],
    ) -> Tensor:
        """Weighted sum of binary cross-entropies for labels (user, node), with `offsets` added to the logits."""
        if self.device.type == "cpu":
            return node_loss(self.model, user, table, codes, labels, weights, offsets)
        moved = [torch.from_numpy(array).to(self.device) for array in (labels, weights, offsets)]
        return nn.functional.binary_cross_entropy_with_logits(
            self._logits(table, user, codes) + moved[2], moved[0], moved[1], reduction="sum"
        )

    def _logits(self, table: Tensor, user: User, codes: NDArray[np.int64]) -> Tensor:
        gathered = nn.functional.embedding(_tensor(codes, self.device), table)
        logits: Tensor = self.model(user, gathered[..., :-1], gathered[..., -1])
        return logits

    def replant(self, tree: Tree) -> None:
        """Switch to another tree. Items keep their vectors; an inner node starts at the mean of its items."""
        self.tree = tree
        ordered = self.item_vectors[tree.order]
        for level in range(tree.depth):
            starts, first = tree.starts(level), tree.first_row(level)
            sums = np.add.reduceat(ordered, starts[:-1], axis=0, dtype=np.float64)
            means = (sums / np.diff(starts)[:, None]).astype(np.float32)
            self.rows[first : first + len(means), :-1] = torch.from_numpy(means).to(self.device)
            self.rows[first : first + len(means), -1] = 0.0

    def export(self) -> dict[str, NDArray[np.float32]]:
        """All weights by name, including the table, as stored in bundles."""
        weights = {name: value.detach().cpu().numpy() for name, value in self.model.state_dict().items()}
        return {**weights, VECTORS: self.rows.cpu().numpy()}

    def restore(self, weights: dict[str, NDArray[np.float32]]) -> None:
        """Load what `export` returned."""
        tensors = {name: torch.from_numpy(np.array(value)) for name, value in weights.items()}
        self.rows = tensors.pop(VECTORS).to(self.device)
        self.model.load_state_dict(tensors)


class Histories:
    """A batch of histories, encoded once, or once per level if levels represent items differently."""

    def __init__(
        self,
        network: TreeNetwork,
        items: NDArray[np.int64],
        sequence: NDArray[np.int64],
        last: NDArray[np.int64],
    ) -> None:
        self.network, self.items = network, items
        self.sequence, self.last = _tensor(sequence, network.device), _tensor(last, network.device)
        self._read: dict[int, User] = {}

    def user(self, level: int) -> User:
        """The encoded users for scoring `level`."""
        key = self.network.reading_level(level)
        if key not in self._read:
            used, codes = np.unique(self.network.history_rows(level, self.items), return_inverse=True)
            unseen = int((used < 0).any())  # The start token sorts first.
            table = self.network.rows[_tensor(used[unseen:], self.network.device)]
            local = _tensor(codes.reshape(self.items.shape) - unseen, self.network.device)
            self._read[key] = self.network.read(table, local, self.sequence, self.last)
        return self._read[key]

    def logits(self, level: int, nodes: NDArray[np.int64]) -> NDArray[np.float32]:
        """Scores (user, node) of a level's nodes; -inf for missing nodes (-1)."""
        network, wanted = self.network, np.maximum(nodes, 0)
        first = network.tree.first_row(level)
        if wanted.size < network.tree.size(level):
            table = network.rows[_tensor(first + wanted.ravel(), network.device)]
            wanted = np.arange(wanted.size).reshape(wanted.shape)
        else:
            table = network.rows[first : first + network.tree.size(level)]
        scores = network.score(table, self.user(level), wanted)
        scores[nodes < 0] = -np.inf
        return scores


def _tensor(array: NDArray[np.int64], device: torch.device) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(array)).to(device)
