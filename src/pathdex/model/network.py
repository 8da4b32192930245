"""Everything that is trained by gradient: item table, encoder and, for Deep Retrieval, structure model."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from pathdex.config import Config, EncoderConfig
from pathdex.data.ragged import Ragged
from pathdex.model.dropout import BatchPart
from pathdex.model.encoders import ENCODERS, GRUEncoder
from pathdex.model.item_table import ItemTable
from pathdex.model.structure import STRUCTURES

ITEM_ROWS = "items"


def make_table(num_items: int, dim: int, shared: bool) -> ItemTable:
    """A table of all items in this process."""
    return ItemTable(num_items, dim, shared=shared)


class Network(nn.Module):
    """Item table and encoder for `num_items` items; with `index`, also a structure model.

    `encoder` replaces the encoder named in the configuration; `items` makes the item table from the number of items,
    the dimension and `shared_items`.
    """

    def __init__(
        self,
        config: EncoderConfig,
        num_items: int,
        index: Config | None = None,
        *,
        encoder: nn.Module | None = None,
        items: Callable[[int, int, bool], ItemTable] = make_table,
    ) -> None:
        super().__init__()
        dim = config.embedding_dim
        self.num_items, self.history_length = num_items, config.history_length
        self.items = items(num_items, dim, config.shared_items)
        self.start = nn.Parameter(torch.randn(dim) * dim**-0.5)
        self.encoder = encoder or ENCODERS[config.encoder](dim, config.dropout)
        if index is not None:
            assert index.num_nodes is not None
            self.structure = STRUCTURES[index.structure](
                dim, index.num_nodes, index.depth, index.structure_hidden, index.node_dim
            )

    @property
    def has_structure(self) -> bool:
        return "structure" in self._modules

    @property
    def is_compiled(self) -> bool:
        """Whether steps run in compiled code with its own threads."""
        return type(self.encoder) is GRUEncoder and self.device.type == "cpu"

    @property
    def device(self) -> torch.device:
        return self.start.device

    def place(self, device: str) -> Network:
        self.items.to(torch.device(device))
        return self.to(device)

    def encode(self, rows: Tensor, codes: Tensor) -> Tensor:
        """User vectors (batch, time, dim) for indices (batch, time) into gathered item rows; -1 is the start token."""
        inputs = torch.cat([self.items.inputs(rows), self.start[None]])
        codes = torch.where(codes < 0, len(rows), codes)
        return self.encoder(nn.functional.embedding(codes, inputs))  # type: ignore[no-any-return]

    def encode_samples(
        self, rows: Tensor, codes: Tensor, window: Tensor, time: Tensor, part: BatchPart | None = None
    ) -> Tensor:
        """`encode` at some places only: (sample, dim). `part` says which part of a batch these windows are."""
        if self.is_compiled:
            assert isinstance(self.encoder, GRUEncoder)
            return self.encoder.encode_samples(rows, self.start, codes, window, time, part)
        return self.encode(rows, codes)[window, time]

    @torch.no_grad()
    def user_vectors(self, histories: Ragged, batch: int = 512) -> Tensor:
        """User vectors of histories: (query, dim)."""
        self.eval()
        vectors = []
        for begin in range(0, len(histories), batch):
            rows = np.arange(begin, min(begin + batch, len(histories)))
            codes, last = pad_histories(histories.take(rows).last(self.history_length), self.history_length)
            used, local = np.unique(codes, return_inverse=True)
            unseen = int(used[0] == -1)  # The start token sorts first.
            table = self.items.take(torch.from_numpy(used[unseen:]).to(self.device))
            index = torch.from_numpy(local.reshape(codes.shape) - unseen).to(self.device)
            states = self.encode(table, index)
            vectors.append(states[torch.arange(len(rows)), torch.from_numpy(last).to(self.device)])
        return torch.cat(vectors) if vectors else self.start.new_zeros(0, len(self.start))

    def export(self) -> dict[str, NDArray[np.float32]]:
        """All weights by name, including the item table, as stored in bundles."""
        weights = {name: value.detach().cpu().numpy() for name, value in self.state_dict().items()}
        return {**weights, ITEM_ROWS: self.items.rows.cpu().numpy()}

    def restore(self, weights: dict[str, NDArray[np.float32]]) -> None:
        """Load what `export` returned."""
        tensors = {name: torch.from_numpy(np.array(value)) for name, value in weights.items()}
        self.items.rows = tensors.pop(ITEM_ROWS).to(self.device)
        self.load_state_dict(tensors)


def pad_histories(histories: Ragged, length: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Pad histories of at most `length` items: codes (batch, time) and the last position of each row.

    A history shorter than `length` is complete, so the start token -1 precedes it. Padding comes last.
    """
    lengths = histories.lengths
    start = (lengths < length).astype(np.int64)
    codes = np.full((len(histories), int((lengths + start).max(initial=1))), -1, np.int64)
    rows = np.repeat(np.arange(len(histories)), lengths)
    columns = np.arange(len(histories.values)) - np.repeat(histories.offsets[:-1] - start, lengths)
    codes[rows, columns] = histories.values
    return codes, lengths + start - 1
