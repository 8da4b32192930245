"""The explorer of each model that is served, and of the model to compare with."""

from __future__ import annotations

import logging
import threading
from pathlib import Path
from weakref import WeakKeyDictionary

from pathdex.errors import PathdexError
from pathdex.explorer.explorer import Explorer
from pathdex.recommenders.base import Recommender
from pathdex.recommenders.capabilities import HasIndex, require
from pathdex.server.model_loader import ModelLoader, ServedModel
from pathdex.storage.run_folder import RECORDING
from pathdex.training.recording import NO_RECORDING, Recording

log = logging.getLogger("pathdex.server")


class Explorers:
    """Makes explorers when they are first asked for; each is freed with its model. Thread-safe."""

    def __init__(self, folder: Path | None = None, compare: Path | None = None) -> None:
        """`folder` is where the served model is from; `compare` holds a second model."""
        self._folder, self._compare = folder, compare
        self._lock = threading.Lock()
        self._by_model: WeakKeyDictionary[Recommender, Explorer] = WeakKeyDictionary()
        self._other: Explorer | None = None

    def of(self, served: ServedModel) -> Explorer:
        """The explorer of a model, brought to its version."""
        model = served.recommender
        with self._lock:
            found = self._by_model.get(model)
            if found is None:
                require(model, HasIndex)
                if self._other is None and self._compare is not None:
                    self._other = open_explorer(self._compare)
                recording = NO_RECORDING if self._folder is None else read_recording(self._folder, model)
                found = Explorer(model, served.version, recording=recording, other=self._other, folder=self._folder)
                self._by_model[model] = found
                threading.Thread(target=_prepare, args=(found,), name="explorer", daemon=True).start()
        return found.at(served.version)


def _prepare(explorer: Explorer) -> None:
    try:
        explorer.prepare()
    except Exception:  # The request that needs it reports it.
        log.exception("preparing the explorer failed")


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
