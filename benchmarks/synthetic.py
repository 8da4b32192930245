"""A model of any size without training: random vectors, a random network, items strewn over paths of one size.

What a query costs depends on sizes and not on what was learned, with one exception: a beam skips work where the path
probabilities are peaked. An untrained network spreads them evenly, which is the slowest case.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

import pathdex
from pathdex.config import Config, RunOptions
from pathdex.data.ragged import Ragged
from pathdex.data.vocabulary import Vocabulary
from pathdex.index.postings import Postings
from pathdex.model.network import ITEM_ROWS, Network
from pathdex.recommenders.deep_retrieval import DeepRetrieval
from pathdex.recommenders.model_state import ModelState

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
    paths = strewn_paths(generator, items, config, path_size)
    postings = Postings.from_paths(paths, config.num_nodes, config.depth)
    rows = np.empty((items, config.embedding_dim + 1), np.float32)
    for first in range(0, items, ROW_BLOCK):
        block = rows[first : first + ROW_BLOCK]
        generator.standard_normal(out=block, dtype=np.float32)
        block *= np.float32(config.embedding_dim**-0.5)
    model = DeepRetrieval(config)
    model._items = Vocabulary(np.arange(items))
    model._adopt(ModelState(config, weights, rows, paths, counts, postings, postings.log_shares(counts), []))
    return model.save(folder, overwrite=True)


def open_model(folder: Path, *, threads: int = 1) -> DeepRetrieval:
    """The saved model as production opens it, mapped from disk, with its code compiled."""
    model = pathdex.load(folder)
    assert isinstance(model, DeepRetrieval)
    model.options = RunOptions(threads=threads)
    return model.warmup()


def strewn_paths(generator: np.random.Generator, items: int, config: Config, path_size: float) -> Codes:
    """J distinct paths for every item, at random among as many as make them hold `path_size` items on average."""
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
