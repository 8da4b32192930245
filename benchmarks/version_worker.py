"""One version of Pathdex at work, for `benchmarks.versions`: reads commands on standard input, answers in JSON lines.

Only public names that all versions share are used, so the same file runs against any source tree.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import pathdex


class Worker:
    """The commands by name."""

    def open(self, bundle: str, history: int, queries: int, n: int, beam: int) -> dict[str, Any]:
        """Open a saved model and draw queries."""
        self.model: Any = pathdex.load(bundle)
        self.n, self.beam = n, beam
        items = len(self.model.items)
        self.codes = np.random.default_rng(0).integers(0, items, (queries, history))
        self.histories = [self.model.items.ids(row) for row in self.codes]
        self.model.set_threads(1)
        self.model.warmup()
        self.query()
        self.batch()
        return {"items": items}

    def build(self, sizes: dict[str, Any], history: int, queries: int, n: int, beam: int) -> dict[str, Any]:
        """Make a synthetic model with this version's own benchmarks, and draw queries."""
        sys.path.insert(0, str(Path(pathdex.__file__).parents[2]))
        from benchmarks.synthetic import save_synthetic

        with tempfile.TemporaryDirectory(prefix="pathdex-version-") as folder:
            answer = self.open(str(save_synthetic(Path(folder) / "model", **sizes)), history, queries, n, beam)
        self.ranks()
        return answer

    def query(self) -> dict[str, Any]:
        """Seconds and CPU seconds per query, one by one."""
        return self._per_query(lambda: [self.model.recommend(one, self.n, beam=self.beam) for one in self.histories])

    def batch(self) -> dict[str, Any]:
        """Seconds and CPU seconds per query, all at once."""
        return self._per_query(lambda: self.model.recommend_batch(self.histories, self.n, beam=self.beam))

    def ranks(self) -> dict[str, Any]:
        """The same without looking up ids and making Python objects of the answers."""
        from pathdex.data.ragged import Ragged
        from pathdex.retrieval.filters import Filters

        codes = Ragged.from_rows(self.codes)
        return self._per_query(lambda: self.model.rank(codes, self.n, Filters(exclude=codes), beam=self.beam))

    def _per_query(self, call: Callable[[], Any]) -> dict[str, Any]:
        started, worked = time.perf_counter(), time.process_time()
        call()
        spent = {"seconds": time.perf_counter() - started, "cpu": time.process_time() - worked}
        return {name: value / len(self.histories) for name, value in spent.items()}

    def prepare(self, file: str, reading: dict[str, Any], parameters: dict[str, Any], warm: int) -> dict[str, Any]:
        """Read a file, and make the phases of a training ready for steps."""
        from pathdex.config import Config, RunOptions
        from pathdex.training.trainer import Trainer

        data = pathdex.read(Path(file), **reading)
        trainer = Trainer(Config(**parameters), RunOptions(threads=1), data)
        self.phases = {phase.name: phase for phase in trainer.loop.phases}
        self.device, self.taken = trainer.network.device, dict.fromkeys(self.phases, 0)
        for _ in range(warm):  # So that the probabilities of paths are those of a training under way.
            self.steps("encoder", 20)
        self.phases["structure"].begin()
        for _ in range(warm):
            self.steps("structure", 20)
        return {"items": data.num_items, "rows": data.num_interactions}

    def steps(self, phase: str, number: int) -> dict[str, Any]:
        """CPU seconds of this thread per step of a phase, from where the last call stopped."""
        from pathdex.training.determinism import deterministic

        one = self.phases[phase]
        with deterministic(self.device):
            available = one.begin_epoch(0)
            if phase == "structure":
                one.vectors  # noqa: B018 (computed once, outside the clock)
            started = time.thread_time()
            for step in range(number):
                one.step(0, (self.taken[phase] + step) % available)
            seconds = time.thread_time() - started
        self.taken[phase] += number
        return {"seconds": seconds / number}

    def train(self, file: str, reading: dict[str, Any], held_out: int, n: int, candidates: int) -> dict[str, Any]:
        """Train with the defaults and seed 0, and evaluate on the test users."""
        data = pathdex.read(Path(file), **reading)
        split = pathdex.split_users(data, valid_users=held_out, test_users=held_out, seed=0)
        started = time.perf_counter()
        model = pathdex.DeepRetrieval(seed=0, threads=1).fit(split.train)
        seconds = time.perf_counter() - started
        methods = [
            pathdex.Method("deep-retrieval", model, {"candidates": candidates}),
            pathdex.Method("brute-force", pathdex.BruteForce(model)),
        ]
        result = pathdex.evaluate(methods, split.test, n=n, item_counts=split.train.item_counts()).to_dict()
        figures = {row["method"]: row["f_measure"] for row in result["results"] if row["filter_seen"]}
        return {"seconds": seconds, **figures}


def main() -> None:
    worker = Worker()
    for line in sys.stdin:
        command = json.loads(line)
        answer = getattr(worker, command.pop("command"))(**command)
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
