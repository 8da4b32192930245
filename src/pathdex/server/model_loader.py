"""Opening a model for serving: read, verify, compile, and ask it something before anybody else does."""

from __future__ import annotations

import math
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from pathdex.errors import BundleError, ConfigError, PathdexError
from pathdex.recommenders.base import Query, Recommender
from pathdex.recommenders.registry import load
from pathdex.server.options import ServerOptions
from pathdex.storage.array_folder import MANIFEST, read_manifest
from pathdex.storage.bundle import BUNDLE_FORMAT, bundle_version, read_bundle

if TYPE_CHECKING:
    from pathdex.data.attributes import Attributes

QUICK_SECONDS = 0.002
"""A query below this runs in the event loop: handing it to a thread would cost more than it holds up others."""
ATTEMPTS = 5
"""How often a folder is opened anew that was replaced while it was read."""

Signature: TypeAlias = tuple[tuple[str, int, int, int], ...]


@dataclass(frozen=True)
class ServedModel:
    """A model that is ready to answer. A request keeps the one that it began with."""

    recommender: Recommender
    version: str
    loaded: float
    """When it was opened, in seconds since 1970."""
    query_seconds: float
    """How long a query took when it was tried."""
    signature: Signature
    """Of the files that it was opened from."""
    columns: tuple[str, ...] = ()
    """What `where` knows."""

    @property
    def quick(self) -> bool:
        return self.query_seconds < QUICK_SECONDS


@dataclass(frozen=True)
class Source:
    """Where a model comes from."""

    model: Path
    catalogue: Path | None = None
    catalogue_item: str | None = None

    @classmethod
    def of(cls, options: ServerOptions) -> Source:
        return cls(options.model, options.catalogue, options.catalogue_item)

    def check(self) -> None:
        """Raise what can be known to be wrong at a glance, without the time that opening takes."""
        folder = self.folder()
        if not (folder / MANIFEST).exists() and (self.model / "run.json").exists():
            load(self.model)
        read_manifest(folder, BUNDLE_FORMAT)
        if self.catalogue is not None and not self.catalogue.exists():
            raise ConfigError([f"catalogue={str(self.catalogue)!r}: does not exist; check the path"])

    def folder(self) -> Path:
        """The bundle that the path leads to at this moment, through links and run folders."""
        folder = self.model.resolve()
        if not (folder / MANIFEST).exists() and (folder / "bundle").is_dir():
            return (folder / "bundle").resolve()
        return folder

    def signature(self) -> Signature | None:
        """Changes when any file of the model is changed or replaced; None while there is no model."""
        folder = self.folder()
        try:
            files = [folder / MANIFEST, *sorted(Path(entry.path) for entry in os.scandir(folder))]
            if self.catalogue is not None:
                files.append(self.catalogue)
            stats = [(str(file), file.stat()) for file in files]
        except OSError:
            return None
        return tuple((name, stat.st_ino, stat.st_size, stat.st_mtime_ns) for name, stat in stats)

    def same(self, served: ServedModel) -> bool:
        """Whether what is there is what is served: a folder may be touched or copied over itself."""
        signature = self.signature()
        return (
            signature is not None
            and self.version() == served.version
            and (self.catalogue is None or signature[-1] == served.signature[-1])
        )

    def version(self) -> str:
        """The version of the bundle that is there, known without opening it."""
        folder = self.folder()
        try:
            return bundle_version(folder)
        except OSError as error:
            raise BundleError(f"{folder} has no readable {MANIFEST}; pass a run or a bundle") from error

    def open(self) -> ServedModel:
        """Open, verify, warm up and try the model.

        A bundle may be replaced while it is read. Files that are mapped stay what they were, but some may be of the old
        bundle and some of the new; where the folder has changed meanwhile, it is opened again.
        """
        for attempt in range(ATTEMPTS):
            before = self.signature()
            try:
                served = self._open(before or ())
            except (PathdexError, OSError):
                if self.signature() == before or attempt == ATTEMPTS - 1:
                    raise
            else:
                if served.signature == self.signature():
                    return served
        raise BundleError(f"{self.model} was replaced {ATTEMPTS} times while it was opened; replace it less often")

    def _open(self, signature: Signature) -> ServedModel:
        folder = self.folder()
        # A run that is not finished has its own error.
        recommender = load(self.model if not (folder / MANIFEST).exists() else folder)
        read_bundle(folder, verify=True)
        columns: tuple[str, ...] = ()
        if self.catalogue is not None:
            attributes = self._attributes()
            recommender.attach(attributes)
            columns = attributes.columns
        seconds = try_out(recommender)
        return ServedModel(recommender, bundle_version(folder), time.time(), seconds, signature, columns)

    def _attributes(self) -> Attributes:
        from pathdex.data.attributes import Attributes

        assert self.catalogue is not None
        return Attributes.read(self.catalogue, item=self.catalogue_item)


def try_out(recommender: Recommender) -> float:
    """Compile what queries need, and ask a few; returns the seconds of one. `BundleError` where answers are no good."""
    warm = getattr(recommender, "warmup", None)
    if warm is not None:
        warm()
    items = recommender.items
    if not len(items):
        raise BundleError("the model has no items; train it on interactions")
    first, last = items.id(0), items.id(len(items) - 1)
    histories: list[list[str | int]] = [[], [first], [first, last]]
    for history in histories:
        _check_answer(recommender, Query(history, exclude_seen=False))
    best = math.inf
    for _ in range(5):
        started = time.perf_counter()
        recommender.recommend_batch([Query(histories[-1])], 10)
        best = min(best, time.perf_counter() - started)
    recommender.recommend_batch(histories, 3)
    recommender.similar_items(first, 3)
    return best


def _check_answer(recommender: Recommender, query: Query) -> None:
    answer = recommender.recommend_batch([query], 10)[0]
    scores = [score for _, score in answer]
    wanted = min(10, len(recommender.items))
    if len(answer) != wanted or not all(map(math.isfinite, scores)) or scores != sorted(scores, reverse=True):
        raise BundleError(
            f"the model answers the history {list(query.history)!r} with {len(answer)} items of scores {scores[:3]}, "
            f"not with {wanted} of falling, finite scores; train it again"
        )
