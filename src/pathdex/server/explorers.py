"""The explorer of each model that is served, and of the model to compare with."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from pathlib import Path

from pathdex.errors import PathdexError
from pathdex.explorer.explorer import Explorer
from pathdex.explorer.prepare import prepare
from pathdex.recommenders.base import Recommender
from pathdex.recommenders.capabilities import HasIndex, require
from pathdex.server.model_loader import ModelLoader, ServedModel
from pathdex.storage.run_folder import RECORDING
from pathdex.training.recording import NO_RECORDING, Recording

log = logging.getLogger("pathdex.server")

RENEW_SECONDS, RENEW_FACTOR = 2.0, 20.0
"""The sums of a live model are renewed after this many seconds, and this many times what they took the last time."""


class Explorers:
    """Makes the explorer of the served model when it is first asked for, and prepares it in the background.

    Of a live model, the next version is prepared while the one before answers, so nobody waits for sums. Thread-safe.
    """

    def __init__(self, folder: Path | None = None, compare: Path | None = None) -> None:
        """`folder` is where the served model is from; `compare` holds a second model."""
        self._folder, self._compare = folder, compare
        self._lock = threading.Lock()
        self._current: Explorer | None = None
        self._loaded = 0.0
        """When the newest model was loaded that was asked about or swapped in."""
        self._renewing, self._ready, self._took = False, 0.0, 0.0
        self._other: Explorer | None = None

    def of(self, served: ServedModel) -> Explorer:
        """The explorer of a model; of a live one, that of a version which may be some seconds old."""
        with self._lock:
            current = self._current
            if current is not None and current.model is served.recommender:
                self._loaded = max(self._loaded, served.loaded)
                if served.version != current.version and self._may_renew():
                    self._renewing = True
                    self._start(self._renew, self._make(served))
                return current
            found = self._make(served)
            if served.loaded >= self._loaded:
                self._current, self._loaded = found, served.loaded
                self._start(self._prepare, found)
            return found

    def on_swap(self, served: ServedModel) -> None:
        """Free the explorer of a model that is no longer served."""
        with self._lock:
            self._loaded = max(self._loaded, served.loaded)
            if self._current is not None and self._current.model is not served.recommender:
                self._current = None

    def _make(self, served: ServedModel) -> Explorer:
        model = served.recommender
        require(model, HasIndex)
        if self._other is None and self._compare is not None:
            self._other = open_explorer(self._compare)
        recording = NO_RECORDING if self._folder is None else read_recording(self._folder, model)
        return Explorer(model, served.version, recording=recording, other=self._other, folder=self._folder)

    def _may_renew(self) -> bool:
        pause = max(RENEW_SECONDS, RENEW_FACTOR * self._took)
        return not self._renewing and time.monotonic() - self._ready > pause

    def _start(self, work: Callable[[Explorer], None], explorer: Explorer) -> None:
        threading.Thread(target=work, args=(explorer,), name="explorer", daemon=True).start()

    def _prepare(self, explorer: Explorer) -> None:
        began = time.monotonic()
        try:
            prepare(explorer)
        except Exception:  # The request that needs it reports it.
            log.exception("preparing the explorer failed")
        with self._lock:
            self._ready = time.monotonic()
            self._took = self._ready - began

    def _renew(self, explorer: Explorer) -> None:
        self._prepare(explorer)
        with self._lock:
            self._renewing = False
            if self._current is not None and self._current.model is explorer.model:
                self._current = explorer


def open_explorer(path: Path, compare: Path | None = None) -> Explorer:
    """The explorer of a model in a run folder, a bundle or a live folder, with another to compare with."""
    other = None if compare is None else open_explorer(compare)
    served = ModelLoader(path).load()
    recording = read_recording(path, served.recommender)
    return Explorer(served.recommender, served.version, recording=recording, other=other, folder=path)


def read_recording(folder: Path, model: Recommender) -> Recording:
    """What the training of a model recorded in its run folder; nothing if it did not, or recorded another model."""
    place = folder / RECORDING
    indexed = require(model, HasIndex)
    if not place.is_dir():
        return NO_RECORDING
    try:
        found = Recording.load(place)
    except PathdexError as error:
        log.warning("%s", error)
        return NO_RECORDING
    if not found.fits(indexed.paths, indexed.num_nodes, indexed.health().depth):
        log.warning("%s is of another model", place)
        return NO_RECORDING
    return found
