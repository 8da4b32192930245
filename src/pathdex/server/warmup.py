"""Compile ahead of time what a server needs at start, or all that a new installation needs."""

from __future__ import annotations

import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from pathdex.recommenders.precompile import QueryCompiler, compile_training, small_model
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
    """Compile what serving a model needs; without a model, what training and serving need by default."""
    started = time.perf_counter()
    if model is not None:
        served = ModelLoader(model).load()
    else:
        compiler = QueryCompiler()
        compile_training()
        compiler.wait()
        with tempfile.TemporaryDirectory(prefix="pathdex-") as folder:
            served = ModelLoader(small_model().save(Path(folder) / "bundle")).load()
    return WarmupReport(time.perf_counter() - started, served.query_seconds, caches())


def caches() -> tuple[Path, ...]:
    """The cache folders of the compiled functions in use."""
    from numba.core.dispatcher import Dispatcher

    modules = [module for name, module in sorted(sys.modules.items()) if name.startswith("pathdex.")]
    functions = [one for module in modules for one in vars(module).values() if isinstance(one, Dispatcher)]
    return tuple(sorted({Path(one.stats.cache_path) for one in functions if one.stats.cache_path}))
