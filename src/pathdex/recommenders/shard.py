"""One shard of a Deep Retrieval model: every `count`-th item, and what the whole model knows about its paths."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Self

from pathdex.data.attributes import Attributes
from pathdex.data.item_details import ID_COLUMN
from pathdex.data.ragged import Ragged
from pathdex.errors import ConfigError, Problem
from pathdex.kernels.neighbours import NO_NEIGHBOURS, Neighbours
from pathdex.kernels.types import Floats, Ints, Mask
from pathdex.recommenders.base import EstimatorState
from pathdex.recommenders.bundle_checks import check_names, check_object
from pathdex.recommenders.deep_retrieval import DeepRetrieval
from pathdex.recommenders.model_state import LARGEST_SIMILARITY, NEIGHBOURS, ModelState, TorchEncoder
from pathdex.retrieval.part_search import PartQuery, find_part
from pathdex.retrieval.retriever import Retriever
from pathdex.retrieval.similar import cosines
from pathdex.storage.array_spec import ArraySpec, index_spec, offsets_spec
from pathdex.storage.bundle_rules import BundleRules

MOST_SHARDS = 1024
NEAR = ("near.offsets", "near.items", "near.similarities")
SIZES, WEIGHTS = "whole.path_sizes", "whole.path_weights"


class ShardKey(NamedTuple):
    """Identifies a shard. The version of the whole model does not: it can be split in several ways."""

    version: str
    """Of the whole model."""
    place: int
    """The index of the shard, from 0."""
    shards: int

    def __str__(self) -> str:
        return f"shard {self.place + 1} of {self.shards} of model {self.version}"


@dataclass(frozen=True)
class ShardFacts:
    """The place of a shard, and what is known of the whole model.

    Item v of the whole model is item v // count of shard v % count, so codes need no table and keep their order.
    """

    index: int
    """From 0 to count - 1."""
    count: int
    version: str
    """The version of the whole model."""
    num_codes: int
    """The catalogue of the whole model, with removed items."""
    num_ids: int
    """The catalogue without removed items."""
    num_entries: int
    """Items on all paths of the whole model, each counted once per path."""
    neighbours: bool
    """Whether the whole model has neighbours."""
    details: bool
    """Whether it has titles and other details of items."""
    separators: dict[str, str | None]
    """Of each text column of the details: what separates the values of a cell, as found in the whole table."""
    health: dict[str, Any] | None
    """The statistics of the whole index."""

    @property
    def key(self) -> ShardKey:
        """What identifies the shard."""
        return ShardKey(self.version, self.index, self.count)

    def own(self, codes: NDArray[np.integer]) -> Ints:
        """The codes in this shard of those items of the whole model that it holds."""
        held = np.asarray(codes, np.int64)
        found: Ints = held[held % self.count == self.index] // self.count
        return found

    def whole(self, codes: NDArray[np.integer]) -> Ints:
        """The codes in the whole model of codes in this shard."""
        found: Ints = np.asarray(codes, np.int64) * self.count + self.index
        return found

    def num_own(self) -> int:
        """The size of this shard's catalogue."""
        return len(range(self.index, self.num_codes, self.count))

    @classmethod
    def from_stored(cls, stored: Any) -> ShardFacts:
        """The facts in a bundle; `ConfigError` for bad ones."""
        check_names("shard", stored, [one.name for one in fields(cls)])
        facts, problems = cls(**stored), []
        for name in ("index", "count", "num_codes", "num_ids", "num_entries"):
            value = getattr(facts, name)
            if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**62:
                problems.append(Problem("must be a whole number", f"shard.{name}", value))
        if not problems and not 0 <= facts.index < facts.count <= MOST_SHARDS:
            problems.append(Problem(f"must be below the count {facts.count}", "shard.index", facts.index))
        if not isinstance(facts.version, str) or len(facts.version) != 12:
            problems.append(Problem("must be 12 digits", "shard.version", facts.version))
        for name in ("neighbours", "details"):
            if not isinstance(getattr(facts, name), bool):
                problems.append(Problem("must be true or false", f"shard.{name}", getattr(facts, name)))
        if problems:
            raise ConfigError(problems)
        check_object("shard.separators", facts.separators)
        return facts


class DeepRetrievalShard(DeepRetrieval):
    """A part of a Deep Retrieval model. By itself it recommends from its own items, without neighbours; a router
    (`pathdex serve --shards`) merges all shards to the answers of the whole model."""

    name = "deep-retrieval-shard"
    facts: ShardFacts
    near: Neighbours
    """For each item of the shard, its neighbours by their codes in the whole model."""
    path_sizes: Ints
    """How many items of the whole model are on each path."""
    path_weights: Floats
    """The `log_path_weights` of the whole model."""

    @cached_property
    def retriever(self) -> Retriever:
        state = self.model_state
        return Retriever(
            state.config,
            state.weights,
            state.rows,
            state.postings,
            state.log_shares,
            state.paths,
            state.counts,
            TorchEncoder(state),
            None,
            self.path_weights,
        )

    def attach_details(self) -> tuple[str, ...]:
        if self._attributes is None and self._details is not None:
            frame = self._details.to_frame()
            self.attach(Attributes.read(frame, item=ID_COLUMN, lists=self.facts.separators))
            self._where_details = True
        return () if self._attributes is None else self._attributes.columns

    def warmup(self) -> Self:
        super().warmup()
        user = self.user_vectors(Ragged.from_rows([[0]] if len(self.items) else [[]]))[0]
        positions, log_p = np.arange(min(1, len(self.postings))), np.zeros(min(1, len(self.postings)), np.float32)
        everything, similar = np.ones(len(self.items), np.bool_), np.arange(min(1, len(self.items)))
        query = PartQuery(
            user, positions, log_p, similar, None, similar, np.ones(len(similar), np.float32), 1, 0, 1, True
        )
        weights = self.retriever.weights
        for one in (
            query,
            query._replace(mask=everything),
            query._replace(candidates=1),
            query._replace(mask=everything, listed=True),
        ):
            find_part(self.retriever, weights, one)
        cosines(self.retriever, user, similar)
        return self

    def where_mask(self, where: Mapping[str, Any] | None) -> Mask | None:
        """The items that match conditions; None for no conditions."""
        return self._where(where)

    def get_state(self) -> EstimatorState:
        state = self.model_state.state()
        lists = (self.near.offsets, self.near.items, self.near.similarities)
        near: dict[str, NDArray[Any]] = dict(zip(NEAR, lists, strict=True)) if self.facts.neighbours else {}
        return replace(
            state,
            settings={**state.settings, "shard": asdict(self.facts)},
            arrays={**state.arrays, **near, SIZES: self.path_sizes, WEIGHTS: self.path_weights},
        )

    @classmethod
    def bundle_rules(cls, settings: Mapping[str, Any], num_items: int) -> BundleRules:
        check_names("settings", settings, ("config", "records", "shard"))
        facts = ShardFacts.from_stored(settings["shard"])
        if facts.num_own() != num_items:
            rule = f"must leave shard {facts.index + 1} of {facts.count} its {num_items} items"
            raise ConfigError([Problem(rule, "shard.num_codes", facts.num_codes)])
        rules = ModelState.rules({name: settings[name] for name in ("config", "records")}, num_items)
        arrays = {name: spec for name, spec in rules.arrays.items() if name not in NEIGHBOURS}
        arrays["postings.offsets"] = offsets_spec("paths+1", "entries")
        arrays[SIZES] = ArraySpec(dtype="int64", shape=("paths",), low=1, high=max(1, facts.num_codes))
        arrays[WEIGHTS] = ArraySpec(dtype="float64", shape=("paths",), low=-1e3, high=1e3)
        if facts.neighbours:
            arrays[NEAR[0]] = offsets_spec(num_items + 1, "near")
            arrays[NEAR[1]] = index_spec("near", below=max(1, facts.num_codes))
            arrays[NEAR[2]] = ArraySpec(dtype="float32", shape=("near",), low=0.0, high=LARGEST_SIMILARITY)
        return replace(rules, arrays=arrays, together=())

    def set_state(self, state: EstimatorState) -> None:
        arrays = dict(state.arrays)
        self.facts = ShardFacts.from_stored(state.settings["shard"])
        self.path_sizes, self.path_weights = arrays[SIZES], arrays[WEIGHTS]
        found = [arrays[name] for name in NEAR if name in arrays]
        self.near = Neighbours.pack(*found) if found else NO_NEIGHBOURS
        super().set_state(replace(state, arrays=arrays))
