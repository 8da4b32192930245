"""Deep Retrieval against brute force, Item-CF and popularity on public data sets.

    python -m benchmarks accuracy --sets ml-1m --seeds 0

The seed selects the held-out users and seeds the training. Figures are means over the seeds with the sample standard
deviation; ratios are computed per seed.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.machine import describe_machine, peak_memory
from benchmarks.sets import ACCURACY_SETS, SETS, DataSet
from benchmarks.training_runs import (
    compile_kernels,
    fit_model,
    parsed_parameters,
    parsed_seeds,
    run_options,
    spread,
    write_figures,
)
from pathdex.evaluation.comparison import comparison_methods, held_out_queries, search_options
from pathdex.evaluation.protocol import evaluate


def run(names: list[str], seeds: list[int], on: str, parameters: dict[str, Any], out: Path | None) -> dict[str, Any]:
    """Train and evaluate every set with every seed, and print the table."""
    report: dict[str, Any] = {"machine": describe_machine(), "on": on, "parameters": parameters, "sets": {}}
    compile_kernels()
    for name in names:
        runs = [_run_one(SETS[name], seed, on, parameters) for seed in seeds]
        report["sets"][name] = {"n": SETS[name].n, "seeds": seeds, "runs": runs}
        console = Console(width=120)
        console.print(_table(name, SETS[name], runs))
        console.print(_times(runs))
        write_figures(report, out)
    return report


def _run_one(data: DataSet, seed: int, on: str, parameters: dict[str, Any]) -> dict[str, Any]:
    started = time.monotonic()
    split = data.split(seed)
    model, times = fit_model(split, seed, parameters)
    methods = comparison_methods(model, split.train, options=search_options(data.n, candidates=data.candidates))
    result = evaluate(methods, held_out_queries(split, on), n=data.n, item_counts=split.train.item_counts())
    health = model.health()
    return {
        "seed": seed,
        **result.to_dict(),
        **times,
        "seconds": time.monotonic() - started,
        "peak_memory_gb": peak_memory(),
        "path_size_wanted": model.get_params()["path_size"],
        "path_size": health.item_mean_size,
        "top_path_size": health.top_size,
        "used_paths": health.used_paths,
        "records": model.records,
    }


def _table(name: str, data: DataSet, runs: list[dict[str, Any]]) -> Table:
    seconds = np.mean([run["seconds"] for run in runs])
    title = f"{name}: F@{data.n}, {len(runs)} seeds, {runs[0]['users']:,} users, {seconds:.0f} s a run, "
    title += f"path size {np.mean([run['path_size'] for run in runs]):.1f} (target {runs[0]['path_size_wanted']:g})"
    table = Table("method", "candidates", "F@n", "of brute force", "recall", "F@n, seen kept", title=title)
    for row in range(0, len(runs[0]["results"]), 2):
        cells = [[run["results"][row + kept] for run in runs] for kept in (0, 1)]
        ceiling = [_of(run, "brute-force")["f_measure"] for run in runs]
        removed, kept = cells
        table.add_row(
            removed[0]["method"],
            f"{np.mean([cell['candidates'] for cell in removed]):,.0f}",
            spread([100 * cell["f_measure"] for cell in removed]),
            spread([cell["f_measure"] / top for cell, top in zip(removed, ceiling, strict=True)], 3),
            spread([100 * cell["recall"] for cell in removed]),
            spread([100 * cell["f_measure"] for cell in kept]),
        )
    return table


def _times(runs: list[dict[str, Any]]) -> Table:
    """Time by part of the training; score collection also as a share of the E-steps."""
    table = Table("encoder", "E-steps", "scores", "of the E-steps", "M-steps", "rest and evaluation", title="seconds")
    rows = [_parts(run) for run in runs]
    cells = [spread([row[part] for row in rows], 1) for part in ("encoder", "e_steps", "scores")]
    cells.append(spread([row["scores"] / max(row["e_steps"], 1e-9) for row in rows]))
    table.add_row(*cells, *(spread([row[part] for row in rows], 1) for part in ("m_steps", "rest")))
    return table


def _parts(run: dict[str, Any]) -> dict[str, float]:
    records = run["records"]
    scores = sum(record.get("score_seconds", 0.0) for record in records)
    m_steps = sum(record.get("m_step_seconds", 0.0) for record in records)
    whole = {kind: sum(one["seconds"] for one in records if one["phase"] == kind) for kind in ("encoder", "structure")}
    return {
        "encoder": whole["encoder"],
        "e_steps": whole["structure"] - scores - m_steps,
        "scores": scores,
        "m_steps": m_steps,
        "rest": run["seconds"] - whole["encoder"] - whole["structure"],
    }


def _of(run: dict[str, Any], method: str) -> dict[str, Any]:
    found: dict[str, Any] = next(row for row in run["results"] if row["method"] == method and row["filter_seen"])
    return found


def main(arguments: list[str]) -> None:
    given = run_options("accuracy", __doc__, ACCURACY_SETS).parse_args(arguments)
    run(given.sets.split(","), parsed_seeds(given), given.on, parsed_parameters(given), given.out)
