"""The trained models whose vectors are searched. Each is trained once and cached, with its training time."""

from __future__ import annotations

import hashlib
import json
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pathdex
from benchmarks.report import CACHE, Report
from benchmarks.scale import BOOKS
from benchmarks.sets import SETS
from benchmarks.synthetic import open_model
from pathdex.cli.progress import TrainingLog
from pathdex.data.splits import Queries, Split
from pathdex.recommenders.deep_retrieval import DeepRetrieval

SYNTHETIC = "synthetic"
NAMES = ("ml-1m", "nowplaying", "amazon-beauty", SYNTHETIC)
SEED = 0
REDUCED: dict[str, Any] = {
    "num_nodes": 100,
    "batch_size": 4096,
    "epochs": 2,
    "rounds": 1,
    "structure_epochs": 1,
    "final_epochs": 1,
    "candidate_paths": 50,
    "score_beam": 20,
    "score_samples": 8,
}
"""For a million items: little training, since the search is measured."""
QUICK: dict[str, Any] = {**REDUCED, "num_nodes": 20, "epochs": 1, "batch_size": 1024}
"""For `--quick`."""


@dataclass(frozen=True, eq=False)
class Trained:
    """A model, its test users, and its training log."""

    model: DeepRetrieval
    queries: Queries
    n: int
    training: dict[str, Any]

    @property
    def structure_seconds(self) -> float:
        """Training time without the encoder epochs: the cost of the path index beyond the vectors."""
        encoder = sum(record["seconds"] for record in self.training["records"] if record["phase"] == "encoder")
        return float(self.training["seconds"] - encoder)


def trained(name: str, report: Report, *, items: int, test_users: int, quick: bool, retrain: bool) -> Trained:
    """The model of a data set, from the cache or trained now. `items` and `test_users` size the synthetic set, which
    has as many validation users as test users."""
    if name == SYNTHETIC:
        parameters, n = (QUICK, 50) if quick else (REDUCED, 200)
        split = _synthetic_split(items, test_users)
        place = f"{name}-{items}-{test_users}"
    else:
        parameters, n, split, place = QUICK if quick else {}, SETS[name].n, SETS[name].split(SEED), name
    report.say(f"{name}: {split.train}, {len(split.test):,} test users")
    folder = CACHE / f"{place}-{_digest(parameters)}"
    if retrain or not (folder / "training.json").exists():
        _train(folder, split, parameters, report)
    training = json.loads((folder / "training.json").read_text())
    return Trained(open_model(folder / "bundle"), split.test, n, training)


def _train(folder: Path, split: Split, parameters: dict[str, Any], report: Report) -> None:
    report.say(f"training {folder.name}; cached in {folder}")
    started = time.monotonic()
    model = pathdex.DeepRetrieval(seed=SEED, **parameters).fit(
        split.train, validation=split.valid, callbacks=[TrainingLog()]
    )
    seconds = time.monotonic() - started
    folder.mkdir(parents=True, exist_ok=True)
    model.save(folder / "bundle", overwrite=True)
    facts = {"seconds": seconds, "parameters": parameters, "seed": SEED, "records": model.records}
    (folder / "training.json").write_text(json.dumps(facts, indent=1) + "\n")


def _synthetic_split(items: int, test_users: int) -> Split:
    """Planted interactions in the proportions of Amazon Books, generated from a fixed seed."""
    size = {name: max(1, round(value * items / BOOKS["items"])) for name, value in BOOKS.items()}
    with tempfile.TemporaryDirectory(prefix="pathdex-bench-") as folder:
        file = pathdex.generate(Path(folder) / "planted.parquet", **{**size, "items": items}, seed=SEED)
        data = pathdex.read(file)
    return pathdex.split_users(data, valid_users=test_users, test_users=test_users, seed=SEED)


def _digest(parameters: dict[str, Any]) -> str:
    """A digest of all hyper-parameters, so that a changed default trains again."""
    written = json.dumps(pathdex.Config(**parameters).to_dict(), sort_keys=True)
    return hashlib.sha256(written.encode()).hexdigest()[:8]
