"""Prequential recall in time order: streaming from nothing, trained again at every tenth, and frozen at half.

    python -m benchmarks stream --sets amazon-beauty
    python -m benchmarks stream --arms streaming --set decay=1.0                  # an ablation; kept beside the others
    python -m benchmarks stream --arms streaming,one-pass --option replay=0
    python -m benchmarks stream --arms streaming --ablate min-score

Events are in the order of their times. Every `--every`-th event from the third tenth on is predicted before it is
learned from: recall@n with seen items removed, at most 10 n candidates, and the same with all items scored by the
reranker. Histories are up to date for all arms. Options were chosen by the tenths 3 to 5; the second half is reported.

The arm `one-pass` streams the training users of the usual split and answers the usual test users (`batch` is trained on
the same users). Figures of arms that a run leaves out are kept from the file of an earlier run.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks import plots
from benchmarks.machine import describe_machine
from benchmarks.report import Report
from benchmarks.sets import SETS
from benchmarks.stream_arms import (
    ABLATIONS,
    ALL_ITEMS,
    HALF,
    TENTHS,
    Predictions,
    Stream,
    held_out_figures,
    run_one_pass,
    run_retrained,
    run_streaming,
    without,
)
from benchmarks.training_runs import compile_kernels, fit_model, parsed_parameters, run_options, write_figures
from pathdex.evaluation.intervals import half_width
from pathdex.training.stream.options import StreamOptions

PREQUENTIAL = ("streaming", "retrained", "frozen")
ARMS = (*PREQUENTIAL, "one-pass", "batch")
STREAM_SETS = {"amazon-beauty": 8, "amazon-games": 8, "ml-1m": 32}
"""The sets, and one event in how many is predicted."""
RESULTS = Path("benchmarks/results/stream.json")


def figures(predictions: Predictions, spent: dict[str, float]) -> dict[str, Any]:
    """Means over the tenths and halves, with the standard error over the predictions."""
    tenth = np.searchsorted(predictions.stream.edges, predictions.places, side="right") - 1
    parts = {"first_half": tenth < HALF, "second_half": tenth >= HALF}
    tenths = {str(number + 1): tenth == number for number in range(TENTHS) if (tenth == number).any()}
    return {
        **{name: _means(predictions, rows) for name, rows in parts.items() if rows.any()},
        "tenths": {name: _means(predictions, rows) for name, rows in tenths.items()},
        "cpu_seconds": {part: round(seconds, 2) for part, seconds in spent.items()},
    }


def _means(predictions: Predictions, rows: Any) -> dict[str, float]:
    hits, exhaustive = np.array(predictions.hits)[rows], np.array(predictions.exhaustive)[rows]
    error = hits.std() / np.sqrt(len(hits))
    return {
        "recall": round(float(hits.mean()), 5),
        "standard_error": round(float(error), 5),
        "all_items_scored": round(float(exhaustive.mean()), 5),
        "predictions": len(hits),
    }


def table_of(name: str, n: int, arms: dict[str, Any]) -> Table:
    """Prequential recall of both halves, and F of the test users."""
    title = f"{name}: recall@{n} in %"
    table = Table("arm", "tenths 3 to 5", "second half", "of retrained", "all items scored", "CPU s", title=title)
    for arm, one in arms.items():
        if "tenths" not in one:
            continue
        second, first = one["second_half"], one.get("first_half")
        against = arms.get("retrained", {}).get("second_half", {}).get("recall")
        table.add_row(
            arm,
            "" if first is None else _cell(first),
            _cell(second),
            "" if against is None else f"{second['recall'] / against:.3f}",
            f"{100 * second['all_items_scored']:.2f}",
            ", ".join(f"{part} {seconds:.0f}" for part, seconds in one["cpu_seconds"].items()),
        )
    return table


def _cell(part: dict[str, float]) -> str:
    return f"{100 * part['recall']:.2f} ± {100 * part['standard_error']:.2f}"


def held_out_table(name: str, n: int, arms: dict[str, Any]) -> Table:
    """F of the test users, with candidates in columns."""
    budgets = [*map(str, SETS[name].candidates), ALL_ITEMS]
    table = Table("arm", *budgets, "of batch", title=f"{name}: F@{n} of the test users in %, by candidates")
    against = arms.get("batch", {}).get(budgets[1])
    for arm, one in arms.items():
        if ALL_ITEMS in one:
            ratio = "" if against is None else f"{one[budgets[1]] / against:.3f}"
            table.add_row(arm, *(f"{100 * one[key]:.2f}" for key in budgets), ratio)
    return table


def plot(report: dict[str, Any], folder: Path) -> None:
    """Recall per tenth and arm, one picture per set."""
    for name, arms in report["sets"].items():
        shown = {arm: arms[arm]["tenths"] for arm in PREQUENTIAL if arm in arms}
        if not shown:
            continue
        lines = {arm: _curve(tenths) for arm, tenths in shown.items()}
        plots.lines(
            folder / f"stream-{name}.png",
            lines,
            f"{name}: prequential recall@{SETS[name].n}",
            "tenth of the stream",
            "recall in %",
            "Recall of the next item before it is learned, by tenth of the stream. "
            "Whiskers: 95% intervals over the predictions of a tenth.",
        )


def _curve(tenths: dict[str, Any]) -> plots.Curve:
    rows = list(tenths.values())
    halves = [half_width(1, None, row["standard_error"]) for row in rows]
    percents = [None if half is None else 100 * half for half in halves]
    return plots.Curve([int(one) for one in tenths], [100 * row["recall"] for row in rows], percents)


def redraw(report: Report) -> None:
    """Draw the plots of the stored results again."""
    plot(report.parts, report.file.parent)


def run_set(
    name: str, arms: list[str], given: Any, parameters: dict[str, Any], options: dict[str, Any]
) -> dict[str, Any]:
    """The figures of the arms on one set."""
    data_set = SETS[name]
    data, n = data_set.read(), data_set.n
    every = given.every or STREAM_SETS.get(name, 8)
    chosen = StreamOptions(**{"expected_items": data.num_items, **options})
    found: dict[str, Any] = {}
    changes = ", ".join([*given.set, *given.option, *(f"no {one}" for one in given.ablate)])
    suffix = f" ({changes})" if changes else ""
    seed = int(given.seeds.split(",")[0])
    with without(given.ablate):
        if "streaming" in arms:
            predictions, spent = run_streaming(Stream.of(data, every), n, chosen, parameters, given.publish)
            found[f"streaming{suffix}"] = figures(predictions, spent)
        if "one-pass" in arms:
            found[f"one-pass{suffix}"] = run_one_pass(data_set, seed, chosen, parameters)
    others = [arm for arm in ("retrained", "frozen") if arm in arms]
    if others:
        batch = run_retrained(Stream.of(data, every), n, parameters, others)
        found |= {arm: figures(*one) for arm, one in batch.items()}
    if "batch" in arms:
        split = data_set.split(seed)
        model, times = fit_model(split, seed, parameters)
        found["batch"] = {
            **held_out_figures(model, data_set, split),
            "cpu_seconds": {"learn": round(times["train_cpu_seconds"], 2)},
        }
    return found


def main(arguments: list[str]) -> None:
    parser = run_options("stream", __doc__, list(STREAM_SETS), seeds="0", one_split=False)
    parser.add_argument("--arms", default=",".join(ARMS), help="comma-separated: " + ", ".join(ARMS))
    parser.add_argument("--every", type=int, help="predict every so many events (default: 8; 32 for ml-1m)")
    parser.add_argument("--publish", type=int, default=2048, help="events between published models")
    parser.add_argument("--option", action="append", default=[], metavar="NAME=VALUE", help="change a stream option")
    parser.add_argument("--ablate", action="append", default=[], choices=list(ABLATIONS), help="leave something out")
    given = parser.parse_args(arguments)
    arms, parameters = given.arms.split(","), {"threads": 1, **parsed_parameters(given)}
    options = {key: json.loads(value) for key, value in (one.split("=", 1) for one in given.option)}
    out = given.out or RESULTS
    report: dict[str, Any] = json.loads(out.read_text()) if out.exists() else {"sets": {}}
    report["machine"] = describe_machine()
    compile_kernels()
    console = Console(width=120)
    for name in given.sets.split(","):
        report["sets"][name] = {**report["sets"].get(name, {}), **run_set(name, arms, given, parameters, options)}
        console.print(table_of(name, SETS[name].n, report["sets"][name]))
        console.print(held_out_table(name, SETS[name].n, report["sets"][name]))
        write_figures(report, out)
    plot(report, out.parent)
