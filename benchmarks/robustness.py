"""One set of defaults on every kind of data: Deep Retrieval against popularity, Item-CF and brute force.

    python -m benchmarks robustness --sets tafeng,sparse --seeds 0 --on valid

Real and planted sets. A set is flagged where Deep Retrieval is below popularity or Item-CF, or below 0.97 (at most 5 n
candidates) or 0.99 (10 n) of brute force. Figures are means over the seeds with the sample standard deviation; ratios
are computed per seed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table

import pathdex
from benchmarks.machine import describe_machine
from benchmarks.sets import PLANTED, SETS, DataSet
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

ALL_SETS = {**SETS, **PLANTED}
SHRINKAGE = 20
"""Suits sparse data (docs/baselines.md)."""
BASELINES = ("popularity", "item-cf", f"item-cf, shrinkage {SHRINKAGE}")
CEILING = "brute-force"
OWN = ("deep-retrieval", "deep-retrieval, 5 n", "deep-retrieval, 10 n")
LIMITS = {OWN[1]: 0.97, OWN[2]: 0.99}
"""The least share of brute force's F."""


def run(names: list[str], seeds: list[int], on: str, parameters: dict[str, Any], out: Path | None) -> dict[str, Any]:
    """Train and evaluate every set with every seed; the table so far is printed after each set."""
    report: dict[str, Any] = {"machine": describe_machine(), "on": on, "parameters": parameters, "sets": {}}
    compile_kernels()
    for name in names:
        runs = [_run_one(ALL_SETS[name], seed, on, parameters) for seed in seeds]
        report["sets"][name] = {"n": ALL_SETS[name].n, "seeds": seeds, "flags": flags(runs), "runs": runs}
        write_figures(report, out)
        print(f"{name}: {'; '.join(flags(runs)) or 'no flags'}", flush=True)
    Console(width=160).print(table(report))
    return report


def _run_one(data: DataSet, seed: int, on: str, parameters: dict[str, Any]) -> dict[str, Any]:
    split = data.split(seed)
    model, times = fit_model(split, seed, parameters)
    methods = [
        Method(BASELINES[0], pathdex.Popularity().fit(split.train)),
        Method(BASELINES[1], pathdex.ItemCF().fit(split.train)),
        Method(BASELINES[2], pathdex.ItemCF(shrinkage=SHRINKAGE).fit(split.train)),
        Method(CEILING, BruteForce(model)),
        Method(OWN[0], model),
        Method(OWN[1], model, {"candidates": 5 * data.n}),
        Method(OWN[2], model, {"candidates": 10 * data.n}),
    ]
    found = evaluate(methods, held_out_queries(split, on), n=data.n, item_counts=split.train.item_counts())
    health = model.health()
    return {
        "seed": seed,
        "train_users": split.train.num_users,
        "items": split.train.num_items,
        "train_interactions": split.train.num_interactions,
        **times,
        "path_size": health.item_mean_size,
        "used_paths": health.used_paths,
        **found.to_dict(),
    }


def flags(runs: list[dict[str, Any]]) -> list[str]:
    """What is wrong with Deep Retrieval on a set, by the means over its seeds."""
    found = []
    for name in OWN:
        for other in BASELINES:
            ratio = float(np.mean(ratios(runs, name, other)))
            if ratio < 1:
                found.append(f"{name}: {ratio:.3f} of {other}")
        ratio = float(np.mean(ratios(runs, name, CEILING)))
        if ratio < LIMITS.get(name, 0):
            found.append(f"{name}: {ratio:.3f} of {CEILING}")
    return found


def ratios(runs: list[dict[str, Any]], name: str, other: str) -> list[float]:
    """F of a method divided by F of another one, by seed."""
    return [_f(run, name) / max(_f(run, other), 1e-12) for run in runs]


def _best_ratios(runs: list[dict[str, Any]], name: str) -> list[float]:
    """F of a method divided by F of the best baseline, by seed."""
    return [_f(run, name) / max(1e-12, *(_f(run, other) for other in BASELINES)) for run in runs]


def _f(run: dict[str, Any], name: str) -> float:
    """F of a method with seen items removed."""
    return next(float(row["f_measure"]) for row in run["results"] if row["method"] == name and row["filter_seen"])


def table(report: dict[str, Any]) -> Table:
    """One row per set."""
    title = f"F@n in %, {report['on']} users, seen items removed; ratios are to the best baseline and to brute force; "
    title += "seconds of training (processor seconds)"
    made = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    made.add_column("set", no_wrap=True)
    heads = ["n", "pop.", "Item-CF", f"shrunk {SHRINKAGE}", "brute", "DR", "DR 5 n", "DR 10 n"]
    heads += ["5 n / best", "10 n / best", "5 n / brute", "10 n / brute", "seconds", "flags"]
    for heading in heads:
        made.add_column(heading, justify="right")
    for name, one in report["sets"].items():
        runs = one["runs"]
        made.add_row(
            name,
            str(one["n"]),
            *(spread([100 * _f(run, method) for run in runs]) for method in (*BASELINES, CEILING, *OWN)),
            *(spread(_best_ratios(runs, method), 3) for method in OWN[1:]),
            *(spread(ratios(runs, method, CEILING), 3) for method in OWN[1:]),
            f"{_mean(runs, 'train_seconds'):.0f} ({_mean(runs, 'train_cpu_seconds'):.0f})",
            str(len(one["flags"]) or ""),
        )
    return made


def _mean(runs: list[dict[str, Any]], key: str) -> float:
    return float(np.mean([run[key] for run in runs]))


def main(arguments: list[str]) -> None:
    given = run_options("robustness", __doc__, list(ALL_SETS)).parse_args(arguments)
    run(given.sets.split(","), parsed_seeds(given), given.on, parsed_parameters(given), given.out)
