"""The measurements behind the cost model: CPU seconds and bytes of each part, at a given catalogue size."""

from __future__ import annotations

import importlib
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import pathdex
from benchmarks.m_step import run as run_m_step
from benchmarks.machine import peak_memory
from pathdex.config import Config, RunOptions
from pathdex.data.synthetic import generate
from pathdex.training.determinism import deterministic
from pathdex.training.trainer import Trainer

BATCH = 4096
CONFIG: dict[str, Any] = {
    "num_nodes": 100,
    "batch_size": BATCH,
    "structure_batch_size": BATCH,
    "candidate_paths": 50,
    "score_beam": 20,
    "score_samples": 8,
    "next_items": 1,
}
EVENTS_PER_ITEM = 1.25
WARM_STEPS, STEPS = 3, 12


def measure_training(items: int, *, scores: bool = False) -> dict[str, Any]:
    """CPU seconds per sample of each kind of step, rows that an encoder step touches, and peak memory."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "events.parquet"
        events = int(EVENTS_PER_ITEM * items)
        generate(file, users=max(1, events // 20), items=items, interactions=events, seed=0)
        data = pathdex.read(file)
    before = peak_memory()
    trainer = Trainer(Config(**CONFIG), RunOptions(threads=1), data)
    figures: dict[str, Any] = {"items": data.num_items, "events": data.num_interactions, "data_gb": before}
    touched: list[int] = []
    count_rows(touched)
    with deterministic(trainer.network.device):
        figures["encoder_step"] = seconds_per_step(trainer.encoder)
        figures["rows_touched"] = float(np.median(touched))
        figures["encoder_gb"] = peak_memory() - before
        started = time.thread_time()
        vectors = trainer.structure.vectors
        figures["user_vector"] = (time.thread_time() - started) / len(vectors)
        figures["structure_step"] = seconds_per_step(trainer.structure)
        if scores:
            started = time.thread_time()
            trainer.assigner.collect_scores(vectors, np.random.default_rng(0))
            samples = np.minimum(trainer.assigner.counts, CONFIG["score_samples"]).sum()
            figures["score"] = (time.thread_time() - started) / float(samples)
    figures["peak_gb"] = peak_memory()
    figures["dense_parameters"] = sum(
        one.numel() for name, one in trainer.network.named_parameters() if one.shape[:1] != (data.num_items,)
    )
    return figures


def seconds_per_step(phase: Any) -> float:
    """CPU seconds of this thread per step, after a few to warm up."""
    available = phase.begin_epoch(0)
    spent = []
    for step in range(WARM_STEPS + STEPS):
        started = time.thread_time()
        phase.step(0, step % available)
        spent.append(time.thread_time() - started)
    return float(np.median(spent[WARM_STEPS:]))


def count_rows(touched: list[int]) -> None:
    """Append the number of item rows that each optimiser step updates."""
    lazy_adam: Any = importlib.import_module("pathdex.model.lazy_adam")
    update = lazy_adam.update_rows

    def counting(*arguments: Any) -> Any:
        touched.append(max(len(one) for one in arguments if getattr(one, "dtype", None) == np.int64))
        return update(*arguments)

    lazy_adam.update_rows = counting


def in_process(items: int, memory: float, *, scores: bool) -> dict[str, Any] | None:
    """`measure_training` in a process with at most `memory` GB, or None if that is not enough."""
    command = [sys.executable, "-m", "benchmarks.cost_measure", str(items), str(memory), str(int(scores))]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        print(f"{items:,} items: {done.stderr.strip().splitlines()[-1:]}", flush=True)
        return None
    figures: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return figures


def measure_m_step(items: list[int], repeats: int) -> dict[str, float]:
    """CPU seconds of an M-step by number of items."""
    return {str(one.items): float(np.median(one.seconds)) for one in run_m_step(items, repeats=repeats)}


def main(arguments: list[str]) -> None:
    items, memory, scores = arguments
    limit = int(float(memory) * 2**30)
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    print(json.dumps(measure_training(int(items), scores=scores == "1")))


if __name__ == "__main__":
    main(sys.argv[1:])
