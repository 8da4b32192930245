"""The current model, and the watcher that replaces it when a new version appears."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable

from pathdex.errors import BundleError, PathdexError
from pathdex.server.kept_shards import KeptShards
from pathdex.server.last_good import LastGood
from pathdex.server.metrics import ServerMetrics
from pathdex.server.model_loader import ATTEMPTS, ModelLoader, ServedModel, Signature
from pathdex.server.trial import stop_trials, try_model

log = logging.getLogger("pathdex.server")

LIVE_WATCH_SECONDS = 0.1
"""Seconds between two looks at a live folder, unless models are watched more often: a look costs one `stat`."""

MISSING_SECONDS = 1.0
"""A model that is missing for so long has disappeared, and is not being replaced."""


class ModelManager:
    """Holds the current model. New versions are tried in another process, loaded in a background thread, and swapped in
    atomically.

    Requests in flight keep the old model; it is freed when the last of them ends.
    """

    def __init__(
        self,
        loader: ModelLoader,
        metrics: ServerMetrics,
        watch: float,
        *,
        last_good: LastGood | None = None,
        on_swap: Callable[[str], object] = lambda _: None,
    ) -> None:
        """`last_good` serves if the path holds a bad model at the start; `on_swap` gets each later version."""
        self.loader, self.watch, self._metrics = loader, watch, metrics
        self._last_good, self._on_swap = last_good, on_swap
        self.current: ServedModel | None = None
        self._seen: Signature | None = None
        self._missing_since: float | None = None
        self._is_missing = False
        self._tasks: list[asyncio.Task[None]] = []
        self.kept = KeptShards()

    async def start(self) -> ServedModel:
        """Load the first model and start watching; raises the error of a model that cannot be loaded.

        With a last good version, the model at the path is tried first, and if it is bad, the last good one serves.
        """
        served = await asyncio.to_thread(self._first)
        self._show(served)
        self._tasks.append(asyncio.create_task(self._verify()))
        if self.watch > 0:
            self._tasks.append(asyncio.create_task(self._watch()))
        return served

    def _first(self) -> ServedModel:
        kept = self._last_good
        if kept is None:
            return self.loader.load()
        try:
            return self._load_tried()
        except Exception as error:
            self._refuse(error, kept.version)
            return self.loader.load_handles(kept.path, kept.files, kept.position)
        finally:
            kept.close()

    def _load_tried(self) -> ServedModel:
        """Load the version that a process of its own has tried."""
        for _ in range(ATTEMPTS):
            version = try_model(self.loader)
            served = self.loader.load()
            if served.version == version or served.reader is not None:
                return served
        raise BundleError(
            f"{self.loader.model} was replaced {ATTEMPTS} times while it was tried; replace it less often"
        )

    async def _verify(self) -> None:
        """Check the checksums of a large model, which serves meanwhile."""
        try:
            await asyncio.to_thread(self.loader.verify)
        except (PathdexError, OSError) as error:
            self._metrics.add("pathdex_model_verification_failures_total")
            log.error("the model that is served is damaged: %s", error)

    async def close(self) -> None:
        stop_trials()
        for task in self._tasks:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    async def check_for_update(self) -> bool:
        """Load a new version if there is one and it is valid; returns whether the model was replaced."""
        signature = await asyncio.to_thread(self.loader.signature)
        self._note_missing(signature is None)
        if signature is None or signature == self._seen:
            return False
        self._seen, old = signature, self.current
        try:
            if old is not None and await asyncio.to_thread(self.loader.is_current, old):
                return False
            followed = None if old is None else await self._follow(old)
            if followed is not None:
                return followed
            served = await asyncio.to_thread(self._load_tried)
        except Exception as error:
            # Whatever a broken model raises, the current one keeps serving.
            self._refuse(error, None if old is None else old.version)
            return False
        self._swap(served)
        self._metrics.add("pathdex_model_reloads_total")
        log.info("replaced model %s with %s", old and old.version, served.version)
        return True

    def _note_missing(self, missing: bool) -> None:
        """Log once that the model has disappeared, and once that it is back.

        While a folder is being replaced there may be none for a moment.
        """
        now = time.monotonic()
        if missing:
            self._missing_since = now if self._missing_since is None else self._missing_since
            if not self._is_missing and now - self._missing_since >= MISSING_SECONDS:
                self._is_missing = True
                serving = None if self.current is None else self.current.version
                log.warning("%s has disappeared; still serving model %s", self.loader.missing_path(), serving)
            return
        if self._is_missing:
            log.warning("%s is back", self.loader.model)
        self._missing_since, self._is_missing = None, False

    def _refuse(self, error: Exception, version: str | None) -> None:
        self._metrics.add("pathdex_model_reload_failures_total")
        expected = isinstance(error, PathdexError | OSError)
        message = "rejected the new model in %s: %s; still serving model %s"
        log.warning(message, self.loader.model, error, version, exc_info=not expected)

    async def _follow(self, old: ServedModel) -> bool | None:
        """Apply the new deltas of a live folder; returns whether there were any, or None if a load is needed."""
        started = time.perf_counter()
        updated = await asyncio.to_thread(self.loader.update, old)
        if updated is None:
            return None
        served, count = updated
        if not count:
            self._seen = None  # A delta cannot be read; the next check tries it again.
            return False
        self._swap(served)
        self._metrics.add("pathdex_model_deltas_total", count)
        self._metrics.set_delta((time.perf_counter() - started) / count)
        log.debug("applied %d deltas: model %s", count, served.version)
        return True

    def _swap(self, served: ServedModel) -> None:
        if self.current is not None:
            self.kept.keep(self.current)
        self._show(served)
        self._on_swap(served.version)

    def _show(self, served: ServedModel) -> None:
        self.current, self._seen = served, served.signature
        self._metrics.set_model(served.version, served.recommender.items.num_ids, served.loaded)

    async def _watch(self) -> None:
        while True:
            follows = self.current is not None and self.current.reader is not None
            await asyncio.sleep(min(self.watch, LIVE_WATCH_SECONDS) if follows else self.watch)
            self.kept.forget()
            try:
                await self.check_for_update()
            except Exception:
                log.exception("checking %s for a new model failed", self.loader.model)
