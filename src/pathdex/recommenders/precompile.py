"""Compile what training and queries need ahead of time, the queries in another process: numba uses only one core.

Run as a program, this module compiles the queries and exits; the code is then in numba's cache on disk.
"""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np

from pathdex.config import Config
from pathdex.data.demo_catalogue import demo_catalogue
from pathdex.data.interactions import Interactions
from pathdex.data.ragged import Ragged
from pathdex.data.vocabulary import Vocabulary
from pathdex.kernels.query import answer_queries
from pathdex.recommenders.deep_retrieval import DeepRetrieval

SHOP_ITEMS, SHOP_USERS, SHOP_LENGTH = 200, 600, 10
"""Enough users to hold some out."""


def small_model() -> DeepRetrieval:
    """An untrained model of the default configuration. All such models run the same compiled code."""
    items = 64
    rows = Ragged.from_rows([np.arange(items), np.arange(items)])
    data = Interactions(rows, Vocabulary(np.arange(2)), Vocabulary(np.arange(items)))
    untrained = Config(num_nodes=8, epochs=0, rounds=0, final_epochs=0, start="random")
    return DeepRetrieval(untrained, threads=1).fit(data, callbacks=())


def compile_training() -> None:
    """Train on a few rows as any training does: with either softmax, choices on held-out users, and all baselines."""
    shop = demo_catalogue(items=SHOP_ITEMS, users=SHOP_USERS, mean_length=SHOP_LENGTH)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # A training this short is bad.
        for softmax in ("full", "sampled"):
            config = Config(num_nodes=8, epochs=1, rounds=1, final_epochs=0, softmax=softmax)
            DeepRetrieval(config, threads=1).fit(shop.data, callbacks=())


def is_compiled() -> bool:
    """Whether the cache holds the query code, of whichever version."""
    folder = answer_queries.stats.cache_path
    return folder is not None and any(Path(folder).glob("query.answer_queries-*.nbi"))


class QueryCompiler:
    """A process that compiles the query code, unless it is in the cache or there is only one core."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        quiet = subprocess.DEVNULL
        if (os.cpu_count() or 1) > 1 and not is_compiled():
            self._process = subprocess.Popen([sys.executable, "-m", __name__], stdout=quiet, stderr=quiet)

    def wait(self) -> None:
        """Return when the code is compiled. If that failed, the first query compiles it and shows why."""
        if self._process is not None:
            self._process.wait()


def main() -> None:
    model = small_model()
    model.recommend([0], 1)
    model.explain([0], 1)


if __name__ == "__main__":
    main()
