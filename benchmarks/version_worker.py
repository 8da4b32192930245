"""One version of Pathdex at work, for `benchmarks.versions`: reads commands on standard input, answers in JSON lines.

Only public names that all versions share are used, so the same file runs against any source tree.
"""

from __future__ import annotations

import json
import sys
import time
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
        rows = np.random.default_rng(0).integers(0, items, (queries, history))
        self.histories = [self.model.items.ids(row) for row in rows]
        self.model.warmup()
        self.query()
        self.batch()
        return {"items": items}

    def query(self) -> dict[str, Any]:
        """Seconds per query, one by one."""
        started = time.perf_counter()
        for history in self.histories:
            self.model.recommend(history, self.n, beam=self.beam)
        return {"seconds": (time.perf_counter() - started) / len(self.histories)}

    def batch(self) -> dict[str, Any]:
        """Seconds per query, all at once."""
        started = time.perf_counter()
        self.model.recommend_batch(self.histories, self.n, beam=self.beam)
        return {"seconds": (time.perf_counter() - started) / len(self.histories)}

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
