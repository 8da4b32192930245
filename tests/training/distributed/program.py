"""What one worker of a test does: `python -m tests.training.distributed.program OUT JSON`, in torchrun's environment.

Runs all checks, then trains on made-up data and writes what the first worker has learned.
"""

from __future__ import annotations

import json
import sys
import traceback
from pathlib import Path
from typing import Any

import numpy as np
import torch.distributed as dist

from pathdex.config import Config, RunOptions
from pathdex.data.interactions import Interactions
from pathdex.data.ragged import Ragged
from pathdex.data.vocabulary import Vocabulary
from pathdex.training import checkpointing
from pathdex.training.distributed.group import Group, connect
from pathdex.training.trainer import Trainer
from tests.recommender_contract import StopAfter
from tests.tiny import TINY
from tests.training.distributed.checks import CHECKS
from tests.training.distributed.shard_checks import SHARD_CHECKS


def made_up(users: int = 120, items: int = 37, seed: int = 0) -> Interactions:
    """Users of four kinds, with sequences of different lengths."""
    random = np.random.default_rng(seed)
    rows = [(random.integers(0, 9, random.integers(2, 15)) * 4 + user % 4).clip(max=items - 1) for user in range(users)]
    return Interactions(Ragged.from_rows(rows), Vocabulary(np.arange(users)), Vocabulary(np.arange(items)))


def train(job: dict[str, Any], group: Group | None) -> Trainer:
    """A trainer that has run to the end or, with `stop_after`, so many steps."""
    if job.get("checkpoint_always"):
        checkpointing.CHECKPOINT_SECONDS = 0.0
    trainer = Trainer(
        Config.from_dict({**TINY, **job["parameters"]}),
        RunOptions(seed=1, threads=1),
        made_up(),
        checkpoint=Path(job["checkpoint"]) if "checkpoint" in job else None,
        group=group,
    )
    if job.get("resume"):
        trainer.resume()
    if "stop_after" in job:
        trainer.loop.callbacks = [StopAfter(job["stop_after"])]
        try:
            trainer.run()
        except KeyboardInterrupt:
            return trainer
    trainer.run()
    return trainer


def save(out: Path, trainer: Trainer) -> None:
    """Write what the trainer has learned."""
    out.with_suffix(".json").write_text(json.dumps(trainer.records))
    np.savez(out.with_suffix(".npz"), paths=trainer.paths, **trainer.weights)


def outcomes(group: Group) -> dict[str, str]:
    """The traceback of every check that failed on this worker."""
    found = {}
    for check in (*CHECKS, *SHARD_CHECKS):
        try:
            check(group)
        except Exception:
            found[check.__name__] = traceback.format_exc()
    return found


def main(out: Path, jobs: list[dict[str, Any]]) -> None:
    group = connect("cpu", timeout=120)
    every = group.describe(outcomes(group))
    if group.is_first:
        out.with_name(f"{out.name}-checks.json").write_text(json.dumps(every))
    for number, job in enumerate(jobs):
        trainer = train(job, group)
        if "stop_after" in job:
            continue
        trainer.gather()
        if group.is_first:
            save(out.with_name(f"{out.name}-{number}"), trainer)
    dist.destroy_process_group()


if __name__ == "__main__":
    main(Path(sys.argv[1]), json.loads(sys.argv[2]))
