"""Compile ahead of time what a server needs at start."""

from __future__ import annotations

import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pathdex.config import Config
from pathdex.data.interactions import Interactions
from pathdex.data.ragged import Ragged
from pathdex.data.vocabulary import Vocabulary
from pathdex.server.model_loader import ModelLoader


@dataclass(frozen=True)
class WarmupReport:
    """What a warm-up took and where it stored the compiled code."""

    seconds: float
    query_seconds: float
    """Duration of a query afterwards."""
    caches: tuple[Path, ...]
    """The folders that hold compiled code."""


def warm_up(model: Path | None = None) -> WarmupReport:
    """Compile everything that serving a model needs; without a model, for the default configuration."""
    started = time.perf_counter()
    if model is not None:
        served = ModelLoader(model).load()
    else:
        with tempfile.TemporaryDirectory(prefix="pathdex-") as folder:
            served = ModelLoader(_small_model(Path(folder) / "bundle")).load()
    return WarmupReport(time.perf_counter() - started, served.query_seconds, caches())


def caches() -> tuple[Path, ...]:
    """The cache folders of the compiled functions in use."""
    from numba.core.dispatcher import Dispatcher

    modules = [module for name, module in sorted(sys.modules.items()) if name.startswith("pathdex.")]
    functions = [one for module in modules for one in vars(module).values() if isinstance(one, Dispatcher)]
    return tuple(sorted({Path(one.stats.cache_path) for one in functions if one.stats.cache_path}))


def _small_model(folder: Path) -> Path:
    """A saved, untrained model of the default configuration."""
    from pathdex.recommenders.deep_retrieval import DeepRetrieval

    items = 64
    rows = Ragged.from_rows([np.arange(items), np.arange(items)])
    data = Interactions(rows, Vocabulary(np.arange(2)), Vocabulary(np.arange(items)))
    untrained = Config(num_nodes=8, epochs=0, rounds=0, final_epochs=0, start="random")
    return DeepRetrieval(untrained, threads=1).fit(data, callbacks=()).save(folder)
