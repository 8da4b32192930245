"""Loading a model for serving: read, check, compile, and run test queries."""

from __future__ import annotations

import hashlib
import json
import logging
import math
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from functools import cached_property
from pathlib import Path
from typing import TypeAlias

from pathdex import __version__
from pathdex.data.vocabulary import Id
from pathdex.errors import BundleError, ConfigError, PathdexError, Problem, RunError
from pathdex.recommenders.base import Recommender
from pathdex.recommenders.capabilities import HasIndex
from pathdex.recommenders.deep_retrieval import DeepRetrieval
from pathdex.recommenders.live_model import LiveModel
from pathdex.recommenders.live_reader import LivePosition, LiveReader
from pathdex.recommenders.query import Query
from pathdex.recommenders.registry import from_bundle, load
from pathdex.server.options import ServerOptions
from pathdex.server.schemas import ModelInfo
from pathdex.storage import verified
from pathdex.storage.array_folder import MANIFEST, check_sums, is_small, open_folder, read_manifest
from pathdex.storage.bundle import BUNDLE_FORMAT, bundle_version, read_bundle
from pathdex.storage.live_folder import CURRENT, is_live_folder, read_current
from pathdex.storage.run_folder import find_bundle

log = logging.getLogger("pathdex.server")
FAST_SECONDS = 0.002
"""A faster query runs in the event loop: passing it to a thread would cost more than the wait it causes others."""
VERSION_DIGITS = 12
ATTEMPTS = 5
"""How often to reload a folder that is replaced while it is read."""

Signature: TypeAlias = tuple[tuple[str, int, int, int, int, int], ...]


@dataclass(frozen=True)
class ServedModel:
    """A model that is ready to answer."""

    recommender: Recommender
    version: str
    loaded: float
    """Unix time at which it was loaded."""
    query_seconds: float
    """Duration of a test query; infinite if the model was empty, so that no query is taken for a fast one."""
    signature: Signature
    """Identifies the files it was loaded from."""
    columns: tuple[str, ...] = ()
    """Columns that `where` can use."""
    reader: LiveReader | None = None
    """Follows the live folder that the model came from."""

    @property
    def is_fast(self) -> bool:
        return self.query_seconds < FAST_SECONDS

    @cached_property
    def info(self) -> ModelInfo:
        """What /v1/model returns; the statistics of a large index take a while."""
        model = self.recommender
        return ModelInfo(
            model=self.version,
            estimator=model.name,
            items=model.items.num_ids,
            ids=model.items.kind,
            history_length=model.history_length,
            loaded=datetime.fromtimestamp(self.loaded, timezone.utc).isoformat(timespec="seconds"),
            attributes=list(self.columns),
            config=model.get_params(),
            health=model.health() if isinstance(model, HasIndex) and model.items.num_ids else None,
        )


@dataclass(frozen=True)
class ModelLoader:
    """Loads the model at a path, with its catalogue table if it has one."""

    model: Path
    catalogue: Path | None = None
    catalogue_item: str | None = None
    catalogue_lists: Mapping[str, str | None] = field(default_factory=dict)

    @classmethod
    def from_options(cls, options: ServerOptions) -> ModelLoader:
        return cls(options.model, options.catalogue, options.catalogue_item, options.catalogue_lists)

    def check(self) -> None:
        """Raise for errors that can be found without loading the model."""
        if is_live_folder(self.model):
            read_current(self.model)
        read_manifest(self.folder(), BUNDLE_FORMAT)
        if self.catalogue is not None and not self.catalogue.exists():
            raise ConfigError([Problem("does not exist", "catalogue", str(self.catalogue), "check the path")])

    def folder(self) -> Path:
        """The bundle that the path points to now, through links and run folders; of a live folder, its base."""
        if is_live_folder(self.model):
            return (self.model / read_current(self.model).base.name).resolve()
        return find_bundle(self.model).resolve()

    def signature(self) -> Signature | None:
        """A value that changes when any file of the model changes; None while there is no model."""
        try:
            if is_live_folder(self.model):
                files = [self.model / CURRENT]
            else:
                folder = self.folder()
                files = [folder / MANIFEST, *sorted(Path(entry.path) for entry in os.scandir(folder))]
            if self.catalogue is not None:
                files.append(self.catalogue)
            stats = [(str(file), _stat(file)) for file in files]
        except (OSError, RunError):
            return None
        return tuple(
            (name, one.st_dev, one.st_ino, one.st_size, one.st_mtime_ns, one.st_ctime_ns) for name, one in stats
        )

    def missing_path(self) -> Path:
        """What to name where there is no model: the catalogue table if that is gone, else the model."""
        return self.catalogue if self.catalogue is not None and not self.catalogue.exists() else self.model

    def is_current(self, served: ServedModel) -> bool:
        """Whether the files hold the model that is served: touching or copying them does not change the model."""
        signature = self.signature()
        return (
            signature is not None
            and self._version() == served.version
            and (self.catalogue is None or signature[-1] == served.signature[-1])
        )

    def _version(self) -> str:
        live = is_live_folder(self.model)
        return read_current(self.model).digest[:VERSION_DIGITS] if live else bundle_version(self.folder())

    def update(self, served: ServedModel) -> tuple[ServedModel, int] | None:
        """The served model with all new deltas of its live folder, and their number; None if it must be loaded again.

        The model itself changes, so requests in flight see each delta as soon as it is applied.
        """
        reader, model, signature = served.reader, served.recommender, self.signature()
        if reader is None or not isinstance(model, LiveModel) or not is_live_folder(self.model) or signature is None:
            return None
        if self.catalogue is not None and signature[-1] != served.signature[-1]:
            return None
        count = reader.update(model)
        if count is None or reader.position is None:
            return None
        version = reader.position.digest[:VERSION_DIGITS]
        return replace(served, version=version, signature=signature, loaded=time.time()), count

    def load(self, *, verify: bool = False) -> ServedModel:
        """Load, warm up and test the model; with `verify`, also check the checksums of large files.

        If the folder changes while it is read, the model may mix files of two bundles, so it is loaded again.
        """
        for attempt in range(ATTEMPTS):
            before = self.signature()
            try:
                served = self._load(before or ())
                if verify:
                    self.verify()
            except (PathdexError, OSError):
                if self.signature() == before or attempt == ATTEMPTS - 1:
                    raise
            else:
                # A live folder changes all the time; its reader makes sure that base and deltas belong together.
                if served.reader is not None or served.signature == self.signature():
                    return served
        raise BundleError(f"{self.model} was replaced {ATTEMPTS} times while it was loaded; replace it less often")

    def _load(self, signature: Signature) -> ServedModel:
        folder, reader = self.folder(), LiveReader(self.model) if is_live_folder(self.model) else None
        recommender = load(folder) if reader is None else reader.load()
        position = None if reader is None else reader.position
        version = bundle_version(folder) if position is None else position.digest[:VERSION_DIGITS]
        return self._serve(recommender, version, signature, reader)

    def load_handles(self, path: Path, files: Mapping[str, int], position: LivePosition | None) -> ServedModel:
        """Load a bundle from files that were opened before; `position` is that of the base of a live folder."""
        bundle = read_bundle(path, handles=files)
        recommender, reader, version = from_bundle(bundle, str(path)), None, str(bundle.version)
        if position is not None and isinstance(recommender, DeepRetrieval):
            recommender, reader = LiveModel(recommender), LiveReader(self.model)
            reader.position = position
            try:
                reader.update(recommender)
            except Exception:  # The base is good, so a worker must start, whatever is wrong with a delta.
                log.exception("deltas of %s are left out", self.model)
            version = reader.position.digest[:VERSION_DIGITS]
        return self._serve(recommender, version, self.signature() or (), reader)

    def verify(self) -> None:
        """Check the checksums of a large bundle, unless they were checked before; `BundleError` if one is wrong.

        Those of a small bundle are checked whenever it is opened.
        """
        folder, manifest = open_folder(self.folder(), BUNDLE_FORMAT)
        with folder:
            key = verified.folder_key(folder, folder.handles)
            if not is_small(manifest["files"]) and not verified.is_checked(key, verified.CHECKSUMS):
                check_sums(folder, BUNDLE_FORMAT, manifest["files"])
                verified.set_checked(key, verified.CHECKSUMS)

    def trial_key(self) -> str:
        """A name for what a trial decides on: the files of the bundle, and the catalogue table.

        Of a live folder it is the base. Its deltas are checked one by one when they are applied, with or without a
        trial, so that a worker need not wait for a trial because of them.
        """
        files = replace(self, model=self.folder()).signature() if is_live_folder(self.model) else self.signature()
        content = json.dumps([__version__, str(self.model), files, dict(self.catalogue_lists)])
        return hashlib.sha256(content.encode()).hexdigest()

    def _serve(
        self, recommender: Recommender, version: str, signature: Signature, reader: LiveReader | None
    ) -> ServedModel:
        """Attach the catalogue table and test the model."""
        columns: tuple[str, ...] = ()
        if self.catalogue is not None:
            from pathdex.data.attributes import Attributes

            attributes = Attributes.read(self.catalogue, item=self.catalogue_item, lists=self.catalogue_lists)
            recommender.attach(attributes)
            columns = attributes.columns
        elif recommender.details is not None:
            columns = recommender.attach_details()
        seconds = probe_model(recommender)
        return ServedModel(recommender, version, time.time(), seconds, signature, columns, reader)


def _stat(file: Path) -> os.stat_result:
    """What the file is; of a link that leads nowhere, what the link is."""
    try:
        return file.stat()
    except FileNotFoundError:
        return file.lstat()


def probe_model(recommender: Recommender) -> float:
    """Warm up a model and run test queries; returns the seconds of one. `BundleError` if results are invalid.

    A live model may be empty for a while: all its items were removed, and others may come.
    """
    if not recommender.items.num_ids:
        if not isinstance(recommender, LiveModel):
            raise BundleError("the model has no items; train it on interactions")
        _check_results(recommender, Query([], exclude_seen=False))
        return math.inf
    recommender.warmup()
    items = recommender.items
    first, last = items.first_ids(1)[0], items.first_ids(2)[-1]
    histories: list[list[Id]] = [[], [first], [first, last]]
    for history in histories:
        _check_results(recommender, Query(history, exclude_seen=False))
    best = math.inf
    for _ in range(5):
        started = time.perf_counter()
        recommender.recommend_batch([Query(histories[-1])], 10)
        best = min(best, time.perf_counter() - started)
    recommender.recommend_batch(histories, 3)
    recommender.similar_items(first, 3)
    return best


def _check_results(recommender: Recommender, query: Query) -> None:
    results = recommender.recommend_batch([query], 10)[0]
    scores = [score for _, score in results]
    expected = min(10, recommender.items.num_ids)
    if isinstance(recommender, LiveModel):
        expected = min(expected, recommender.num_placed)
    if len(results) != expected or not all(map(math.isfinite, scores)) or scores != sorted(scores, reverse=True):
        raise BundleError(
            f"the model returns {len(results)} items with scores {scores[:3]} for the history "
            f"{list(query.history)!r}, not {expected} items with finite, descending scores; train it again"
        )
