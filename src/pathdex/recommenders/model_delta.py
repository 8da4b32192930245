"""What changed between two states of a model: rows, paths and counts of some items, new and removed ids, weights.

A live model is a bundle and a chain of deltas. `apply_delta` is the plain version, which copies the state and inverts
all paths again; `pathdex.retrieval.live_index` changes an open index in place, with the same answers.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pathdex.config import Config
from pathdex.data.vocabulary import Vocabulary, as_kind
from pathdex.errors import ConfigError, DataError, Problem
from pathdex.index.neighbours import without_hidden
from pathdex.index.postings import NO_PATH, Postings, placed_items
from pathdex.kernels.neighbours import Neighbours
from pathdex.kernels.types import Floats, Ints
from pathdex.recommenders.base import EstimatorState
from pathdex.recommenders.delta_rules import form_problems, value_problems
from pathdex.recommenders.model_state import NEIGHBOURS, ModelState

SHAPES = (
    *("encoder", "embedding_dim", "shared_items", "num_nodes", "depth", "paths_per_item"),
    *("structure", "structure_hidden", "node_dim"),
)
"""Hyper-parameters that determine the shapes of arrays: only a new base can change them."""
NO_CODES = np.empty(0, np.int64)
_REMEDY = "write a new base"


@dataclass(frozen=True, eq=False)
class ModelDelta:
    """The changes of one publish. Items are given by code."""

    num_items: int
    """The size of the item table afterwards; it never shrinks."""
    items: Ints
    """(changed,) items whose row, paths, count or id changed, ascending. New ones are among them."""
    rows: Floats
    """(changed, width) of the item table."""
    paths: Ints
    """(changed, J); all -1 for an item that is not placed yet."""
    counts: Ints
    """(changed,)"""
    id_codes: Ints = field(default_factory=lambda: NO_CODES)
    """The changed items whose id is new: those past the old end of the table, and those that take a removed item's
    place."""
    ids: Vocabulary = field(default_factory=lambda: Vocabulary(NO_CODES))
    """The ids of `id_codes`."""
    removed: Ints = field(default_factory=lambda: NO_CODES)
    """Items that are no longer in the catalogue, ascending. None of them is in `items`."""
    weights: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    """All dense weights by name, or none if they did not change."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Hyper-parameters that changed, such as `penalty`."""
    neighbours: Neighbours | None = None
    """The neighbours of all items after the delta, or None if only `id_codes` and `removed` lose theirs."""

    def __post_init__(self) -> None:
        rules = [
            ("items", _is_ascending(self.items), "must be ascending and distinct"),
            ("removed", _is_ascending(self.removed), "must be ascending and distinct"),
            ("id_codes", bool(np.isin(self.id_codes, self.items).all()), "must be among the changed items"),
            ("removed", not np.isin(self.removed, self.items).any(), "must not be among the changed items"),
            ("ids", len(self.ids) == len(self.id_codes), "must be one per code"),
            ("rows", self.rows.ndim == 2 and len(self.rows) == len(self.items), "must be one row per changed item"),
            ("paths", self.paths.ndim == 2 and len(self.paths) == len(self.items), "must be one row per changed item"),
            ("counts", self.counts.shape == self.items.shape, "must be one per changed item"),
            ("num_items", not np.any(self.touched >= self.num_items), "must exceed the code of every item"),
            ("settings", not set(SHAPES) & set(self.settings), "must not change the shapes of arrays"),
        ]
        problems = [Problem(rule, name) for name, kept, rule in rules if not kept]
        if problems:
            raise DataError(*problems)
        placed_items(self.paths)

    @property
    def touched(self) -> Ints:
        """All items that the delta changes or removes."""
        return np.concatenate([self.items, self.removed])

    @property
    def nbytes(self) -> int:
        """The size of its arrays."""
        arrays: list[NDArray[Any]] = [self.items, self.rows, self.paths, self.counts, self.id_codes, self.removed]
        return sum(array.nbytes for array in (*arrays, *self.weights.values(), *self._neighbour_arrays().values()))

    def __repr__(self) -> str:
        parts = f"{len(self.items):,} changed, {len(self.id_codes):,} new ids, {len(self.removed):,} removed"
        return f"ModelDelta({self.num_items:,} items; {parts}{'; weights' if self.weights else ''})"

    def check(self, state: ModelState, ids: Vocabulary) -> None:
        """Raise `DataError` unless the delta fits a state and its catalogue."""
        old, width = len(state.counts), state.rows.shape[1]
        if self.num_items > old + len(self.id_codes) + len(self.removed):
            raise DataError("id_codes: every item past the old end of the table must have an id or be removed")
        new, names = np.arange(old, self.num_items), self.ids.ids(range(len(self.ids)))
        if len(ids):
            as_kind(self.ids, ids.kind)
        taken = ids.codes(names) if names else NO_CODES
        freed = np.isin(taken, hidden_by(self))
        problems = []
        if self.num_items < old:
            problems.append(f"num_items={self.num_items}: the item table has {old:,} rows and cannot shrink; {_REMEDY}")
        if not np.isin(new, np.concatenate([self.id_codes, self.removed])).all():
            problems.append("id_codes: every item past the old end of the table must have an id or be removed")
        if len(self.items) and self.rows.shape[1] != width:
            problems.append(f"rows: have width {self.rows.shape[1]}, the item table has {width}; {_REMEDY}")
        if len(self.items) and self.paths.shape[1] != state.paths.shape[1]:
            problems.append(f"paths: {self.paths.shape[1]} per item, the model has {state.paths.shape[1]}; {_REMEDY}")
        if self.weights and _shapes(self.weights) != _shapes(state.weights):
            problems.append(f"weights: names or shapes differ from those of the model; {_REMEDY}")
        if len(set(names)) < len(names):
            problems.append("ids: one occurs twice; give every item its own id")
        if not freed[taken >= 0].all():
            problems.append("ids: one belongs to another item that keeps it; remove that item first")
        try:
            config = changed_config(state.config, self)
        except ConfigError as error:
            raise DataError(*problems, *error.problems) from error
        arrays = {**self._item_arrays(), **self._neighbour_arrays()}
        problems = problems or value_problems(config, self.num_items, arrays, self.weights)
        if problems:
            raise DataError(*problems)

    def _item_arrays(self) -> dict[str, NDArray[Any]]:
        return {"items": self.items, "rows": self.rows, "paths": self.paths, "counts": self.counts}

    def _neighbour_arrays(self) -> dict[str, NDArray[Any]]:
        return {} if self.neighbours is None else dict(zip(NEIGHBOURS, self.neighbours[:3], strict=True))

    def state(self) -> EstimatorState:
        """The delta as stored in a live folder."""
        arrays = {**self._item_arrays(), **self._neighbour_arrays()}
        arrays |= {"id_codes": self.id_codes, "removed": self.removed}
        arrays |= {f"ids.{name}": array for name, array in self.ids.arrays(index=False).items()}
        return EstimatorState(
            {"num_items": self.num_items, "settings": dict(self.settings)}, arrays, dict(self.weights)
        )

    @classmethod
    def from_state(cls, state: EstimatorState) -> ModelDelta:
        """The inverse of `state`; `DataError` if it is not the state of a delta."""
        if found := form_problems(state.settings, state.arrays):
            raise DataError(*found)
        near = [state.arrays[name] for name in NEIGHBOURS if name in state.arrays]
        named = (*NEIGHBOURS, *(name for name in state.arrays if name.startswith("ids.")))
        arrays = {name: array for name, array in state.arrays.items() if name not in named}
        ids = {name.removeprefix("ids."): array for name, array in state.arrays.items() if name.startswith("ids.")}
        return cls(
            **state.settings | arrays,
            ids=Vocabulary.from_arrays(ids),
            weights=state.weights,
            neighbours=Neighbours(*near) if near else None,
        )


def apply_delta(state: ModelState, delta: ModelDelta) -> ModelState:
    """The state after a delta, as new arrays."""
    old = len(state.counts)
    rows = np.zeros((delta.num_items, state.rows.shape[1]), np.float32)
    paths = np.full((delta.num_items, state.paths.shape[1]), NO_PATH, np.int64)
    counts = np.zeros(delta.num_items, np.int64)
    rows[:old], paths[:old], counts[:old] = state.rows, state.paths, state.counts
    rows[delta.items], paths[delta.items], counts[delta.items] = delta.rows, delta.paths, delta.counts
    rows[delta.removed], paths[delta.removed], counts[delta.removed] = 0, NO_PATH, 0
    config = changed_config(state.config, delta)
    assert config.num_nodes is not None
    postings = Postings.from_paths(paths, config.num_nodes, config.depth)
    return dataclasses.replace(
        state,
        config=config,
        weights=delta.weights or state.weights,
        rows=rows,
        paths=paths,
        counts=counts,
        postings=postings,
        log_shares=postings.log_shares(counts),
        neighbours=_neighbours_after(state.neighbours, delta),
    )


def apply_ids(ids: Vocabulary, delta: ModelDelta) -> Vocabulary:
    """The catalogue after a delta."""
    return ids.with_changes(delta.id_codes, delta.ids, delta.removed, delta.num_items)


def changed_config(config: Config, delta: ModelDelta) -> Config:
    """The configuration after a delta."""
    return config.replace(**delta.settings) if delta.settings else config


def diff_states(before: ModelState, after: ModelState, ids_before: Vocabulary, ids_after: Vocabulary) -> ModelDelta:
    """The delta that turns one state into another, apart from neighbours, which stay as they are."""
    old, size = len(before.counts), len(after.counts)
    changed = np.ones(size, np.bool_)
    changed[:old] = (
        (before.rows != after.rows[:old]).any(axis=1)
        | (before.paths != after.paths[:old]).any(axis=1)
        | (before.counts != after.counts[:old])
    )
    renamed = has_other_id(ids_before, ids_after)
    is_gone, was_gone = np.zeros(size, np.bool_), np.zeros(size, np.bool_)
    is_gone[ids_after.removed], was_gone[ids_before.removed] = True, True
    items = np.flatnonzero((changed | renamed) & ~is_gone)
    id_codes = np.flatnonzero(renamed & ~is_gone)
    same = all(np.array_equal(after.weights[name], before.weights[name]) for name in after.weights)
    settings = after.config.to_dict()
    return ModelDelta(
        num_items=size,
        items=items,
        rows=np.ascontiguousarray(after.rows[items]),
        paths=after.paths[items],
        counts=after.counts[items],
        id_codes=id_codes,
        ids=ids_after.take(id_codes),
        removed=np.flatnonzero(is_gone & ~was_gone),
        weights={} if same else dict(after.weights),
        settings={name: value for name, value in settings.items() if before.config.to_dict()[name] != value},
    )


def has_other_id(before: Vocabulary, after: Vocabulary) -> NDArray[np.bool_]:
    """(item,) of the second catalogue: whether the first has another id for it, or none."""
    first, second = before.column(), after.column()
    other = np.ones(len(second), np.bool_)
    other[: len(first)] = first.ne_missing(second.head(len(first)).cast(first.dtype)).to_numpy()
    return other


def hidden_by(delta: ModelDelta) -> Ints:
    """Items that lose their neighbours: removed ones, and those whose id is new."""
    return np.concatenate([delta.id_codes, delta.removed])


def _neighbours_after(neighbours: Neighbours | None, delta: ModelDelta) -> Neighbours | None:
    if delta.neighbours is not None or neighbours is None:
        return delta.neighbours
    hidden = np.zeros(delta.num_items, np.bool_)
    hidden[hidden_by(delta)] = True
    return without_hidden(neighbours._replace(hidden=hidden), delta.num_items)


def _is_ascending(codes: Ints) -> bool:
    return codes.ndim == 1 and bool((np.diff(codes) > 0).all()) and not np.any(codes < 0)


def _shapes(weights: Mapping[str, NDArray[Any]]) -> dict[str, tuple[int, ...]]:
    return {name: array.shape for name, array in weights.items()}
