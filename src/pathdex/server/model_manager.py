"""The current model, and the watcher that replaces it when a new version appears."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time

from pathdex.errors import PathdexError
from pathdex.server.metrics import ServerMetrics
from pathdex.server.model_loader import ModelLoader, ServedModel, Signature

log = logging.getLogger("pathdex.server")


class ModelManager:
    """Holds the current model. New versions are loaded and tested in a background thread, then swapped in atomically.

    Requests in flight keep the old model; it is freed when the last of them ends.
    """

    def __init__(self, loader: ModelLoader, metrics: ServerMetrics, watch: float) -> None:
        self.loader, self.watch, self._metrics = loader, watch, metrics
        self.current: ServedModel | None = None
        self._seen: Signature | None = None
        self._watcher: asyncio.Task[None] | None = None

    async def start(self) -> ServedModel:
        """Load the first model and start watching; raises the error of a model that cannot be loaded."""
        served = await asyncio.to_thread(self.loader.load)
        self._swap(served)
        if self.watch > 0:
            self._watcher = asyncio.create_task(self._watch())
        return served

    async def close(self) -> None:
        if self._watcher is not None:
            self._watcher.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._watcher

    async def check_for_update(self) -> bool:
        """Load a new version if there is one and it is valid; returns whether the model was replaced."""
        signature = await asyncio.to_thread(self.loader.signature)
        # While a folder is being replaced there may be none for a moment.
        if signature is None or signature == self._seen:
            return False
        self._seen, old = signature, self.current
        try:
            if old is not None and await asyncio.to_thread(self.loader.is_current, old):
                return False
            followed = None if old is None else await self._follow(old)
            if followed is not None:
                return followed
            served = await asyncio.to_thread(self.loader.load)
        except Exception as error:
            # Whatever a broken model raises, the current one keeps serving.
            self._metrics.add("pathdex_model_reload_failures_total")
            expected = isinstance(error, PathdexError | OSError)
            message = "rejected the new model in %s: %s; still serving model %s"
            log.warning(message, self.loader.model, error, old and old.version, exc_info=not expected)
            return False
        self._swap(served)
        self._metrics.add("pathdex_model_reloads_total")
        log.info("replaced model %s with %s", old and old.version, served.version)
        return True

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
        self.current, self._seen = served, served.signature
        self._metrics.set_model(served.version, served.recommender.items.num_ids, served.loaded)

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(self.watch)
            try:
                await self.check_for_update()
            except Exception:
                log.exception("checking %s for a new model failed", self.loader.model)
