"""Every estimator by the name that its bundle carries, and the one call that opens any of them."""

from __future__ import annotations

import importlib
from pathlib import Path

from pathdex.errors import BundleError, RunError
from pathdex.recommenders.base import Recommender
from pathdex.storage.array_folder import MANIFEST
from pathdex.storage.bundle import read_bundle

ESTIMATORS = {
    "brute-force": "pathdex.recommenders.brute_force:BruteForce",
    "deep-retrieval": "pathdex.recommenders.deep_retrieval:DeepRetrieval",
    "ffm-hnsw": "pathdex.recommenders.ffm_hnsw:FFMHNSW",
    "implicit-als": "pathdex.recommenders.implicit_als:ImplicitALS",
    "item-cf": "pathdex.recommenders.item_cf:ItemCF",
    "jtm": "pathdex.recommenders.jtm:JTM",
    "otm": "pathdex.recommenders.otm:OTM",
    "popularity": "pathdex.recommenders.popularity:Popularity",
    "tdm": "pathdex.recommenders.tdm:TDM",
    "youtube-dnn": "pathdex.recommenders.youtube_dnn:YouTubeDNN",
}
"""Name -> module:class, imported when it is needed."""


def load(path: str | Path) -> Recommender:
    """Open a saved model of any kind: a folder that `save` wrote, or a run folder of `pathdex train`."""
    folder = Path(path)
    if not (folder / MANIFEST).exists() and (folder / "bundle").is_dir():
        folder = folder / "bundle"
    elif (folder / "run.json").exists():
        raise RunError(f"{folder} is not finished; continue it with: pathdex train --out {folder} --resume")
    bundle = read_bundle(folder)
    if bundle.estimator not in ESTIMATORS:
        raise BundleError(
            f"{folder} holds a {bundle.estimator!r} model, which this Pathdex does not know "
            f"({', '.join(ESTIMATORS)}); upgrade pathdex"
        )
    module, name = ESTIMATORS[bundle.estimator].split(":")
    estimator: type[Recommender] = getattr(importlib.import_module(module), name)
    return estimator._from_bundle(bundle)
