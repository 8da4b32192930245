"""Training on new data from scratch, and from the model of the earlier data.

    python -m benchmarks warm-start --sets ml-latest-small --seeds 0,1,2

A fifth of the training users, and the items that only they have, are new: the earlier model is trained without them.
Both trainings then get all training users, choose on the same validation users, and answer for the same test users.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from rich.console import Console
from rich.table import Table

import pathdex
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
from pathdex.data.interactions import Interactions
from pathdex.data.ragged import Ragged
from pathdex.data.splits import Queries, Split
from pathdex.data.vocabulary import UNKNOWN, Vocabulary
from pathdex.evaluation.comparison import held_out_queries
from pathdex.evaluation.protocol import Method, evaluate
from pathdex.recommenders.brute_force import BruteForce
from pathdex.recommenders.deep_retrieval import DeepRetrieval

NEW_USERS = 0.2
"""Share of the training users that the earlier model does not know."""
ARMS = {"scratch": "from scratch", "warm": "from the earlier model"}


def run(names: list[str], seeds: list[int], on: str, parameters: dict[str, Any], out: Path | None) -> dict[str, Any]:
    """Train the models of every set and seed, and print a table per set."""
    report: dict[str, Any] = {"machine": describe_machine(), "on": on, "parameters": parameters, "sets": {}}
    compile_kernels()
    for name in names:
        runs: list[dict[str, Any]] = []
        report["sets"][name] = {"n": SETS[name].n, "new_users": NEW_USERS, "runs": runs}
        for seed in seeds:
            runs.append(_run_one(SETS[name], seed, on, parameters))
            write_figures(report, out)
        Console(width=120).print(table(name, SETS[name].n, runs))
    return report


def without_new_users(data: Interactions, seed: int) -> Interactions:
    """The data without a fifth of its users, and without the items that only they have."""
    known = np.sort(np.random.default_rng(seed).permutation(data.num_users)[round(NEW_USERS * data.num_users) :])
    part = data.take(known)
    rows = {
        "user": np.repeat(np.asarray(part.users.ids(np.arange(part.num_users))), part.sequences.lengths),
        "item": np.asarray(part.items.ids(part.sequences.values)),
        "time": np.arange(part.num_interactions) if part.times is None else part.times,
    }
    return pathdex.read(pl.DataFrame(rows))


def in_catalogue(queries: Queries, items: Vocabulary, earlier: Vocabulary) -> Queries:
    """The queries over a catalogue that lacks some of the items, which are left out."""

    def mapped(part: Ragged) -> Ragged:
        codes = earlier.codes(items.ids(part.values))
        kept = np.concatenate([[0], np.cumsum(codes != UNKNOWN)])
        return Ragged(codes[codes != UNKNOWN], kept[part.offsets])

    history, truth = mapped(queries.history), mapped(queries.truth)
    answerable = np.flatnonzero((history.lengths > 0) & (truth.lengths > 0))
    return Queries(queries.users, history, truth).take(answerable)


def _run_one(data: DataSet, seed: int, on: str, parameters: dict[str, Any]) -> dict[str, Any]:
    split = data.split(seed)
    before = without_new_users(split.train, seed)
    valid = in_catalogue(split.valid, split.train.items, before.items)
    earlier, _ = fit_model(Split(before, valid, valid), seed, parameters)
    figures = {}
    # In turns, so that the load of the machine favours neither.
    for arm in list(ARMS) if seed % 2 == 0 else list(reversed(ARMS)):
        model, times = fit_model(split, seed, parameters, start_from=earlier if arm == "warm" else None)
        figures[arm] = {**_accuracy(model, split, on, data.n), **times}
    return {"seed": seed, "items": split.train.num_items, "known_items": before.num_items, "arms": figures}


def _accuracy(model: DeepRetrieval, split: Split, on: str, n: int) -> dict[str, float]:
    methods = [Method(model.name, model, {"candidates": 10 * n}), Method(BruteForce.name, BruteForce(model))]
    result = evaluate(methods, held_out_queries(split, on), n=n, item_counts=split.train.item_counts())
    removed = {one.method: one.figures["f_measure"] for one in result.results if one.filter_seen}
    return {"f_measure": removed[model.name], "f_brute_force": removed[BruteForce.name]}


def table(name: str, n: int, runs: list[dict[str, Any]]) -> Table:
    """Accuracy and seconds of both arms, and what the second has of the first, seed by seed."""
    new = np.mean([1 - one["known_items"] / one["items"] for one in runs])
    title = f"{name}: {NEW_USERS:.0%} of the users and {new:.1%} of the items are new, {len(runs)} seeds"
    made = Table("training", f"F@{n}", "of brute force", "by seed", "CPU seconds", title=title)
    for arm, words in ARMS.items():
        rows = [one["arms"][arm] for one in runs]
        shares = [100 * row["f_measure"] for row in rows]
        by_seed = ", ".join(f"{share:.2f}" for share in shares)
        ceiling, seconds = [100 * row["f_brute_force"] for row in rows], [row["train_cpu_seconds"] for row in rows]
        made.add_row(words, spread(shares), spread(ceiling), by_seed, spread(seconds, 1))
    kept = {key: [one["arms"]["warm"][key] / one["arms"]["scratch"][key] for one in runs] for key in _RATIOS}
    made.add_row("ratio", *(spread(kept[key], 3) for key in _RATIOS[:2]), "", spread(kept[_RATIOS[2]]))
    return made


_RATIOS = ("f_measure", "f_brute_force", "train_cpu_seconds")


def main(arguments: list[str]) -> None:
    given = run_options("warm-start", __doc__, ["ml-latest-small"]).parse_args(arguments)
    run(given.sets.split(","), parsed_seeds(given), given.on, parsed_parameters(given), given.out)
