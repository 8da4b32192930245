"""What the benchmarks that train models share: options, a warm-up, the training itself, and means over seeds."""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import pathdex
from pathdex.data.splits import Split
from pathdex.errors import AccuracyWarning, IndexHealthWarning
from pathdex.recommenders.deep_retrieval import DeepRetrieval
from pathdex.training.callbacks import Callback


def run_options(
    name: str, description: str | None, sets: list[str], *, seeds: str = "0,1,2", one_split: bool = True
) -> argparse.ArgumentParser:
    """A parser with the options of all benchmarks that train models; `--on` only if they evaluate `one_split`."""
    parser = argparse.ArgumentParser(prog=f"benchmarks {name}", description=(description or "").splitlines()[0])
    parser.add_argument("--sets", default=",".join(sets), help="comma-separated: " + ", ".join(sets))
    parser.add_argument("--seeds", default=seeds, help="comma-separated")
    if one_split:
        parser.add_argument("--on", choices=["test", "valid"], default="test", help="held-out users")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="change a hyper-parameter")
    parser.add_argument("--out", type=Path, help="write the figures as JSON")
    return parser


def parsed_seeds(given: argparse.Namespace) -> list[int]:
    return [int(seed) for seed in given.seeds.split(",")]


def parsed_parameters(given: argparse.Namespace) -> dict[str, Any]:
    """The hyper-parameters of `--set`; values are JSON."""
    return {key: json.loads(value) for key, value in (one.split("=", 1) for one in given.set)}


def compile_kernels() -> None:
    """Train on a few rows first, so that the times do not include compilation."""
    users, steps = np.repeat(np.arange(40), 5), np.tile(np.arange(5), 40)
    data = pathdex.read(pl.DataFrame({"user": users, "item": (users + steps) % 7, "time": steps}))
    split = pathdex.split_users(data, valid_users=10, test_users=10, seed=0)
    with warnings.catch_warnings():
        # An index of seven items is never healthy, nor accurate.
        warnings.simplefilter("ignore", IndexHealthWarning)
        warnings.simplefilter("ignore", AccuracyWarning)
        # Validation users make the training answer queries.
        pathdex.DeepRetrieval(epochs=1, rounds=1, final_epochs=0).fit(split.train, validation=split.valid)


def fit_model(
    split: Split,
    seed: int,
    parameters: dict[str, Any],
    callbacks: Sequence[Callback] | None = None,
    start_from: DeepRetrieval | None = None,
) -> tuple[DeepRetrieval, dict[str, float]]:
    """Train Deep Retrieval, which chooses on the validation users.

    Also the seconds it took, by the clock and on the processor.
    """
    started, busy = time.monotonic(), time.process_time()
    model = pathdex.DeepRetrieval(seed=seed, **parameters)
    model.fit(split.train, validation=split.valid, callbacks=callbacks, start_from=start_from)
    times = {"train_seconds": time.monotonic() - started, "train_cpu_seconds": time.process_time() - busy}
    return model, times


def spread(values: list[float], digits: int = 2) -> str:
    """Mean and sample standard deviation over the seeds."""
    mean = f"{np.mean(values):.{digits}f}"
    return mean if len(values) == 1 else f"{mean} ± {np.std(values, ddof=1):.{digits}f}"


def write_figures(report: dict[str, Any], file: Path | None) -> None:
    """Write the figures so far as JSON."""
    if file is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(report, indent=1) + "\n")
