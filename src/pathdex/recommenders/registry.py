"""All estimators by name, and loading of bundles."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pathdex.errors import BundleError, ConfigError, Problem, did_you_mean
from pathdex.recommenders.base import Recommender
from pathdex.storage.bundle import Bundle, read_bundle
from pathdex.storage.live_folder import is_live_folder
from pathdex.storage.run_folder import find_bundle

ESTIMATORS = {
    "popularity": "pathdex.recommenders.popularity:Popularity",
    "item-cf": "pathdex.recommenders.item_cf:ItemCF",
    "implicit-als": "pathdex.recommenders.implicit_als:ImplicitALS",
    "youtube-dnn": "pathdex.recommenders.youtube_dnn:YouTubeDNN",
    "ffm-hnsw": "pathdex.recommenders.ffm_hnsw:FFMHNSW",
    "tdm": "pathdex.recommenders.tdm:TDM",
    "jtm": "pathdex.recommenders.jtm:JTM",
    "otm": "pathdex.recommenders.otm:OTM",
    "deep-retrieval": "pathdex.recommenders.deep_retrieval:DeepRetrieval",
    "brute-force": "pathdex.recommenders.brute_force:BruteForce",
}
"""Name -> module:class, in the order of tables. Modules are imported on first use."""

SHARDS = {"deep-retrieval-shard": "pathdex.recommenders.shard:DeepRetrievalShard"}
"""What `pathdex shard` makes of a model: nothing to train or compare."""


def is_known(name: str) -> bool:
    """Whether bundles of this estimator can be opened."""
    return name in ESTIMATORS or name in SHARDS


def estimator_class(name: str) -> type[Recommender]:
    """The class of that name."""
    if not is_known(name):
        rule = f"must be one of {', '.join(ESTIMATORS)}{did_you_mean(name, ESTIMATORS)}"
        raise ConfigError([Problem(rule, "estimator", name)])
    module, kind = {**ESTIMATORS, **SHARDS}[name].split(":")
    found: type[Recommender] = getattr(importlib.import_module(module), kind)
    return found


def make_estimator(
    name: str,
    params: Mapping[str, Any] | None = None,
    *,
    seed: int = 0,
    device: str = "cpu",
    threads: int | None = None,
) -> Recommender:
    """An unfitted estimator of that name."""
    return estimator_class(name).from_params(params, seed=seed, device=device, threads=threads)


def load(path: str | Path) -> Recommender:
    """Open any saved model: a folder written by `save`, a run folder of `pathdex train`, or a live folder."""
    if is_live_folder(Path(path)):
        from pathdex.recommenders.live_reader import load_live

        return load_live(path)
    folder = find_bundle(path)
    return from_bundle(read_bundle(folder), str(folder))


def from_bundle(bundle: Bundle, source: str = "the bundle") -> Recommender:
    """The estimator in a bundle."""
    if not is_known(bundle.estimator):
        raise BundleError(
            f"{source} holds a {bundle.estimator!r} model, which this Pathdex does not know "
            f"({', '.join(ESTIMATORS)}); upgrade pathdex"
        )
    return estimator_class(bundle.estimator).from_bundle(bundle)
