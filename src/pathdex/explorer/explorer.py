"""A model and what the explorer keeps of it: sums, labels, search index, sample histories; computed when first used."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import polars as pl

from pathdex.errors import QueryError
from pathdex.explorer.catalogue import Catalogue
from pathdex.explorer.facts import IndexFacts
from pathdex.explorer.labels import LabelMaker, background
from pathdex.explorer.schemas import NamedItem, PathLabel, PathSummary
from pathdex.explorer.search import MAX_INDEXED, TitleSearch
from pathdex.index.paths import decode_paths
from pathdex.kernels.types import Ints
from pathdex.recommenders.arguments import known_code
from pathdex.recommenders.base import Recommender
from pathdex.recommenders.capabilities import HasIndex, require
from pathdex.recommenders.deep_retrieval import DeepRetrieval
from pathdex.recommenders.live_model import LiveModel
from pathdex.recommenders.shard import DeepRetrievalShard
from pathdex.training.recording import NO_RECORDING, Recording

T = TypeVar("T")

LABEL_ITEMS = 40
"""The most popular items of a path that its label is made from."""
LABELS_KEPT = 20_000
"""Labels that are remembered."""
FIRST_ITEMS = 3
"""Items of a path in a list."""


@dataclass(frozen=True)
class Doing:
    """What is prepared."""

    name: str
    began: float
    """When preparing began, on the monotonic clock."""

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.began


class Explorer:
    """Answers the explorer's questions about one version of a model. Thread-safe.

    What is costly is computed once. A live model may have moved on meanwhile; its next version gets an explorer of its
    own.
    """

    def __init__(
        self,
        model: Recommender,
        version: str,
        *,
        recording: Recording = NO_RECORDING,
        other: Explorer | None = None,
        folder: Path | None = None,
    ) -> None:
        """`recording` is what the training recorded, `other` a model to compare with, `folder` where this one is."""
        indexed = require(model, HasIndex)
        if isinstance(indexed, DeepRetrievalShard):
            rule = f"shard {indexed.facts.index + 1} of {indexed.facts.count} has only a part of the items of each path"
            raise QueryError(rule, remedy="explore the model that was sharded")
        assert isinstance(indexed, DeepRetrieval)
        self.model, self.version, self.recording, self.other = indexed, version, recording, other
        self.folder = folder
        self.is_live = isinstance(model, LiveModel)
        self._lock, self._making = threading.Lock(), dict[str, threading.Lock]()
        self._kept: dict[str, Any] = {}
        self._changed = threading.Condition()
        """Notified when a value is computed, and when preparing ends."""
        self._doing: Doing | None = None
        self._labels: OrderedDict[tuple[int, ...], PathLabel | None] = OrderedDict()

    def once(self, name: str, make: Callable[[], T]) -> T:
        """A value that is computed once, by one thread. Others are computed meanwhile."""
        if name not in self._kept:
            with self._lock:
                lock = self._making.setdefault(name, threading.Lock())
            with lock:
                if name not in self._kept:
                    self._kept[name] = make()
                    with self._changed:
                        self._changed.notify_all()
        found: T = self._kept[name]
        return found

    @property
    def doing(self) -> Doing | None:
        """What is prepared at present; None if nothing is."""
        return self._doing

    def prepare(self, steps: Mapping[str, Callable[[Explorer], object]]) -> None:
        """Compute what the first requests would wait for, step by step; `doing` tells the name of the present one."""
        began = time.monotonic()
        try:
            for name, step in steps.items():
                self._doing = Doing(name, began)
                step(self)
        finally:
            with self._changed:
                self._doing = None
                self._changed.notify_all()

    def waits_for(self, name: str, seconds: float) -> float | None:
        """Wait so many seconds for a value that is being prepared; if it still is, returns for how long it has been."""
        with self._changed:
            if self._changed.wait_for(lambda: name in self._kept or self._doing is None, seconds):
                return None
            return None if self._doing is None else self._doing.seconds

    @property
    def depth(self) -> int:
        return self.model.config.depth

    @property
    def num_nodes(self) -> int:
        return self.model.num_nodes

    @property
    def catalogue(self) -> Catalogue:
        return Catalogue(self.model.items, self.model.details)

    @property
    def facts(self) -> IndexFacts:
        """Sums over the index."""

        def make() -> IndexFacts:
            with self.model.unchanging():
                return IndexFacts.of(self.model.postings, self.model.model_state.counts)

        return self.once("facts", make)

    @property
    def counts(self) -> Ints:
        """Interactions by item; of removed items 0."""
        return self.model.model_state.counts

    @property
    def by_popularity(self) -> Ints:
        """Codes of all items, the most popular first, ties by code."""

        def make() -> Ints:
            with self.model.unchanging():
                order = np.argsort(-self.counts, kind="stable")
                gone = self.model.items.removed
                return order[~np.isin(order, gone)] if len(gone) else order

        return self.once("by_popularity", make)

    @property
    def popularity_rank(self) -> Ints:
        """The rank of each code, from 1."""

        def make() -> Ints:
            order = self.by_popularity
            ranks = np.zeros(int(order.max(initial=-1)) + 1, np.int64)
            ranks[order] = np.arange(1, len(order) + 1)
            return ranks

        return self.once("popularity_rank", make)

    @property
    def labels(self) -> LabelMaker:
        def make() -> LabelMaker:
            with self.model.unchanging():
                items = self.model.items
                return LabelMaker(self.catalogue, background(len(items), items.removed))

        return self.once("labels", make)

    @property
    def search(self) -> TitleSearch:
        """The words of ids and titles, by popularity."""
        return self.once("search", lambda: TitleSearch(self._texts()))

    def _texts(self) -> pl.Series:
        codes = self.by_popularity[:MAX_INDEXED]
        with self.model.unchanging():
            ids = self.model.items.column().gather(codes).cast(pl.String)
        details = self.model.details
        if details is None or details.title_column is None:
            return ids
        titles = next(one for one in details.columns if one.name == details.title_column).series()
        if titles.dtype == pl.List:
            titles = titles.cast(pl.List(pl.String)).list.join(" ")
        known = pl.DataFrame({"id": details.ids.column().cast(pl.String), "title": titles.cast(pl.String)})
        found = pl.DataFrame({"id": ids}).join(known, on="id", how="left", maintain_order="left")
        return found.select(pl.concat_str("id", "title", separator=" ", ignore_nulls=True)).to_series()

    def items_on(self, path: int) -> Ints:
        """The items on a path, by code."""
        return self.model.postings.items_on(path).astype(np.int64)

    def most_popular(self, codes: Ints, most: int) -> Ints:
        """The most popular of some items, ties by code."""
        counts = self.counts[codes]
        if len(codes) > 4 * most:
            kept = np.argpartition(-counts, most)[:most]
            codes, counts = codes[kept], counts[kept]
        return codes[np.lexsort((codes, -counts))][:most]

    def nodes_of(self, code: int) -> list[int]:
        nodes: list[int] = decode_paths(np.array([code]), self.num_nodes, self.depth)[0].tolist()
        return nodes

    def label(self, prefix: Sequence[int]) -> PathLabel | None:
        """The label of a path or a prefix."""
        key = tuple(prefix)
        if self.labels.is_silent:
            return None
        if key not in self._labels:
            found = self.label_of(self.facts.range_of(key))
            with self._lock:
                self._labels[key] = found
                while len(self._labels) > LABELS_KEPT:
                    self._labels.popitem(last=False)
            return found
        return self._labels.get(key)

    def label_of(self, positions: range | Ints) -> PathLabel | None:
        """The label of any paths, by their positions in `facts`."""
        return self.labels.label(self.sample_of(positions)) if len(positions) else None

    def sample_of(self, positions: range | Ints, most: int = LABEL_ITEMS) -> Ints:
        """The most popular items on some paths; of many, those of the most popular paths."""
        facts = self.facts
        paths = facts.paths[facts.ordered(positions, "interactions", 0, most)]
        with self.model.unchanging():
            on_paths = [self.items_on(one) for one in paths.tolist()]
            codes = np.unique(np.concatenate(on_paths)) if on_paths else np.empty(0, np.int64)
            return self.most_popular(codes, most)

    def summaries(self, positions: Ints) -> list[PathSummary]:
        """Paths of `facts` in a list, with labels and their first items."""
        facts = self.facts
        nodes = decode_paths(facts.paths[positions], self.num_nodes, self.depth).tolist()
        with self.model.unchanging():
            first = [self.most_popular(self.items_on(one), FIRST_ITEMS) for one in facts.paths[positions].tolist()]
            names = self.named(np.concatenate(first)) if first else []
        ends = np.cumsum([len(one) for one in first])
        return [
            PathSummary(
                path,
                int(facts.sizes[position]),
                int(facts.interactions[position]),
                self.label(path),
                names[end - len(own) : end],
            )
            for path, position, own, end in zip(nodes, positions.tolist(), first, ends, strict=True)
        ]

    def named(self, codes: Ints | Sequence[int]) -> list[NamedItem]:
        return self.catalogue.named(codes)

    def code_of(self, item: str | int) -> int:
        """The code of an item; `QueryError` for an unknown one."""
        return known_code(self.model.items, item)

    def parse_path(self, text: str, argument: str = "path", *, whole: bool = True) -> tuple[int, ...]:
        """Nodes written as 3-17-5 or 3,17,5; a prefix if it need not be `whole`."""
        parts = text.replace(",", "-").split("-") if text else []
        valid = all(part.isascii() and part.isdecimal() and len(part) < 10 for part in parts)
        nodes = tuple(map(int, parts)) if valid else ()
        length = len(nodes) == self.depth if whole else len(nodes) <= self.depth
        if not valid or not length or any(node >= self.num_nodes for node in nodes):
            many = f"{self.depth} nodes" if whole else f"at most {self.depth} nodes"
            raise QueryError(
                f"must have {many} between 0 and {self.num_nodes - 1}, joined by hyphens",
                argument=argument,
                value=text,
                remedy=f"write it as {'-'.join(map(str, range(1, self.depth + 1)))}",
            )
        return nodes
