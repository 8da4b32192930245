"""A synthetic data set of the size of Amazon Books: generate, read, split, train, evaluate.

    python -m benchmarks scale

Trains one encoder epoch, one EM round with its M-step and one epoch on the final paths, then evaluates Deep Retrieval,
brute force and popularity. Each stage reports its time and the peak memory so far.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pathdex
from benchmarks.machine import describe_machine, peak_memory
from pathdex.cli.progress import TrainingLog
from pathdex.data.synthetic import generate
from pathdex.evaluation.protocol import Method, evaluate

BOOKS = {"users": 294_739, "items": 1_477_922, "interactions": 8_654_619}


class Stages:
    """Times the stages of a run and prints each as it ends."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        started = time.monotonic()
        yield
        self.seconds[name] = time.monotonic() - started
        print(f"{name:<28} {self.seconds[name]:8.1f} s   peak {peak_memory():5.2f} GB", flush=True)


def run(share: float, test_users: int, out: Path | None) -> dict[str, Any]:
    size = {name: max(1, round(value * share)) for name, value in BOOKS.items()}
    print("a synthetic set of " + ", ".join(f"{value:,} {name}" for name, value in size.items()), flush=True)
    stages = Stages()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "books.parquet"
        with stages.stage("generate"):
            generate(file, **size, seed=0)
        with stages.stage("read"):
            data = pathdex.read(file)
        with stages.stage("split"):
            split = pathdex.split_users(data, valid_users=test_users, test_users=test_users, seed=0)
    config: dict[str, Any] = {
        "num_nodes": 100,
        "batch_size": 4096,
        "epochs": 1,
        "rounds": 1,
        "final_epochs": 1,
        "candidate_paths": 50,
        "score_beam": 20,
        "score_samples": 8,
    }
    model = pathdex.DeepRetrieval(**config)
    with stages.stage("train, one epoch of each"):
        model.fit(split.train, callbacks=[TrainingLog()])
    counts = split.train.item_counts()
    evaluated = {}
    for method in (
        Method("deep-retrieval", model, {"candidates": 2000}),
        Method("brute-force", pathdex.BruteForce(model)),
        Method("popularity", pathdex.Popularity().fit(split.train)),
    ):
        with stages.stage(f"evaluate {method.name}"):
            row = evaluate([method], split.test, n=200, item_counts=counts).to_dict()["results"][0]
        evaluated[method.name] = row
        print(f"  recall@200 {100 * row['recall']:.2f}%, {row['candidates']:,.0f} candidates")
    report = {
        "machine": describe_machine(),
        "size": size,
        "config": config,
        "seconds": stages.seconds,
        "peak_memory_gb": peak_memory(),
        "records": model.records,
        "results": evaluated,
    }
    if out is not None:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(json.dumps(report, indent=1) + "\n")
    return report


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="benchmarks scale", description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--share", type=float, default=1.0, help="share of the size of Amazon Books")
    parser.add_argument("--test-users", type=int, default=5000)
    parser.add_argument("--out", type=Path, help="write the figures as JSON")
    given = parser.parse_args(arguments)
    run(given.share, given.test_users, given.out)
