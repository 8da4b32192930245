"""An index that changes in place: what `apply_delta` computes, at a cost that grows with the change.

`prepare` does all the work that takes long and changes nothing that a query reads. `commit` writes the changed items
and returns the next retriever; the caller keeps queries out for that moment.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pathdex.config import Config
from pathdex.data.ragged import Ragged
from pathdex.index.postings import NO_PATH, Postings
from pathdex.kernels.beam import Trie
from pathdex.kernels.candidates import PathItems
from pathdex.kernels.compact import compact_items
from pathdex.kernels.layout import as_readonly
from pathdex.kernels.live_postings import (
    STEP,
    Changes,
    PathPlaces,
    Segments,
    Touched,
    build_trie,
    make_writable,
    merge_paths,
    release,
    rewrite_paths,
    write_rows,
)
from pathdex.kernels.neighbours import Neighbours
from pathdex.kernels.structure import StructureWeights
from pathdex.kernels.types import Floats, Ints, Mask
from pathdex.retrieval.retriever import Retriever
from pathdex.retrieval.score_weights import ScoreWeights
from pathdex.retrieval.user_state import HistoryEncoder, weights_under
from pathdex.storage.private_map import private_copy

SPARE_ITEMS, SPARE_PLACES = 65_536, 1 << 20
"""Room beyond twice the size at the start; it takes memory only when it is used."""


@dataclass(frozen=True, eq=False)
class ItemChanges:
    """The changed items of a delta: rows, paths (all -1 for none) and counts; removed ones have rows of zeros."""

    num_items: int
    items: Ints
    rows: Floats
    paths: Ints
    counts: Ints
    hidden: Ints
    """Items that lose their neighbours: their ids are new or gone."""
    neighbours: Neighbours | None = None
    """New neighbours of all items."""


@dataclass(frozen=True, eq=False)
class Prepared:
    """A change that is ready to be committed."""

    change: ItemChanges
    compact: Floats
    places: PathPlaces
    changes: Changes
    retriever: Retriever
    hidden: Mask
    """Items without neighbours."""


class LiveIndex:
    """The arrays of a retriever in memory that can be written and grows."""

    def __init__(self, retriever: Retriever, rows: Floats, log_shares: Floats, *, map_files: bool = False) -> None:
        """`map_files` maps the arrays' files again instead of copying them; the files must still be the same."""
        postings, self._map_files = retriever.postings, map_files
        self._dim, self.num_items = retriever.dim, len(rows)
        self._allocate(rows, retriever.paths, retriever.counts, 2 * self.num_items + SPARE_ITEMS)
        entries = len(postings.items)
        room = 2 * entries + SPARE_PLACES
        self._segments = Segments.over(
            private_copy(postings.items, room, map_file=map_files),
            private_copy(log_shares, room, map_file=map_files),
            entries,
        )
        self._places = PathPlaces(
            as_readonly(postings.paths, np.int64),
            as_readonly(postings.starts, np.int64),
            as_readonly(postings.ends, np.int64),
            as_readonly(postings.sizes, np.int32),
        )
        self._unused: tuple[PathPlaces, Changes] | None = None
        self._hidden = np.zeros(0, np.bool_)
        if retriever.neighbours is not None:
            self._hidden = np.full(self.capacity, False)
            self._hidden[: len(retriever.neighbours.hidden)] = retriever.neighbours.hidden
            self._hidden[self.num_items :] = True
        encoder = copy(retriever.encoder)
        encoder.table = as_readonly(self._rows)
        retriever = copy(retriever)
        retriever.encoder = encoder
        self.retriever = self._next(retriever, postings, retriever.trie, self._hidden)

    @property
    def capacity(self) -> int:
        """The items that fit without moving the arrays."""
        return len(self._rows)

    def _allocate(self, rows: Floats, paths: Ints, counts: Ints, capacity: int) -> None:
        self._rows = private_copy(rows, capacity, map_file=self._map_files)
        # Small beside the rows, so they are copied: the first write to a mapped page takes microseconds.
        self._paths, self._counts = private_copy(paths, capacity), private_copy(counts, capacity)
        self._compact = compact_items(as_readonly(rows), self._dim, capacity)
        self._compact.flags.writeable = True

    def arrays(self) -> tuple[Floats, Ints, Ints, Floats]:
        """Rows, paths and counts of all items, and the log shares of the postings; read-only."""
        size = self.num_items
        rows, paths, counts = as_readonly(self._rows[:size]), self._paths[:size].view(), self._counts[:size].view()
        paths.flags.writeable = counts.flags.writeable = False
        return rows, paths, counts, as_readonly(self._segments.log_shares)

    def prepare(
        self,
        change: ItemChanges,
        config: Config,
        weights: Mapping[str, NDArray[Any]],
        encode_with_torch: Callable[[Ragged], Floats],
        *,
        new_weights: bool,
    ) -> Prepared:
        """Everything but the writes to items that queries read."""
        if self._unused is not None:
            release(self._segments, *self._unused)
            self._unused = None
        if change.num_items > self.capacity:
            self._grow(2 * change.num_items)
        old = change.items[change.items < self.num_items]
        before, placed = self._paths[old], change.paths[:, 0] != NO_PATH
        pairs = change.paths[placed].ravel()
        owners = np.repeat(change.items[placed], change.paths.shape[1]).astype(np.int32)
        order = np.lexsort((owners, pairs))
        changed = np.unique(np.concatenate([before[before != NO_PATH], pairs]))
        positions = np.searchsorted(self._places.paths, changed)
        self._reserve(positions, len(pairs))
        touched = Touched.pack(change.items, change.counts)
        entries = changed, positions, pairs[order], owners[order]
        changes = rewrite_paths(self._segments, self._places, self._counts, touched, *entries)
        places, moved = merge_paths(self._places, changes)
        places = PathPlaces(*(as_readonly(array, array.dtype) for array in places))
        compact = compact_items(as_readonly(change.rows), self._dim)
        for table in (self._rows, self._compact, self._paths, self._counts[:, None]):
            make_writable(table, change.items)
        retriever = self._next_retriever(config, weights, encode_with_torch, new_weights=new_weights)
        postings, trie = self._postings(retriever, places, change.num_items, moved=moved)
        hidden = self._hidden
        if change.neighbours is not None:
            retriever.neighbours = Neighbours.pack(*change.neighbours[:3])
            hidden = np.arange(self.capacity) >= change.num_items
        following = self._next(retriever, postings, trie, hidden)
        return Prepared(change, compact, places, changes, following, hidden)

    def commit(self, prepared: Prepared) -> Retriever:
        """Write the changed items; queries must not run meanwhile. Returns the retriever from now on."""
        change = prepared.change
        write_rows(self._rows, change.items, change.rows)
        write_rows(self._compact, change.items, prepared.compact)
        self._paths[change.items], self._counts[change.items] = change.paths, change.counts
        self._hidden = prepared.hidden
        if len(self._hidden) and change.neighbours is None:
            self._hidden[change.hidden] = True
        self._unused = self._places, prepared.changes
        self._places, self.num_items, self.retriever = prepared.places, change.num_items, prepared.retriever
        return self.retriever

    def _next_retriever(
        self,
        config: Config,
        weights: Mapping[str, NDArray[Any]],
        encode_with_torch: Callable[[Ragged], Floats],
        *,
        new_weights: bool,
    ) -> Retriever:
        retriever = copy(self.retriever)
        retriever.weights = ScoreWeights.from_config(config)
        table = as_readonly(self._rows)
        encoder, same_table = retriever.encoder, table.ctypes.data == retriever.table.ctypes.data
        same_length = encoder.history_length == config.history_length
        if new_weights or encoder.compiled is None or not same_table or not same_length:
            retriever.encoder = HistoryEncoder(config, weights, table, encode_with_torch)
        if new_weights:
            retriever.structure = StructureWeights.pack(weights_under("structure.", weights))
        return retriever

    def _postings(
        self, retriever: Retriever, places: PathPlaces, num_items: int, *, moved: bool
    ) -> tuple[Postings, Trie]:
        old = retriever.postings
        trie, prefixes, children = retriever.trie, [*old.prefixes[:-1], places.paths], old.children
        if moved:
            first_child, label, levels, codes = build_trie(places.paths, old.num_nodes, old.depth)
            trie = Trie(as_readonly(first_child, np.int32), as_readonly(label, np.int32), as_readonly(levels, np.int64))
            bounds = levels.tolist()
            prefixes = [codes[bounds[d] : bounds[d + 1]] for d in range(old.depth)] + [places.paths]
            children = [
                np.append(first_child[bounds[d] : bounds[d + 1]], bounds[d + 2]).astype(np.int64) - bounds[d + 1]
                for d in range(old.depth)
            ]
        items = as_readonly(self._segments.items, np.int32)
        return (
            Postings(old.num_nodes, old.depth, num_items, items, places.starts, places.ends, prefixes, children),
            trie,
        )

    def _next(self, retriever: Retriever, postings: Postings, trie: Trie, hidden: Mask) -> Retriever:
        """A retriever over these arrays."""
        following = copy(retriever)
        for name in ("_index", "_engine", "compact"):
            following.__dict__.pop(name, None)
        items, shares = as_readonly(self._segments.items, np.int32), as_readonly(self._segments.log_shares)
        following.__dict__.update(
            postings=postings,
            trie=trie,
            on_paths=PathItems.pack(postings.starts, postings.ends, items, shares),
            table=as_readonly(self._rows),
            paths=self._paths,
            counts=self._counts,
            compact=as_readonly(self._compact),
        )
        if following.neighbours is not None:
            following.neighbours = following.neighbours._replace(hidden=as_readonly(hidden, np.bool_))
        if following.encoder.compiled is not None:
            following._engine  # noqa: B018  Made here, while queries go on.
        return following

    def _reserve(self, positions: Ints, joining: int) -> None:
        """Make sure that the new segments of some paths fit."""
        places, segments = self._places, self._segments
        known = positions[positions < len(places.paths)]
        most = int((places.ends[known] - places.starts[known]).sum()) + joining + STEP * len(positions)
        used = int(segments.tail[0])
        if used + most > len(segments.items):
            room = 2 * (used + most)
            self._segments = segments._replace(
                items=private_copy(segments.items, room), log_shares=private_copy(segments.log_shares, room)
            )

    def _grow(self, capacity: int) -> None:
        """Move the arrays of items to larger ones. Queries read the old ones until the next commit."""
        size = self.num_items
        self._allocate(self._rows[:size], self._paths[:size], self._counts[:size], capacity)
        if len(self._hidden):
            hidden = np.ones(capacity, np.bool_)
            hidden[:size] = self._hidden[:size]
            self._hidden = hidden


def removed_rows(items: Ints, width: int, paths_per_item: int) -> tuple[Floats, Ints, Ints]:
    """Rows, paths and counts of removed items."""
    size = len(items)
    return (
        np.zeros((size, width), np.float32),
        np.full((size, paths_per_item), NO_PATH, np.int64),
        np.zeros(size, np.int64),
    )
