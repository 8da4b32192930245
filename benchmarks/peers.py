"""Seconds to equal accuracy: Deep Retrieval against the SASRec of a maintained library, RecTools.

    python -m benchmarks peers --sets ml-1m --minutes 6

Both train on the same split with the same number of threads and answer the same held-out users, scored by Pathdex's
protocol with seen items removed. SASRec is evaluated after each epoch, which is not timed. RecTools runs in an
environment of its own (`make bench-peers`), since it needs other versions of the packages.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich import box
from rich.console import Console
from rich.table import Table

from benchmarks.machine import describe_machine
from benchmarks.report import RESULTS
from benchmarks.sets import SETS, DataSet
from benchmarks.training_runs import (
    compile_kernels,
    fit_model,
    parsed_parameters,
    parsed_seeds,
    run_options,
    write_figures,
)
from pathdex import metrics
from pathdex.data.ragged import Ragged, take_slices
from pathdex.data.splits import Queries, Split
from pathdex.evaluation.comparison import held_out_queries
from pathdex.evaluation.protocol import Method, evaluate_method
from pathdex.recommenders.brute_force import BruteForce

WORKER = Path(__file__).parent / "peer_worker" / "sasrec.py"
PEERS_PYTHON = Path("build/peers-venv/bin/python")
SASREC: dict[str, Any] = {
    "n_factors": 64,
    "n_blocks": 2,
    "n_heads": 4,
    "dropout_rate": 0.2,
    "session_max_len": 69,
    "loss": "softmax",
    "lr": 0.001,
    "batch_size": 128,
}
"""RecTools' defaults, except for 64 dimensions (not 256) and a history of 69 (not 100), as in Deep Retrieval."""
CHANGES: dict[str, dict[str, Any]] = {
    # A softmax over 59,113 items at every place of a padded batch takes 2 GB per tensor; sessions have seven items.
    "nowplaying": {"loss": "sampled_softmax", "n_negatives": 256, "session_max_len": 20},
    "amazon-beauty": {"session_max_len": 50},
}
PEER_SETS = ["ml-1m", "nowplaying", "amazon-beauty"]


def run(names: list[str], seed: int, given: Any) -> dict[str, Any]:
    """Train both on every set; the table is printed and the figures are written after each."""
    report: dict[str, Any] = {"machine": describe_machine(), "on": given.on, "threads": given.threads, "seed": seed}
    report["sets"] = {}
    compile_kernels()
    for name in names:
        data = SETS[name]
        split = data.split(seed)
        queries = held_out_queries(split, given.on)
        peer = {**SASREC, **CHANGES.get(name, {}), **json.loads(given.sasrec)}
        own = {"threads": given.threads, **parsed_parameters(given)}
        rows = [*_sasrec(data, split, queries, peer, seed, given), *_deep_retrieval(data, split, queries, own, seed)]
        report["sets"][name] = {"n": data.n, "users": len(queries), "sasrec": peer, "deep_retrieval": own, "rows": rows}
        write_figures(report, given.out)
        Console(width=120).print(table(name, report["sets"][name], given.threads))
        print(verdict(rows), flush=True)
    return report


def _sasrec(
    data: DataSet, split: Split, queries: Queries, parameters: dict[str, Any], seed: int, given: Any
) -> Iterator[dict[str, Any]]:
    """One row per epoch."""
    with tempfile.TemporaryDirectory(prefix="pathdex-peers-") as temporary:
        folder = Path(temporary)
        request = {
            "parameters": parameters,
            "threads": given.threads,
            "seed": seed,
            "users": len(queries),
            "n": data.n,
            "epochs": given.epochs,
            "cpu_seconds": 60 * given.minutes,
        }
        (folder / "request.json").write_text(json.dumps(request))
        # Not Parquet: RecTools needs NumPy 1, with which today's pyarrow does not work.
        np.savez(folder / "train.npz", **_rows(windows(split.train.sequences, parameters["session_max_len"])))
        np.savez(folder / "history.npz", **_rows(queries.history))
        library = "RecTools"
        for line in _lines([str(given.python), str(WORKER), str(folder)], given.threads):
            if "library" in line:
                library = line["library"]
                continue
            answers = np.load(folder / f"answers-{line['epoch']}.npy")
            figures = _figures(answers, queries)
            print(f"  epoch {line['epoch']}: {line['seconds']:.0f} s, F {100 * figures['f_measure']:.2f}%", flush=True)
            yield {"method": f"{library} SASRec", **line, **figures}


def _lines(command: list[str], threads: int) -> Iterator[dict[str, Any]]:
    """The JSON lines of the worker."""
    names = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")
    environment = {**os.environ, **dict.fromkeys(names, str(threads))}
    # The worker must not see this source tree: its environment has other versions of the packages.
    environment.pop("PYTHONPATH", None)
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        for line in process.stdout:
            if line.startswith("{"):
                yield json.loads(line)
        errors = process.stderr.read()
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{errors[-2000:]}")


def windows(sequences: Ragged, length: int) -> Ragged:
    """Each sequence in pieces of `length` + 1 items that share one item, so that all but the first are targets once.

    RecTools trains on the last `session_max_len` items of a user only, which are half of MovieLens-1M. With windows as
    users, both methods train on the same interactions.
    """
    counts = np.maximum(1, -(-(sequences.lengths - 1) // length))
    rows = np.repeat(np.arange(len(sequences)), counts)
    skipped = length * (np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts))
    sizes = np.minimum(length + 1, sequences.lengths[rows] - skipped)
    return Ragged(*take_slices(sequences.values, sequences.offsets[:-1][rows] + skipped, sizes))


def _rows(sequences: Ragged) -> dict[str, NDArray[np.int64]]:
    """Rows of user, item and place in the sequence."""
    users = np.repeat(np.arange(len(sequences)), sequences.lengths)
    places = np.arange(len(users)) - np.repeat(sequences.offsets[:-1], sequences.lengths)
    return {"user": users, "item": sequences.values.astype(np.int64), "place": places}


def _figures(answers: NDArray[np.int64], queries: Queries) -> dict[str, float]:
    """The protocol's figures of answers as codes."""
    hits = metrics.hit_matrix(answers, queries.truth)
    precision, recall = metrics.precision(hits), metrics.recall(hits, queries.truth)
    return {
        "f_measure": float(metrics.f_measure(precision, recall).mean()),
        "recall": float(recall.mean()),
        "ndcg": float(metrics.ndcg(hits, queries.truth).mean()),
    }


def _deep_retrieval(
    data: DataSet, split: Split, queries: Queries, parameters: dict[str, Any], seed: int
) -> Iterator[dict[str, Any]]:
    """The encoder alone, and the whole model with 5 n and 10 n candidates."""
    model, times = fit_model(split, seed, parameters)
    encoder = [record for record in model.records if record["phase"] == "encoder"]
    share = sum(record["seconds"] for record in encoder) / times["train_seconds"]
    methods = [
        (share, Method("Deep Retrieval, encoder only (brute force)", BruteForce(model))),
        (1.0, Method("Deep Retrieval, 5 n candidates", model, {"candidates": 5 * data.n})),
        (1.0, Method("Deep Retrieval, 10 n candidates", model, {"candidates": 10 * data.n})),
    ]
    counts = split.train.item_counts()
    for part, method in methods:
        found = evaluate_method(method, queries, n=data.n, item_counts=counts, filter_seen=True)
        yield {
            "method": method.name,
            "epoch": len(encoder),
            "seconds": part * times["train_seconds"],
            "cpu_seconds": part * times["train_cpu_seconds"],
            **{key: found.figures[key] for key in ("f_measure", "recall", "ndcg")},
        }


def table(name: str, figures: dict[str, Any], threads: int) -> Table:
    title = f"{name}: top {figures['n']} for {figures['users']:,} users, in %, seen items removed; {threads} thread(s)"
    made = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD)
    made.add_column("method", no_wrap=True)
    for heading in ("epochs", "seconds", "processor seconds", "F", "recall", "NDCG"):
        made.add_column(heading, justify="right")
    for row in figures["rows"]:
        shares = [f"{100 * row[key]:.2f}" for key in ("f_measure", "recall", "ndcg")]
        made.add_row(row["method"], str(row["epoch"]), f"{row['seconds']:.0f}", f"{row['cpu_seconds']:.0f}", *shares)
    return made


def verdict(rows: list[dict[str, Any]]) -> str:
    """When SASRec reaches the F of Deep Retrieval with 10 n candidates, in processor seconds."""
    own, peers = rows[-1], [row for row in rows if "SASRec" in row["method"]]
    target = f"Deep Retrieval: F {100 * own['f_measure']:.2f}% after {own['cpu_seconds']:.0f} processor seconds; SASRec"
    for row in peers:
        if row["f_measure"] >= own["f_measure"]:
            return f"{target} reaches it after {row['cpu_seconds']:.0f} (epoch {row['epoch']})"
    best = max(peers, key=lambda row: row["f_measure"])
    return (
        f"{target} does not reach it in {peers[-1]['cpu_seconds']:.0f} ({peers[-1]['epoch']} epochs); its best is "
        f"{100 * best['f_measure']:.2f}% after {best['cpu_seconds']:.0f}"
    )


def main(arguments: list[str]) -> None:
    parser = run_options("peers", __doc__, PEER_SETS, seeds="0")
    parser.set_defaults(out=RESULTS / "peers.json")
    parser.add_argument("--threads", type=int, default=1, help="of both")
    parser.add_argument(
        "--minutes", type=float, default=6, help="SASRec stops after the epoch that exceeds this processor time"
    )
    parser.add_argument("--epochs", type=int, default=100, help="SASRec trains at most this many")
    parser.add_argument("--sasrec", default="{}", metavar="JSON", help="change parameters of SASRec")
    parser.add_argument("--python", type=Path, default=PEERS_PYTHON, help="interpreter with RecTools")
    given = parser.parse_args(arguments)
    if not given.python.exists():
        sys.exit(f"{given.python} does not exist; run make bench-peers, which installs RecTools there")
    run(given.sets.split(","), parsed_seeds(given)[0], given)
