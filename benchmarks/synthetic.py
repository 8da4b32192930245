"""Untrained models of any size: random vectors, a random network, items at random on paths of equal size.

The cost of a query depends on the sizes, not on what was learned, with one exception: a beam skips work if the path
probabilities are peaked. An untrained network spreads them evenly, which is the slowest case.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

import pathdex
from pathdex.config import Config
from pathdex.data.ragged import Ragged
from pathdex.data.vocabulary import Vocabulary
from pathdex.index.postings import Postings
from pathdex.model.network import ITEM_ROWS, Network
from pathdex.recommenders.capabilities import require
from pathdex.recommenders.deep_retrieval import DeepRetrieval
from pathdex.recommenders.model_state import ModelState
from pathdex.storage.bundle import Bundle, write_bundle

ROW_BLOCK = 1 << 18
Codes = NDArray[np.int64]


def save_synthetic(
    folder: Path, items: int, *, path_size: float, sharpness: float = 1.0, seed: int = 0, **parameters: Any
) -> Path:
    """Write the bundle of a model whose paths hold `path_size` items on average; its item ids are 0, 1, ...

    `sharpness` multiplies the logits of the structure model: above 1, p(c | x) is peaked as after training.
    """
    config = Config(**parameters)
    assert config.num_nodes is not None
    generator = np.random.default_rng(seed)
    torch.manual_seed(seed)
    weights = dict(Network(config, 1, config).export())
    del weights[ITEM_ROWS]
    for name in weights:
        if name.startswith("structure.outputs."):
            weights[name] = weights[name] * np.float32(sharpness)
    counts = generator.integers(1, 100, items)
    paths = random_paths(generator, items, config, path_size)
    postings = Postings.from_paths(paths, config.num_nodes, config.depth)
    rows = np.empty((items, config.embedding_dim + 1), np.float32)
    for first in range(0, items, ROW_BLOCK):
        block = rows[first : first + ROW_BLOCK]
        generator.standard_normal(out=block, dtype=np.float32)
        block *= np.float32(config.embedding_dim**-0.5)
    state = ModelState(config, weights, rows, paths, counts, postings, postings.log_shares(counts), []).state()
    vocabulary = {f"items.{name}": array for name, array in Vocabulary(np.arange(items)).arrays().items()}
    bundle = Bundle(DeepRetrieval.name, state.settings, {**state.arrays, **vocabulary}, state.weights)
    return write_bundle(folder, bundle, overwrite=True)


def open_model(folder: Path, *, threads: int = 1) -> DeepRetrieval:
    """The saved model as a server opens it: mapped from disk and warmed up."""
    model = require(pathdex.load(folder), DeepRetrieval)
    model.set_threads(threads)
    return model.warmup()


def random_paths(generator: np.random.Generator, items: int, config: Config, path_size: float) -> Codes:
    """J distinct random paths per item, out of as many paths as give `path_size` items per path on average."""
    assert config.num_nodes is not None
    capacity, each = config.num_nodes**config.depth, config.paths_per_item
    wanted = max(each, round(items * each / path_size))
    if wanted > capacity:
        raise SystemExit(f"{items:,} items at {path_size:g} a path need {wanted:,} paths; K^D is {capacity:,}: raise K")
    used = np.sort(generator.choice(capacity, wanted, replace=False))
    paths: Codes = used[generator.integers(0, wanted, (items, each))]
    while True:
        ordered = np.sort(paths, axis=1)
        repeated = np.flatnonzero((ordered[:, 1:] == ordered[:, :-1]).any(axis=1))
        if not len(repeated):
            return paths
        paths[repeated] = used[generator.integers(0, wanted, (len(repeated), each))]


def random_histories(items: int, count: int, length: int, seed: int = 1) -> list[Ragged]:
    """Histories of distinct items, each as a batch of one query."""
    generator = np.random.default_rng(seed)
    return [Ragged.from_rows([generator.choice(items, length, replace=False)]) for _ in range(count)]
