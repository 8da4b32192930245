"""What a router has of a sharded model: the network and the paths in use, but no items.

It encodes a history from the input vectors that shards send, and finds the paths to follow.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pathdex.config import Config
from pathdex.data.ragged import Ragged
from pathdex.index.health import IndexHealth
from pathdex.index.postings import Postings
from pathdex.kernels.beam import beam_search
from pathdex.kernels.encoders import encode_history
from pathdex.kernels.layout import as_readonly
from pathdex.kernels.neighbours import Neighbours, similar_to
from pathdex.kernels.types import Floats, Ints
from pathdex.recommenders.arguments import too_few_candidates
from pathdex.recommenders.model_state import beam_for
from pathdex.recommenders.shard import ShardFacts
from pathdex.recommenders.weight_specs import row_width
from pathdex.retrieval.beam_plan import BeamPlan, plan_beam
from pathdex.retrieval.explain import explain_paths
from pathdex.retrieval.part_merge import merge_parts, rank_chosen
from pathdex.retrieval.part_search import PartFound
from pathdex.retrieval.retriever import Retriever


class KnownHistory(NamedTuple):
    """The known items of a history, and what the shards hold of the latest ones. Codes are those of the whole model."""

    codes: Ints
    """All known items, oldest first."""
    distinct: Ints
    """The distinct ones of the latest, ascending."""
    rows: Floats
    """Their input vectors."""
    lengths: Ints
    """How many neighbours each has."""
    near: Ints
    similarities: Floats


class WholeModel:
    """Encodes histories and follows paths for a sharded model."""

    def __init__(
        self, facts: ShardFacts, config: Config, weights: Mapping[str, NDArray[Any]], paths: Ints, sizes: Ints
    ) -> None:
        assert config.num_nodes is not None
        self.facts, self.config, self.sizes = facts, config, sizes
        postings = Postings.from_sorted(
            paths,
            np.zeros(len(paths) + 1, np.int64),
            np.empty(0, np.int32),
            facts.num_codes,
            config.num_nodes,
            config.depth,
        )
        self.retriever = Retriever(
            config,
            weights,
            np.empty((0, row_width(config)), np.float32),
            postings,
            np.empty(0, np.float32),
            np.empty((0, config.paths_per_item), np.int64),
            np.empty(0, np.int64),
            _no_torch,
        )
        self.weights = self.retriever.weights

    @property
    def health(self) -> IndexHealth | None:
        """The statistics of the whole index."""
        if self.facts.health is None:
            return None
        values: dict[str, Any] = {
            name: tuple(one) if isinstance(one, list) else one for name, one in self.facts.health.items()
        }
        return IndexHealth(**values)

    def warmup(self) -> None:
        """Compile or load what queries need."""
        dim = self.config.embedding_dim
        one = np.zeros(1, np.int64)
        history = KnownHistory(one, one, np.zeros((1, dim), np.float32), one, one[:0], np.empty(0, np.float32))
        self.similar(history)
        user = self.encode(history)
        self.follow(user, 1)
        paths = self.retriever.postings.paths[:1]
        explain_paths(self.retriever, user, 0, paths, self.sizes_of(paths), None, beam=1)
        found = PartFound(
            one, np.zeros(1, np.float32), np.ones(1, np.float32), np.zeros(1, np.float32), total=1, least=0.0
        )
        for candidates in (0, 1):
            chosen = merge_parts([found], self.weights, candidates, neighbours=True, listed=False)
            rank_chosen(chosen, self.weights, 1, neighbours=True)

    def encode(self, history: KnownHistory) -> Floats:
        """The user vector."""
        encoder = self.retriever.encoder
        assert encoder.compiled is not None
        latest = history.codes[-self.config.history_length :]
        places = as_readonly(np.searchsorted(history.distinct, latest), np.int32)
        _, user, _ = encode_history(
            encoder.compiled, as_readonly(history.rows), encoder.start, places, self.config.history_length
        )
        vector: Floats = user
        return vector

    def similar(self, history: KnownHistory, recency: float | None = None) -> tuple[Ints, Floats]:
        """The neighbours of the history's items, ascending, and the sums of their similarities.

        Older items count less by `recency`; default: that of the model.
        """
        recency = float(self.weights.recency) if recency is None else recency
        offsets = np.concatenate([[0], np.cumsum(history.lengths)])
        neighbours = Neighbours.pack(offsets, history.near.astype(np.int32), history.similarities)
        latest = history.codes[-self.config.history_length :]
        places = as_readonly(np.searchsorted(history.distinct, latest), np.int32)
        found = similar_to(neighbours, places, recency)
        order = np.argsort(found.items)
        return found.items[order], found.similarity[order]

    def follow(self, user: Floats, beam: int) -> tuple[Ints, Floats]:
        """The positions of the best paths among those in use, and their log probabilities."""
        retriever = self.retriever
        width, depth = min(beam, self.num_paths), retriever.postings.depth
        positions, log_p = beam_search(retriever.structure, retriever.trie, user, width, depth)
        return positions, log_p

    @property
    def num_paths(self) -> int:
        return len(self.retriever.postings)

    def beam_of(self, n: int, beam: int | None, candidates: int | None) -> tuple[int, int]:
        """The beam and the limit of candidates (0: none) from the options of a query."""
        facts, num_items = self.facts, self.facts.num_codes
        if candidates is not None and candidates < n:
            raise too_few_candidates(n, candidates)
        if beam is None:
            beam = self.config.beam_size
            if candidates is not None:
                share = (self.config.neighbour_share or 0.0) if facts.neighbours else 0.0
                beam = beam_for(candidates, share, facts.num_entries, self.num_paths)
        limit = 0 if candidates is None else min(candidates, max(1, n, num_items))
        return min(beam, max(1, self.num_paths)), limit

    def plan(self, n: int, beam: int, candidates: int, eligible: int | None) -> BeamPlan:
        """How wide the beam is."""
        return plan_beam(
            n=n,
            beam=beam,
            candidates=candidates,
            num_paths=self.num_paths,
            num_items=self.facts.num_codes,
            paths_per_item=self.config.paths_per_item,
            eligible=eligible,
        )

    def sizes_of(self, paths: Ints) -> list[int]:
        """How many items of the whole model are on each of some paths in use."""
        sizes: list[int] = self.sizes[np.searchsorted(self.retriever.postings.paths, paths)].tolist()
        return sizes

    def reserved(self, candidates: int, positions: Ints) -> int:
        """An upper bound of the candidates that neighbours provide."""
        return int(self.weights.share * (candidates or int(self.sizes[positions].sum())))


def _no_torch(histories: Ragged) -> Floats:
    raise AssertionError("shards have a compiled encoder")
