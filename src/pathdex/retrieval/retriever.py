"""User vectors to candidates: beam search, the items on the paths it finds, filters, and the candidate budget."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pathdex.index.paths import encode_paths
from pathdex.index.postings import Postings, gather_items
from pathdex.model.beam import beam_search
from pathdex.model.structure import LayerNetwork
from pathdex.retrieval.contract import Filters

BATCH_CELLS = 1 << 24
"""Numbers in the largest tensor of a beam step."""


@dataclass(frozen=True)
class Candidates:
    """What one query retrieved."""

    items: NDArray[np.int64]
    """Distinct eligible items."""
    log_probability: NDArray[np.float32]
    """log sum_j p(c_j | x) p(v | c_j) over the paths of each item that the beam found: how the index sees p(v | x)."""


class Retriever:
    """Finds candidates in an index of paths.

    Differs from the paper: an item counts on a path by its share of the path's interactions, p(v | c). To the paper the
    items of a path are alike, which leaves a budget nothing to choose by inside a path.
    """

    def __init__(self, structure: LayerNetwork, postings: Postings, counts: NDArray[np.int64]) -> None:
        self.structure, self.postings = structure, postings
        self.log_shares = postings.log_shares(counts)
        self.prefixes = [torch.from_numpy(np.ascontiguousarray(codes)) for codes in postings.prefixes[1:]]

    def paths(self, users: Tensor, beam: int) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """The `beam` most probable paths in use: codes and log-probabilities (query, path), best first."""
        width = min(beam, len(self.postings))
        batch = max(1, BATCH_CELLS // (width * self.structure.num_nodes))
        prefixes = [codes.to(users.device) for codes in self.prefixes]
        found = [beam_search(self.structure, part, width, prefixes) for part in torch.split(users, batch)]
        codes = [encode_paths(nodes.cpu().numpy(), self.structure.num_nodes) for nodes, _ in found]
        return np.concatenate(codes), np.concatenate([total.cpu().numpy() for _, total in found])

    def candidates(
        self, users: Tensor, filters: Filters, *, beam: int, budget: int | None = None, least: int = 1
    ) -> list[Candidates]:
        """The eligible items on each user's most probable paths, at most `budget` of them.

        Where these are fewer than `least`, the beam doubles until there are enough or every path has been followed. A
        budget keeps the items of highest probability.
        """
        answers: list[Candidates | None] = [None] * len(users)
        waiting = np.arange(len(users))
        while len(waiting):
            exhausted = beam >= len(self.postings)
            codes, scores = self.paths(users[torch.from_numpy(waiting).to(users.device)], beam)
            for row, query in enumerate(waiting):
                found = self._eligible(self.gather(codes[row], scores[row]), filters, int(query))
                if exhausted or len(found.items) >= least:
                    answers[query] = found if budget is None else most_probable(found, budget)
            waiting = np.array([query for query in waiting if answers[query] is None], np.int64)
            beam *= 2
        return [answer for answer in answers if answer is not None]

    def gather(self, codes: NDArray[np.int64], scores: NDArray[np.float32]) -> Candidates:
        """The items on one query's paths, before filters."""
        followed = np.isfinite(scores)
        items, total = gather_items(
            self.postings.paths,
            self.postings.offsets,
            self.postings.items,
            self.log_shares,
            codes[followed],
            scores[followed],
            self.postings.num_items,
        )
        return Candidates(items.astype(np.int64), total)

    def _eligible(self, found: Candidates, filters: Filters, query: int) -> Candidates:
        kept = np.ones(len(found.items), np.bool_)
        if filters.exclude is not None:
            kept &= ~np.isin(found.items, filters.exclude[query])
        allow, where = filters.allow_of(query), filters.where_of(query)
        if allow is not None:
            kept &= np.isin(found.items, allow)
        if where is not None:
            kept &= where[found.items]
        return Candidates(found.items[kept], found.log_probability[kept])


def most_probable(found: Candidates, budget: int) -> Candidates:
    """At most `budget` of the candidates, the most probable ones; ties by item."""
    if len(found.items) <= budget:
        return found
    order = np.lexsort((found.items, -found.log_probability))[:budget]
    return Candidates(found.items[order], found.log_probability[order])
