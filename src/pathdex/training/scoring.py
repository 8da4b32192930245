"""Collect s[v, c] = sum_i p(c | x_i), the score of path c for item v under the current network.

*Streaming* (paper): one beam per training sample, merged into the item's list by the three cases of Section 3.
*Item-centred*: one beam per item over the sum of its samples. It keeps paths that many of an item's users find likely
but few find likeliest.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pathdex.index.item_scores import score_item_paths
from pathdex.index.paths import decode_paths, encode_paths
from pathdex.index.scores import ScoreTable
from pathdex.kernels.structure import StructureWeights
from pathdex.model.beam import beam_search
from pathdex.model.structure import LayerNetwork, MLPStructure, path_log_probabilities
from pathdex.storage.scratch import BLOCK, blocks, memory_limit, scratch_array
from pathdex.training.position_vectors import PositionVectors

CHUNK, WIDTH = 1 << 23, 512
"""Size of the largest intermediate tensor, and its approximate size per sample."""
BLOCK_BYTES = 64
"""Memory per sample while samples are grouped."""


class ItemSamples:
    """Training samples grouped by target item."""

    def __init__(self, targets: NDArray[np.int32], num_items: int, own: NDArray[np.bool_] | None = None) -> None:
        """With `own` (item,), only samples of these items are kept and yielded; the draws are those of all items."""
        # Each block writes to the samples of all items, so large blocks read and write fewer pages.
        size = max(BLOCK, num_items, memory_limit() // BLOCK_BYTES)
        self.own, self.counts = own, np.zeros(num_items, np.int64)
        for part in blocks(len(targets), size):
            self.counts += np.bincount(targets[part], minlength=num_items)
        kept = self.counts if own is None else np.where(own, self.counts, 0)
        self.offsets = np.concatenate([[0], np.cumsum(kept)])
        self.order = scratch_array(int(self.offsets[-1]), np.int64)
        free = self.offsets[:-1].copy()
        for part in blocks(len(targets), size):
            order = np.argsort(targets[part], kind="stable")
            if own is not None:
                order = order[own[targets[part][order]]]
            found = targets[part][order]
            counts = np.bincount(found, minlength=num_items)
            # An item's samples of this block follow those of the blocks before.
            before = np.cumsum(counts) - counts
            self.order[(free - before)[found] + np.arange(len(order))] = order + part.start
            free += counts

    def draw(
        self, max_samples: int, generator: np.random.Generator
    ) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """Groups of (items (item,), samples (item, n)) with equal n <= `max_samples`; skips items without samples.

        Items with more than `max_samples` samples yield an evenly spaced subset with a random offset.
        """
        counts = self.counts
        taken = np.minimum(counts, max_samples)
        for number in np.unique(taken[taken > 0]):
            items = np.flatnonzero(taken == number)
            shift = generator.random((len(items), 1))
            if self.own is not None:
                items, shift = items[self.own[items]], shift[self.own[items]]
            steps = counts[items, None] / number
            places = ((np.arange(number) + shift) * steps).astype(np.int64)
            yield items, self.order[self.offsets[items, None] + np.minimum(places, counts[items, None] - 1)]


@torch.no_grad()
def score_items(structure: LayerNetwork, users: Tensor, beam_size: int, keep: int) -> tuple[Tensor, Tensor]:
    """The paths with the largest s[v, c] that a beam over each item's samples finds.

    Users (item, sample, dim) -> nodes (item, path, layer) and scores (item, path): at most `keep` paths, best first.
    """
    number, samples, _ = users.shape
    state = structure.begin(users).unsqueeze(1)  # (item, beam, sample, ...)
    weight = users.new_ones(number, 1, samples)  # p(prefix | x_i)
    nodes = torch.empty(number, 1, 0, dtype=torch.long, device=users.device)
    rows = torch.arange(number, device=users.device)[:, None]
    for layer in range(structure.depth):
        share = structure.logits(state, layer).softmax(dim=-1) * weight[..., None]  # (item, beam, sample, node)
        total = share.sum(dim=2).flatten(1)
        last = layer + 1 == structure.depth
        scores, best = total.topk(min(keep if last else beam_size, total.shape[1]), dim=1)
        parent, node = best // structure.num_nodes, best % structure.num_nodes
        nodes = torch.cat([nodes[rows, parent], node[..., None]], dim=2)
        if not last:
            weight = share.transpose(2, 3)[rows, parent, node]  # (item, beam, sample)
            state = structure.advance(state[rows, parent], layer, node[..., None].expand_as(weight))
    return nodes, scores


def collect_item_scores(
    structure: LayerNetwork,
    vectors: PositionVectors,
    samples: ItemSamples,
    table: ScoreTable,
    paths: NDArray[np.int64],
    *,
    beam_size: int,
    max_samples: int,
    generator: np.random.Generator,
    device: torch.device,
) -> None:
    """Replace the table row of every item with samples by item-centred scores.

    An item's current `paths` (item, path) are always scored, so that it can stay: the paths of a rare item are seldom
    among the likeliest of its users, and without them an M-step would move it to the paths of popular items. The MLP
    runs in compiled code on the CPU, other layer networks run in `score_items`.
    """
    compiled = compiled_structure(structure)
    for items, chosen in samples.draw(max_samples, generator):
        chunk = chunk_size(chosen.shape[1], beam_size, compiled)
        for part, found in vectors.parts(chosen, chunk):
            lists = score_lists(structure, compiled, found, paths[items[part]], beam_size, table, device)
            table.set_rows(items[part], *lists)


def compiled_structure(structure: LayerNetwork) -> StructureWeights | None:
    """The weights for compiled code, which there is for the MLP."""
    return StructureWeights.from_layers(*structure.layer_arrays()) if isinstance(structure, MLPStructure) else None


def chunk_size(samples: int, beam_size: int, compiled: StructureWeights | None) -> int:
    """The number of items, with so many samples each, that are scored at once."""
    return max(1, CHUNK // (samples * (1 if compiled else beam_size) * WIDTH))


def score_lists(
    structure: LayerNetwork,
    compiled: StructureWeights | None,
    vectors: NDArray[np.float32],
    own_paths: NDArray[np.int64],
    beam_size: int,
    table: ScoreTable,
    device: torch.device,
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """New rows of the table: codes and scores (item, candidate path) for vectors (item, sample, dim)."""
    users = torch.from_numpy(vectors).to(device)
    own_nodes = decode_paths(own_paths, structure.num_nodes, structure.depth)
    if compiled is not None:
        with torch.no_grad():
            sums = structure.begin(users).cpu().numpy()
        codes, scores, own = score_item_paths(sums, compiled, beam_size, table.candidate_paths, own_nodes)
    else:
        nodes, found = score_items(structure, users, beam_size, table.candidate_paths)
        codes, scores = encode_paths(nodes.cpu().numpy(), structure.num_nodes), found.cpu().numpy()
        own = score_paths(structure, users, own_nodes)
    return _with_paths(codes, scores, own_paths, own)


@torch.no_grad()
def score_paths(structure: LayerNetwork, users: Tensor, paths: NDArray[np.int64]) -> NDArray[np.float32]:
    """s[v, c] of the given paths: users (item, sample, dim), paths (item, path, layer) -> (item, path)."""
    samples = users.shape[1]
    nodes = torch.from_numpy(paths).to(users.device).repeat_interleave(samples, dim=0)
    each = path_log_probabilities(structure, users.flatten(0, 1), nodes)
    return each.exp().view(len(paths), samples, -1).sum(dim=1).cpu().numpy()


def _with_paths(
    codes: NDArray[np.int64], scores: NDArray[np.float32], paths: NDArray[np.int64], own: NDArray[np.float32]
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Candidate lists (item, candidate), best first, whose last entries are the item's own paths (item, path)."""
    room = codes.shape[1] - paths.shape[1]
    listed = (codes[:, :room, None] == paths[:, None, :]).any(axis=2)
    others = np.where(listed, -1, codes[:, :room])
    return np.hstack([others, paths]), np.hstack([np.where(listed, 0, scores[:, :room]), own])


def stream_scores(
    structure: LayerNetwork, users: Tensor, targets: NDArray[np.int64], table: ScoreTable, beam_size: int, decay: float
) -> None:
    """Merge the beam of each sample into its item's list: the streaming update of Section 3."""
    nodes, total = beam_search(structure, users, beam_size)
    codes = encode_paths(nodes.cpu().numpy(), structure.num_nodes)
    table.update(targets, codes, total.exp().cpu().numpy(), decay)
