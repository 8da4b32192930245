"""The model that is served now, and the watch that replaces it when a new version appears."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

from pathdex.errors import PathdexError
from pathdex.server.metrics import Metrics
from pathdex.server.model_loader import ServedModel, Signature, Source

T = TypeVar("T")

log = logging.getLogger("pathdex.server")


class Live:
    """Holds one model at a time. A new one is opened and tried in a thread of its own, then put in its place at once;
    requests that began with the old one finish with it, and then it is freed."""

    def __init__(self, source: Source, metrics: Metrics, watch: float) -> None:
        self.source, self.watch, self._metrics = source, watch, metrics
        self.current: ServedModel | None = None
        self._seen: Signature | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="model")
        self._watching: asyncio.Task[None] | None = None

    async def start(self) -> ServedModel:
        """Open the first model; an error of the library where that fails."""
        served = await self._in_thread(self.source.open)
        self._take(served)
        if self.watch > 0:
            self._watching = asyncio.create_task(self._watch())
        return served

    async def close(self) -> None:
        if self._watching is not None:
            self._watching.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._watching
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def look(self) -> bool:
        """Look once for another model, and take it over if it is good. Returns whether one was taken over."""
        signature = await self._in_thread(self.source.signature)
        # While a folder is being replaced there may be nothing for a moment.
        if signature is None or signature == self._seen:
            return False
        self._seen, old = signature, self.current
        try:
            if old is not None and await self._in_thread(partial(self.source.same, old)):
                return False
            served = await self._in_thread(self.source.open)
        except (PathdexError, OSError) as error:
            self._refuse(error)
            return False
        except Exception as error:
            # Whatever a broken model raises, the one that works stays.
            log.exception("opening %s failed", self.source.model)
            self._refuse(error)
            return False
        self._take(served)
        self._metrics.add("pathdex_model_swaps_total")
        log.info("serving model %s in the place of %s", served.version, old and old.version)
        return True

    def _take(self, served: ServedModel) -> None:
        self.current, self._seen = served, served.signature
        self._metrics.serve(served.version, len(served.recommender.items), served.loaded)

    def _refuse(self, error: Exception) -> None:
        self._metrics.add("pathdex_model_refusals_total")
        kept = self.current.version if self.current else "none"
        log.warning("refused a new model in %s: %s; model %s stays", self.source.model, error, kept)

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(self.watch)
            try:
                await self.look()
            except Exception:
                log.exception("looking at %s failed", self.source.model)

    async def _in_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)
