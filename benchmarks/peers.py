"""Seconds to equal accuracy: Deep Retrieval against maintained libraries, RecTools' SASRec and implicit's ALS.

    python -m benchmarks peers --sets ml-1m --methods deep-retrieval,sasrec

All train on the same split with the same number of threads and answer the same held-out users, scored by Pathdex's
protocol with seen items removed. SASRec answers after each epoch, which is not timed; the epoch to quote is chosen on
validation users. RecTools runs in an environment of its own (`make bench-peers`), since it needs other versions of the
packages.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich import box
from rich.console import Console
from rich.table import Table

from benchmarks.machine import describe_machine
from benchmarks.report import RESULTS, circumstances
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
from pathdex.evaluation.protocol import Method, evaluate_method
from pathdex.recommenders.brute_force import BruteForce
from pathdex.recommenders.registry import make_estimator
from pathdex.training.callbacks import Callback

WORKER = Path(__file__).parent / "peer_worker" / "sasrec.py"
PEERS_PYTHON = Path("build/peers-venv/bin/python")
OWN = "deep-retrieval"
ENCODER, WHOLE = "Deep Retrieval, encoder only", "Deep Retrieval, 10 n candidates"
SIMPLE = ("item-cf", "implicit-als")
SMALL = {"n_factors": 64, "session_max_len": 69, "batch_size": 32, "lr": 0.003}
QUICK_START = {"pos_encoding_kwargs": {"use_scale_factor": True}}
SASREC: dict[str, dict[str, Any]] = {
    "sasrec": {},
    "sasrec-tuned": {**SMALL, **QUICK_START},
    "sasrec-gbce": {**SMALL, **QUICK_START, "loss": "gBCE", "n_negatives": 32, "gbce_t": 0.75},
}
"""Changes to RecTools' defaults: two blocks, four heads, 256 dimensions, dropout 0.2, histories of 100 items, softmax
over the catalogue, learning rate 0.001, batches of 128."""
CHANGES: dict[str, dict[str, Any]] = {"amazon-beauty": {"session_max_len": 15}}
"""By set. Nine users of ten have at most 14 rows in Amazon Beauty, and RecTools pads all sequences to the maximum."""
PEER_SETS = ["ml-1m", "amazon-beauty"]
FIGURES = ("f_measure", "recall", "ndcg")


def run(names: list[str], methods: list[str], seed: int, given: Any) -> dict[str, Any]:
    """Train every method on every set. Figures of earlier runs stay in the file until they are measured again."""
    report: dict[str, Any] = json.loads(given.out.read_text()) if given.out.exists() else {"sets": {}}
    report.update(machine=describe_machine(), threads=given.threads, seed=seed)
    if OWN in methods:
        compile_kernels()
    for name in names:
        data, split = SETS[name], SETS[name].split(seed)
        figures = report["sets"].setdefault(name, {"n": data.n, "methods": {}})
        figures["users"] = {"valid": len(split.valid), "test": len(split.test)}
        measured: dict[str, Any] = {}
        for method in methods:
            for label, parameters, row in _rows_of(method, name, data, split, seed, given):
                if label not in measured:
                    measured[label] = {"measured": circumstances(), "parameters": parameters, "rows": []}
                measured[label]["rows"].append(row)
                figures["methods"].update(measured)
                write_figures(report, given.out)
                print(f"  {label}, epoch {row['epoch']}: {row['cpu_seconds']:.0f} s, F {_percent(row)}", flush=True)
        Console(width=130).print(table(name, figures, given.threads))
        print("\n".join(verdicts(figures)), flush=True)
    return report


def _rows_of(
    method: str, name: str, data: DataSet, split: Split, seed: int, given: Any
) -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    """Label, parameters and figures of every epoch, or of the finished model."""
    if method == OWN:
        parameters = {"threads": given.threads, **parsed_parameters(given)}
        for label, row in _deep_retrieval(data, split, parameters, seed):
            yield label, parameters, row
    elif method in SIMPLE:
        yield method, {}, _simple(method, data, split, seed, given.threads)
    else:
        parameters = {**SASREC[method], **CHANGES.get(name, {}), **json.loads(given.sasrec)}
        for row in _sasrec(data, split, parameters, seed, given):
            yield f"RecTools {method}", parameters, row


def _sasrec(data: DataSet, split: Split, parameters: dict[str, Any], seed: int, given: Any) -> Iterator[dict[str, Any]]:
    """One row per epoch, until validation users have not improved for `given.patience` epochs."""
    with tempfile.TemporaryDirectory(prefix="pathdex-peers-") as temporary:
        folder, held_out = Path(temporary), {"valid": split.valid, "test": split.test}
        request = {
            "parameters": parameters,
            "threads": given.threads,
            "seed": seed,
            "users": {on: len(queries) for on, queries in held_out.items()},
            "n": data.n,
            "epochs": given.epochs,
            "cpu_seconds": 60 * given.minutes,
        }
        (folder / "request.json").write_text(json.dumps(request))
        # Not Parquet: RecTools needs NumPy 1, with which today's pyarrow does not work.
        length = parameters.get("session_max_len", 100)
        np.savez(folder / "train.npz", **_rows(windows(split.train.sequences, length)))
        for on, queries in held_out.items():
            np.savez(folder / f"{on}.npz", **_rows(queries.history))
        best = {"epoch": 0, "f_measure": 0.0}
        for line in _lines([str(given.python), str(WORKER), str(folder)], given.threads):
            if "epoch" not in line:
                continue
            epoch = line["epoch"]
            row = {**line, **{on: _figures(np.load(folder / f"{on}-{epoch}.npy"), held_out[on]) for on in held_out}}
            yield row
            if row["valid"]["f_measure"] > best["f_measure"]:
                best = {"epoch": epoch, **row["valid"]}
            if epoch - best["epoch"] >= given.patience:
                break


def _lines(command: list[str], threads: int) -> Iterator[dict[str, Any]]:
    """The JSON lines of the worker, which is stopped when the caller wants no more."""
    names = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")
    environment = {**os.environ, **dict.fromkeys(names, str(threads))}
    # The worker must not see this source tree: its environment has other versions of the packages.
    environment.pop("PYTHONPATH", None)
    with tempfile.TemporaryFile("w+") as errors:
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True, env=environment) as process:
            assert process.stdout is not None
            try:
                for line in process.stdout:
                    if line.startswith("{"):
                        yield json.loads(line)
            except GeneratorExit:
                process.terminate()
                raise
        if process.returncode:
            errors.seek(0)
            raise SystemExit(f"{' '.join(command)} failed:\n{errors.read()[-2000:]}")


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


class EncoderClock(Callback):
    """The time at which the encoder is trained; EM and the final score do not change it."""

    def on_train_begin(self) -> None:
        self.started, self.before, self.epochs = time.monotonic(), time.process_time(), 0
        self.seconds: dict[str, float] = {}

    def on_epoch_end(self, record: dict[str, Any]) -> None:
        if record["phase"] == "encoder":
            self.epochs += 1
            self.seconds["seconds"] = time.monotonic() - self.started
            self.seconds["cpu_seconds"] = time.process_time() - self.before


def _deep_retrieval(
    data: DataSet, split: Split, parameters: dict[str, Any], seed: int
) -> Iterator[tuple[str, dict[str, Any]]]:
    """The encoder alone, and the whole model with 5 n and 10 n candidates."""
    clock = EncoderClock()
    model, times = fit_model(split, seed, parameters, [clock])
    whole = {"seconds": times["train_seconds"], "cpu_seconds": times["train_cpu_seconds"]}
    for seconds, method in (
        (clock.seconds, Method(ENCODER, BruteForce(model))),
        (whole, Method("Deep Retrieval, 5 n candidates", model, {"candidates": 5 * data.n})),
        (whole, Method(WHOLE, model, {"candidates": 10 * data.n})),
    ):
        yield method.name, {"epoch": clock.epochs, **seconds, **_both(method, data, split)}


def _simple(name: str, data: DataSet, split: Split, seed: int, threads: int) -> dict[str, Any]:
    model = make_estimator(name, seed=seed, threads=threads)
    model.fit(split.train)  # Compiles.
    started, busy = time.monotonic(), time.process_time()
    model.fit(split.train)
    times = {"seconds": time.monotonic() - started, "cpu_seconds": time.process_time() - busy}
    return {"epoch": 1, **times, **_both(Method(name, model), data, split)}


def _both(method: Method, data: DataSet, split: Split) -> dict[str, dict[str, float]]:
    """The figures on validation and on test users."""
    counts, figures = split.train.item_counts(), {}
    for on, queries in (("valid", split.valid), ("test", split.test)):
        found = evaluate_method(method, queries, n=data.n, item_counts=counts, filter_seen=True).figures
        figures[on] = {key: found[key] for key in FIGURES}
    return figures


def best_row(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """The epoch that early stopping on validation users keeps."""
    return max(rows, key=lambda row: row["valid"]["f_measure"])


def seconds_to(rows: list[dict[str, Any]], level: float) -> float | None:
    """Processor seconds until the F of the test users is `level`, or None."""
    return next((row["cpu_seconds"] for row in rows if row["test"]["f_measure"] >= level), None)


def table(name: str, figures: dict[str, Any], threads: int) -> Table:
    users = figures["users"]["test"]
    title = f"{name}: top {figures['n']} for {users:,} test users, in %, seen items removed; {threads} thread(s)"
    made = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD)
    made.add_column("method", no_wrap=True)
    for heading in ("epochs", "of", "processor seconds", "F valid", "F", "recall", "NDCG"):
        made.add_column(heading, justify="right")
    for method, entry in figures["methods"].items():
        row, last = best_row(entry["rows"]), entry["rows"][-1]
        shares = [f"{100 * row['test'][key]:.2f}" for key in FIGURES]
        times = (str(row["epoch"]), str(last["epoch"]), f"{row['cpu_seconds']:.0f}")
        made.add_row(method, *times, f"{100 * row['valid']['f_measure']:.2f}", *shares)
    return made


def verdicts(figures: dict[str, Any]) -> list[str]:
    """When each setting of SASRec reaches the F of Deep Retrieval, in processor seconds."""
    lines = []
    for own in (ENCODER, WHOLE):
        if own not in figures["methods"]:
            continue
        target = figures["methods"][own]["rows"][-1]
        lines.append(f"{own}: F {_percent(target)} after {target['cpu_seconds']:.0f} processor seconds")
        for method, entry in figures["methods"].items():
            if not method.startswith("RecTools"):
                continue
            rows, reached = entry["rows"], seconds_to(entry["rows"], target["test"]["f_measure"])
            if reached is not None:
                ratio = reached / target["cpu_seconds"]
                lines.append(f"  {method} reaches it after {reached:.0f}, {ratio:.1f} times as long")
            else:
                best, last = best_row(rows), rows[-1]
                lines.append(
                    f"  {method} does not reach it in {last['cpu_seconds']:.0f} ({last['epoch']} epochs); "
                    f"its best is {_percent(best)} after {best['cpu_seconds']:.0f}"
                )
    return lines


def _percent(row: dict[str, Any]) -> str:
    return f"{100 * row['test']['f_measure']:.2f}%"


def main(arguments: list[str]) -> None:
    parser = run_options("peers", __doc__, PEER_SETS, seeds="0", one_split=False)
    parser.set_defaults(out=RESULTS / "peers.json")
    everything = [OWN, *SIMPLE, *SASREC]
    parser.add_argument("--methods", default=",".join(everything), help="comma-separated: " + ", ".join(everything))
    parser.add_argument("--threads", type=int, default=1, help="of all")
    parser.add_argument(
        "--minutes", type=float, default=15, help="SASRec stops after the epoch that exceeds this processor time"
    )
    parser.add_argument("--epochs", type=int, default=200, help="SASRec trains at most this many")
    parser.add_argument("--patience", type=int, default=5, help="SASRec stops after this many without improvement")
    parser.add_argument("--sasrec", default="{}", metavar="JSON", help="change parameters of SASRec")
    parser.add_argument("--python", type=Path, default=PEERS_PYTHON, help="interpreter with RecTools")
    given = parser.parse_args(arguments)
    methods = given.methods.split(",")
    if set(methods) & set(SASREC) and not given.python.exists():
        sys.exit(f"{given.python} does not exist; run make bench-peers, which installs RecTools there")
    run(given.sets.split(","), methods, parsed_seeds(given)[0], given)
