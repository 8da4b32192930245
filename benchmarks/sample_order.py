"""Training with the samples in one random permutation, and in the windows of large data.

    python -m benchmarks sample-order --sets amazon-beauty,ml-1m --on valid

Windows begin at two million interactions. Here they are made smaller with the data: `windows` has 8 of them with 256
blocks each, as data at the limit has; `small windows` has 64 with 32 blocks each.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.machine import describe_machine
from benchmarks.sets import SETS, DataSet
from benchmarks.training_runs import (
    compile_kernels,
    fit_model,
    parsed_parameters,
    parsed_seeds,
    run_options,
    spread,
    write_figures,
)
from pathdex.evaluation.comparison import held_out_queries
from pathdex.evaluation.protocol import Method, evaluate
from pathdex.recommenders.brute_force import BruteForce
from pathdex.training import sample_order

BLOCKS = 2048
WINDOWS = {"permutation": 0, "windows": 8, "small windows": 64}
"""Windows of an epoch by arm."""


def run(names: list[str], seeds: list[int], on: str, parameters: dict[str, Any], out: Path | None) -> dict[str, Any]:
    """Train the models of every set and seed, and print a table per set."""
    report: dict[str, Any] = {"machine": describe_machine(), "on": on, "parameters": parameters, "sets": {}}
    compile_kernels()
    for name in names:
        runs: list[dict[str, Any]] = []
        report["sets"][name] = {"n": SETS[name].n, "runs": runs}
        for seed in seeds:
            runs.append(_run_one(SETS[name], seed, on, parameters))
            write_figures(report, out)
        Console(width=120).print(table(name, SETS[name].n, runs))
    return report


@contextmanager
def drawn_in(windows: int, interactions: int) -> Iterator[None]:
    """Draw the orders of trainings in so many windows; 0 for one permutation."""
    limit = 0 if windows else interactions
    block = max(1, interactions // BLOCKS)
    sizes: dict[str, Any] = {"LARGE": limit, "SAMPLE_BLOCK": block, "WINDOW": block * BLOCKS // max(1, windows)}
    with mock.patch.multiple(sample_order, **sizes):
        yield


def _run_one(data: DataSet, seed: int, on: str, parameters: dict[str, Any]) -> dict[str, Any]:
    split = data.split(seed)
    figures = {}
    for arm, windows in WINDOWS.items():
        with drawn_in(windows, split.train.num_interactions):
            model, times = fit_model(split, seed, parameters)
        methods = [Method(model.name, model, {"candidates": 10 * data.n}), Method(BruteForce.name, BruteForce(model))]
        result = evaluate(methods, held_out_queries(split, on), n=data.n, item_counts=split.train.item_counts())
        removed = {one.method: one.figures["f_measure"] for one in result.results if one.filter_seen}
        figures[arm] = {"f_measure": removed[model.name], "f_brute_force": removed[BruteForce.name], **times}
    return {"seed": seed, "interactions": split.train.num_interactions, "arms": figures}


def table(name: str, n: int, runs: list[dict[str, Any]]) -> Table:
    """Accuracy by arm, and the difference from one permutation, seed by seed."""
    made = Table(
        "order of samples", f"F@{n}", "of brute force", "difference, by seed", title=f"{name}, {len(runs)} seeds"
    )
    for arm in WINDOWS:
        shares, ceiling = ([100 * one["arms"][arm][key] for one in runs] for key in ("f_measure", "f_brute_force"))
        differences = np.subtract(shares, [100 * one["arms"]["permutation"]["f_measure"] for one in runs])
        by_seed = ", ".join(f"{difference:+.2f}" for difference in differences)
        made.add_row(arm, spread(shares), spread(ceiling), by_seed if WINDOWS[arm] else "")
    return made


def main(arguments: list[str]) -> None:
    given = run_options("sample-order", __doc__, ["amazon-beauty", "ml-1m"]).parse_args(arguments)
    run(given.sets.split(","), parsed_seeds(given), given.on, parsed_parameters(given), given.out)
