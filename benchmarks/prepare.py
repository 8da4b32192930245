"""Data larger than memory: a log four times as large as the memory limit is prepared, trained on and evaluated.

    python -m benchmarks prepare

Every step is a process with limited memory. Reading the log without preparing it comes last, as the control.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

import polars as pl

from benchmarks.machine import describe_machine
from benchmarks.memory_limit import LimitedRun, run_limited
from pathdex.data import generate

ROW_BYTES = 269
"""About the size of a row of the log."""
FACTOR = 4
LIMIT_MB = 768
ROWS_PER_USER, ITEMS = 100, 2_000
AGENT = "Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML like Gecko) Chrome/130 Mobile Safari/537"
TRAINING = (
    "--epochs 1 --rounds 1 --structure-epochs 1 --final-epochs 0 --embedding-dim 32 --next-items 1 --neighbours 0 "
    "--batch-size 2048 --test-users 1000 --valid-users 1000 --threads 2"
)


def write_log(file: Path, rows: int, seed: int = 0) -> None:
    """A CSV as web shops write it: nine columns, ids as text, times as ISO 8601; the rows are not sorted by user."""
    planted = file.with_suffix(".parquet")
    generate(planted, users=max(1, rows // ROWS_PER_USER), items=ITEMS, interactions=rows, seed=seed)
    user, item = pl.col("user_id").cast(pl.String), pl.col("item_id").cast(pl.String)
    moment = pl.from_epoch(pl.col("timestamp"), time_unit="s").dt.strftime("%Y-%m-%dT%H:%M:%S")
    number = pl.col("user_id").hash(seed).cast(pl.String).str.zfill(20)
    # In the order of time, as a log is written.
    pl.scan_parquet(planted).sort("timestamp", maintain_order=True).select(
        event_time=moment,
        event_type=pl.lit("view"),
        user_id="customer-" + number + "-" + user.str.zfill(9),
        session_id=pl.col("timestamp").hash(seed).cast(pl.String).str.zfill(20),
        product_id="product-" + item.str.zfill(9),
        page="https://shop.example/products/" + item + "?source=recommendation",
        device=pl.lit("mobile"),
        agent=pl.lit(AGENT),
        rating=(pl.col("timestamp").hash(seed + 1) % 5 + 1),
    ).sink_csv(file)
    planted.unlink()
    for extra in file.parent.glob(f"{file.stem}*.parquet"):
        extra.unlink()


def steps(log: Path, folder: Path, shard_rows: int) -> dict[str, list[str]]:
    """The command of each step."""
    pathdex = [sys.executable, "-m", "pathdex"]
    columns = ["--user", "user_id", "--item", "product_id", "--time", "event_time", "--min-rating", "5"]
    prepared, run = str(folder / "prepared"), str(folder / "run")
    return {
        "data prepare": [
            *pathdex, "data", "prepare", str(log), "--out", prepared, *columns, "--shard-rows", str(shard_rows),
        ],
        "data describe": [*pathdex, "data", "describe", prepared],
        "train": [*pathdex, "train", prepared, "--out", run, *TRAINING.split()],
        "evaluate": [*pathdex, "evaluate", run, "--n", "50", "--methods", "deep-retrieval,popularity"],
        "read without preparing": [*pathdex, "data", "describe", str(log), *columns],
    }  # fmt: skip


def run(limit: int, rows: int | None, shard_rows: int, folder: Path, out: Path) -> None:
    log = folder / "log.csv"
    write_log(log, rows or FACTOR * limit // ROW_BYTES)
    report: dict[str, Any] = {"machine": describe_machine(), "limit": limit, "log": log.stat().st_size, "steps": {}}
    report["interactions"] = rows or FACTOR * limit // ROW_BYTES
    print(f"a log of {report['log'] / limit:.1f} times the limit of {limit / 2**20:,.0f} MB", flush=True)
    for name, command in steps(log, folder, shard_rows).items():
        found = run_limited(command, limit, folder)
        report["steps"][name] = _row(found)
        state = "ok" if found.returncode == 0 else f"ended with {found.returncode}"
        print(f"{name:<24} {found.seconds:8.1f} s  resident {found.resident / 2**20:6,.0f} MB  {state}", flush=True)
        if found.returncode and name != "read without preparing":
            raise SystemExit(found.output)
        if name == "train":
            print(found.output)
        if name == "data prepare":
            report["prepared"] = sum(file.stat().st_size for file in (folder / "prepared").iterdir())
        report["limited_by"] = found.kind
        out.write_text(json.dumps(report, indent=2, sort_keys=True) + "\n")


def _row(found: LimitedRun) -> dict[str, Any]:
    return {name: value for name, value in asdict(found).items() if name not in ("output", "kind")}


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks prepare", description=__doc__)
    parser.add_argument("--limit-mb", type=int, default=LIMIT_MB, help="memory of every process")
    parser.add_argument("--rows", type=int, help="rows of the log; default: four times the limit")
    parser.add_argument("--shard-rows", type=int, default=500_000)
    parser.add_argument("--folder", type=Path, help="where to work, on a disk; default: the temporary folder")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/prepare.json"))
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        run(options.limit_mb * 2**20, options.rows, options.shard_rows, Path(folder), options.out)


if __name__ == "__main__":
    main(sys.argv[1:])
