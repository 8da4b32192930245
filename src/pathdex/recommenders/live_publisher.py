"""Publishing a model that changes to a live folder."""

from __future__ import annotations

import threading
from pathlib import Path
from types import TracebackType

from typing_extensions import Self

from pathdex.errors import BundleError
from pathdex.recommenders.deep_retrieval import DeepRetrieval
from pathdex.recommenders.live_reader import open_version
from pathdex.recommenders.model_delta import ModelDelta
from pathdex.storage.live_folder import BaseVersion, LiveVersion
from pathdex.storage.live_writer import LiveWriter
from pathdex.training.malloc import return_freed_memory


class LivePublisher:
    """The one publisher of a live folder, which servers follow.

    `keep` is the number of bases to keep for `rollback`, the current one included. Methods can be called from several
    threads.
    """

    def __init__(
        self, path: str | Path, *, keep: int = 2, is_locked: bool = False, replaces_damaged: bool = False
    ) -> None:
        """`is_locked` if the caller holds the folder's lock.

        `replaces_damaged` if the caller can publish the whole model again where `CURRENT` is damaged.
        """
        self._writer = LiveWriter(path, keep=keep, is_locked=is_locked, replaces_damaged=replaces_damaged)
        self._compacting: threading.Thread | None = None
        self._failure: BaseException | None = None

    @classmethod
    def create(cls, path: str | Path, model: DeepRetrieval, *, keep: int = 2) -> Self:
        """Publish a model as the first base of a new live folder, or as a new base of an existing one."""
        publisher = cls(path, keep=keep)
        try:
            publisher.publish_base(model)
        except BaseException:
            publisher.close()
            raise
        return publisher

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.close()

    @property
    def path(self) -> Path:
        return self._writer.path

    @property
    def has_base(self) -> bool:
        """Whether anything was published."""
        return self._writer.version is not None

    @property
    def damage(self) -> str | None:
        """What was wrong with `CURRENT`, if it is going to be replaced."""
        return self._writer.damage

    @property
    def version(self) -> LiveVersion:
        """The base and the deltas that readers see."""
        if self._writer.version is None:
            raise BundleError(f"{self.path} has no base yet; publish a model with publish_base")
        return self._writer.version

    def publish(self, delta: ModelDelta) -> int:
        """Append a delta; returns its number. It is on disk when this returns."""
        state = delta.state()
        return self._writer.append(state.settings, state.arrays, state.weights)

    def publish_base(self, model: DeepRetrieval) -> BaseVersion:
        """Publish a whole model. Readers load it; a change that a delta can hold costs them less."""
        return self._writer.add_base(model.save)

    def compact(self, model: DeepRetrieval | None = None, *, wait: bool = True) -> None:
        """Write a new base of the current state, so that readers need fewer deltas, and prune old ones.

        `model` is that state; without it, the folder is read. Deltas can be published meanwhile. With `wait=False` this
        returns at once, and `close` or the next `compact` raises what went wrong.
        """
        self._finish_compaction()
        version = self.version
        if wait:
            self._compact(version, model)
            return

        def work() -> None:
            try:
                self._compact(version, model)
            except BaseException as error:
                self._failure = error
            finally:
                return_freed_memory()

        self._compacting = threading.Thread(target=work, name="pathdex-compact")
        self._compacting.start()

    def _compact(self, version: LiveVersion, model: DeepRetrieval | None) -> None:
        state = open_version(self.path, version)[0] if model is None else model
        self._writer.add_base(state.save, at=version)

    def rollback(self, version: int | None = None) -> BaseVersion:
        """Make an older base current again, by default the one before. Later deltas no longer count."""
        return self._writer.roll_back(version)

    def close(self) -> None:
        """Wait for a compaction and let another process publish."""
        try:
            self._finish_compaction()
        finally:
            self._writer.close()

    def _finish_compaction(self) -> None:
        if self._compacting is not None:
            self._compacting.join()
            self._compacting = None
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure
