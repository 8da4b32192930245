"""A history to candidates to the best n, for one query at a time: the compiled parts put together."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pathdex.config import Config
from pathdex.data.ragged import Ragged
from pathdex.index.paths import decode_paths
from pathdex.index.postings import Postings
from pathdex.kernels.beam import Trie, beam_search, layer_log_probabilities
from pathdex.kernels.candidates import ItemData, find_candidates, most_probable, rerank
from pathdex.kernels.encoders import ENCODERS, Encoder, input_vectors
from pathdex.kernels.layout import frozen
from pathdex.kernels.neighbours import Neighbours, join_neighbours, similar_to, similarity_of
from pathdex.kernels.structure import StructureWeights
from pathdex.retrieval.filters import Filters

Floats = NDArray[np.float32]
Codes = NDArray[np.int64]

START = -1
LISTED_ITEMS = 512
"""Up to so many eligible items are scored one by one; a beam would have to widen to find them."""
ALL_ITEMS = frozen(np.empty(0), np.bool_)
NO_ITEMS = frozen(np.empty(0), np.int32)
NEIGHBOUR_SHARE = 0.2
"""The share of the candidates that come from neighbours."""
NO_SIMILARITY = np.float32(0.02)
"""Added to similarities before their logarithm is taken: an item without any is worth so much."""


@dataclass(frozen=True)
class Candidates:
    """What one query retrieved."""

    items: Codes
    """Distinct eligible items."""
    log_probability: Floats
    """log sum_j p(c_j | x) p(v | c_j) over the paths of each item that the beam found: how the index sees p(v | x). An
    item that only neighbours lead to has the lowest that was found."""
    similarity: Floats | None = None
    """The sum of each item's similarities to the history's items; None without neighbours."""


@dataclass(frozen=True)
class UserState:
    """A history that has been read, ready to go on with the next item."""

    history: Codes
    vector: Floats
    """The user vector x."""
    numbers: Floats
    """The encoder's own state."""
    count: int
    """How many inputs the encoder has read."""


class Retriever:
    """Finds and ranks candidates in an index of paths.

    Differs from the paper: an item counts on a path by its share of the path's interactions, p(v | c). To the paper the
    items of a path are alike, which leaves a candidates nothing to choose by inside a path.

    Differs from the paper: with neighbours, items that share users with those of the history join the candidates, and
    how similar they are counts in the final score.
    """

    def __init__(
        self,
        config: Config,
        weights: Mapping[str, NDArray[Any]],
        rows: Floats,
        postings: Postings,
        log_shares: Floats,
        paths: Codes,
        counts: Codes,
        encode: Callable[[Ragged], Floats],
        neighbours: Neighbours | None = None,
    ) -> None:
        """`weights` are the network's by name, `rows` its item table; `encode` stands in for an encoder that is not
        compiled."""
        self.postings, self.paths, self.counts = postings, paths, counts
        self.path_weight, self.neighbour_weight = np.float32(config.path_weight), np.float32(config.neighbour_weight)
        self.neighbours = None if neighbours is None else _as_read(neighbours)
        self.structure = StructureWeights.pack(_part(weights, "structure."))
        self.trie = Trie.pack(postings.prefixes, postings.children, postings.num_nodes)
        self.data = ItemData(
            frozen(postings.offsets, np.int64), frozen(postings.items, np.int32), frozen(log_shares), frozen(rows)
        )
        self.history_length, self.start = config.history_length, frozen(weights["start"])
        known = ENCODERS.get(config.encoder)
        self.encoder: Encoder | None = None if known is None else known.pack(_part(weights, "encoder."))
        self._encode = encode

    def read(self, history: NDArray[np.integer]) -> UserState:
        """Read the latest items of a history, as many as the encoder takes."""
        whole: Codes = np.ascontiguousarray(history, np.int64)
        latest = whole[-self.history_length :]
        if self.encoder is None:
            vector = self._encode(Ragged(latest.astype(np.int32), np.array([0, len(latest)])))[0]
            return UserState(whole, vector, np.empty((0, len(vector)), np.float32), len(latest))
        if len(latest) < self.history_length:
            latest = np.concatenate([[START], latest])
        numbers = np.zeros((self.encoder.state_rows(self.history_length), len(self.start)), np.float32)
        self.encoder.advance(numbers, 0, input_vectors(self.data.table, self.start, latest))
        return UserState(whole, self.encoder.read(numbers, len(latest)), numbers, len(latest))

    def advance(self, state: UserState, item: int) -> UserState:
        """The state after one more item: what `read` gives for the longer history.

        The encoder reads just that item, until the history is as long as it reads at all; from then on an item drops
        out at the other end, and the latest ones are read anew.
        """
        history = np.append(state.history, item)
        if self.encoder is None or len(history) >= self.history_length:
            return self.read(history)
        numbers = state.numbers.copy()
        self.encoder.advance(numbers, state.count, input_vectors(self.data.table, self.start, history[-1:]))
        return UserState(history, self.encoder.read(numbers, state.count + 1), numbers, state.count + 1)

    def beam(self, user: Floats, width: int, depth: int | None = None) -> tuple[Codes, Floats]:
        """The most probable paths in use, or their prefixes of `depth` nodes: codes and log p(c | x), best first."""
        depth = self.postings.depth if depth is None else depth
        prefixes = self.postings.prefixes[depth]
        places, log_p = beam_search(self.structure, self.trie, user, min(width, len(prefixes)), depth)
        return prefixes[places], log_p

    def layers(self, user: Floats, paths: Codes) -> Floats:
        """log p(c_d | x, c_1..c_{d-1}) of paths (path,): (path, layer)."""
        order = np.argsort(paths)
        nodes = decode_paths(paths[order], self.postings.num_nodes, self.postings.depth)
        layers = np.empty(nodes.shape, np.float32)
        layers[order] = layer_log_probabilities(self.structure, user, nodes)
        return layers

    def candidates(
        self,
        state: UserState,
        filters: Filters,
        query: int,
        *,
        beam: int,
        candidates: int | None = None,
        least: int = 1,
    ) -> Candidates:
        """The eligible items on a user's most probable paths, at most `candidates` of them, the most probable.

        Where these are fewer than `least`, the beam doubles until there are enough or every path has been followed.
        Where only a few items are eligible at all, each is scored on its own paths in place of that.
        With neighbours, a fifth are the items most similar to the history that are not among the others.
        """
        user = state.vector
        exclude = NO_ITEMS if filters.exclude is None else frozen(filters.exclude[query], np.int32)
        mask, eligible, listed = self._choice(filters.allow_of(query), filters.where_of(query))
        limit = 2 * len(self.postings)
        if listed is None and mask is not ALL_ITEMS:
            # Following more paths than the eligible items have costs more than scoring these items. How many have to be
            # followed can be foreseen where the eligible ones lie on paths like any others.
            limit = eligible * self.paths.shape[1]
            needed = math.ceil(least * len(self.postings) / (eligible * self.paths.shape[1]))
            if candidates is not None:
                beam = int(min(len(self.postings), beam * self.postings.num_items / eligible))
            beam = max(beam, needed)
            listed = np.flatnonzero(mask) if beam > limit else None
        if listed is None:
            enough, items, log_probability = find_candidates(
                self.structure, self.trie, self.data, user, exclude, mask, beam, least, limit
            )
            listed = None if enough else np.flatnonzero(mask)
        if listed is not None:
            items = listed[~np.isin(listed, exclude)]
            log_probability = self.log_probability(user, items)
        if self.neighbours is None:
            return Candidates(*_cut(items, log_probability, candidates))
        similar = similar_to(self.neighbours, state.history[-self.history_length :])
        # Where every eligible item is scored, there are no others to join.
        size = 0 if listed is not None else len(items) if candidates is None else min(len(items), candidates)
        room = int(NEIGHBOUR_SHARE * size)
        if room:
            most = len(items) + room if candidates is None else candidates
            items, log_probability = join_neighbours(similar, items, log_probability, exclude, mask, room, most)
        else:
            items, log_probability = _cut(items, log_probability, candidates)
        return Candidates(items, log_probability, similarity_of(similar, items))

    def _choice(
        self, allow: Codes | None, where: NDArray[np.bool_] | None
    ) -> tuple[NDArray[np.bool_], int, Codes | None]:
        """The mask of what is allowed, how many items that are, and the items themselves where they are few."""
        if allow is None and where is None:
            return ALL_ITEMS, self.postings.num_items, None
        if allow is not None:
            allow = allow if where is None else allow[where[allow]]
            if len(allow) <= LISTED_ITEMS:
                return ALL_ITEMS, len(allow), np.asarray(allow, np.int64)
            where = np.zeros(self.postings.num_items, np.bool_)
            where[allow] = True
        assert where is not None
        eligible = int(np.count_nonzero(where))
        return frozen(where, np.bool_), eligible, np.flatnonzero(where) if eligible <= LISTED_ITEMS else None

    def log_probability(self, user: Floats, items: Codes) -> Floats:
        """log sum_j p(c_j | x) p(v | c_j) over all J paths of each item."""
        paths = self.paths[items]
        log_p = self.layers(user, paths.ravel()).sum(axis=1).reshape(paths.shape)
        first = self.postings.offsets[np.searchsorted(self.postings.paths, paths)]
        path_weight = np.log(self.counts[self.postings.items[first]] + 1.0) - self.data.log_shares[first]
        each = log_p + np.log(self.counts[items] + 1.0)[:, None] - path_weight
        total: Floats = np.logaddexp.reduce(each, axis=1).astype(np.float32)
        return total

    def rank(self, user: Floats, found: Candidates, n: int) -> tuple[Codes, Floats]:
        """The best n candidates, best first: items and scores.

        The score is s(x, v) + path_weight log p(v | x), with neighbours also + neighbour_weight log(0.02 + similarity).
        """
        prior = self.path_weight * found.log_probability
        if found.similarity is not None:
            prior = prior + self.neighbour_weight * np.log(found.similarity + NO_SIMILARITY)
        best: tuple[Codes, Floats] = rerank(self.data, user, found.items, prior, n)
        return best


def _cut(items: Codes, log_probability: Floats, candidates: int | None) -> tuple[Codes, Floats]:
    """At most `candidates` of the items, the most probable; None: all."""
    return (items, log_probability) if candidates is None else most_probable(items, log_probability, candidates)


def _as_read(neighbours: Neighbours) -> Neighbours:
    return Neighbours(
        frozen(neighbours.offsets, np.int64), frozen(neighbours.items, np.int32), frozen(neighbours.similarities)
    )


def _part(weights: Mapping[str, NDArray[Any]], prefix: str) -> dict[str, NDArray[Any]]:
    return {name.removeprefix(prefix): value for name, value in weights.items() if name.startswith(prefix)}
