"""Prequential recall in time order: streaming from nothing, trained again at every tenth, and frozen at half.

    python -m benchmarks stream --sets amazon-beauty
    python -m benchmarks stream --arms streaming --set decay=1.0        # an ablation

Events are in the order of their times. Every `--every`-th event of the second half is predicted before it is learned
from: recall@n with seen items removed, at most 10 n candidates, and the same with all items scored by the reranker.
Histories are up to date for all arms. Also: one pass, then the usual test users, against batch training.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from benchmarks.machine import describe_machine
from benchmarks.sets import SETS
from benchmarks.training_runs import compile_kernels, parsed_parameters, run_options, write_figures
from pathdex.data.events import Event
from pathdex.data.interactions import Interactions
from pathdex.data.ragged import Ragged
from pathdex.data.vocabulary import UNKNOWN
from pathdex.recommenders.deep_retrieval import DeepRetrieval
from pathdex.recommenders.online import OnlineLearning
from pathdex.retrieval.filters import Filters
from pathdex.training.stream.options import StreamOptions

ARMS = ("streaming", "retrained", "frozen")
TENTHS = 10
STREAM_SETS = ["amazon-beauty", "amazon-games", "ml-1m"]


@dataclass
class Stream:
    """Events in the order of their times, and which of them are predicted."""

    data: Interactions
    users: NDArray[np.int64]
    items: NDArray[np.int64]
    every: int
    histories: dict[int, list[int]] = field(default_factory=lambda: defaultdict(list))

    @classmethod
    def of(cls, data: Interactions, every: int) -> Stream:
        assert data.times is not None
        owner = np.repeat(np.arange(data.num_users), data.sequences.lengths)
        order = np.argsort(data.times, kind="stable")
        return cls(data, owner[order], data.sequences.values[order].astype(np.int64), every)

    def __len__(self) -> int:
        return len(self.items)

    def part(self, first: int, end: int, predict: Callable[[list[int], int], None] | None = None) -> None:
        """Let a part of the events happen; some are predicted first, from the items that the user had before."""
        for place in range(first, end):
            history = self.histories[int(self.users[place])]
            if predict is not None and place % self.every == 0:
                predict(history, int(self.items[place]))
            history.append(int(self.items[place]))

    def so_far(self) -> Interactions:
        """Everything that has happened, with the items that have occurred as the catalogue."""
        rows = list(self.histories)
        used = np.unique(np.concatenate([np.array(self.histories[row]) for row in rows]))
        code_of = np.full(self.data.num_items, UNKNOWN)
        code_of[used] = np.arange(len(used))
        sequences = Ragged.from_rows([code_of[np.array(self.histories[row])].astype(np.int32) for row in rows])
        return Interactions(sequences, self.data.users.take(np.array(rows)), self.data.items.take(used))


class Recall:
    """recall@n of single events by a model, and by all of its vectors."""

    def __init__(self, n: int) -> None:
        self.n, self.waiting, self.hits, self.exhaustive = n, [], [], []  # type: ignore[var-annotated]

    def add(self, history: list[Any], item: Any) -> None:
        self.waiting.append((list(history), item))

    def flush(self, model: DeepRetrieval) -> None:
        """Predict what waits with this model. Ids are those of its catalogue."""
        if not self.waiting:
            return
        known = [model.items.codes(history) for history, _ in self.waiting]
        rows = Ragged.from_rows([one[one != UNKNOWN].astype(np.int32) for one in known])
        targets = model.items.codes([item for _, item in self.waiting])
        n = min(self.n, len(model.items))
        found = model.rank(rows, n, Filters(exclude=rows), candidates=min(10 * n, len(model.items))).items
        self.hits += ((found == targets[:, None]).any(axis=1) & (targets != UNKNOWN)).tolist()
        scores = model.user_vectors(rows) @ model.item_vectors.T + model.item_bias
        for row, history in zip(scores, rows, strict=True):
            row[history] = -np.inf
        own = scores[np.arange(len(targets)), np.maximum(targets, 0)]
        better = (scores > own[:, None]).sum(axis=1)
        self.exhaustive += ((better < n) & (targets != UNKNOWN) & np.isfinite(own)).tolist()
        self.waiting.clear()


def run_streaming(
    stream: Stream, n: int, options: StreamOptions, parameters: dict[str, Any], publish: int
) -> dict[str, Any]:
    """One pass from nothing. The model that predicts is published every `publish` events."""
    model = DeepRetrieval(**parameters)
    online, recall = model.begin_stream(options), Recall(n)
    ids, users = stream.data.items, stream.users
    events = [Event(int(user), item) for user, item in zip(users, ids.ids(stream.items), strict=True)]
    spent: dict[str, float] = defaultdict(float)
    half, size = len(stream) // 2, options.batch_events
    for first in range(0, len(events), size):
        batch = events[first : first + size]
        if first >= half:
            for place in range(first, first + len(batch)):
                if place % stream.every == 0:
                    recall.add(_known(online, events[place]), events[place].item)
            with _timed(spent, "predict"):
                recall.flush(model)
        with _timed(spent, "learn"):
            online.state.apply(batch)
        if first // publish != (first + size) // publish or not model.is_fitted:
            with _timed(spent, "publish"):
                model.take_snapshot(online)
    model.take_snapshot(online)
    return {"hits": recall.hits, "exhaustive": recall.exhaustive, "seconds": dict(spent), "model": model}


def _known(online: OnlineLearning, event: Event) -> list[Any]:
    state = online.state
    slots = state.catalogue.slots_of(state.histories.tokens(str(event.user)))
    return [state.catalogue.id(slot) for slot in slots]


def run_retrained(stream: Stream, n: int, parameters: dict[str, Any], arms: list[str]) -> dict[str, Any]:
    """Models that are trained from scratch at each tenth of the second half; the first of them is the frozen one."""
    edges = [len(stream) * tenth // TENTHS for tenth in range(TENTHS + 1)]
    stream.part(0, edges[TENTHS // 2])
    found: dict[str, Any] = {arm: {"hits": [], "exhaustive": [], "seconds": 0.0} for arm in arms}
    frozen: DeepRetrieval | None = None
    for tenth in range(TENTHS // 2, TENTHS):
        started = time.process_time()
        newest = frozen
        if frozen is None or "retrained" in arms:
            newest = DeepRetrieval(**parameters).fit(stream.so_far(), callbacks=[])
        frozen = frozen or newest
        models = {"retrained": newest, "frozen": frozen}
        recalls = {arm: Recall(n) for arm in arms}

        def predict(history: list[int], item: int, recalls: dict[str, Recall] = recalls) -> None:
            ids = stream.data.items.ids([*history, item])
            for recall in recalls.values():
                recall.add(ids[:-1], ids[-1])

        stream.part(edges[tenth], edges[tenth + 1], predict)
        for arm, recall in recalls.items():
            recall.flush(models[arm])  # type: ignore[arg-type]
            found[arm]["hits"] += recall.hits
            found[arm]["exhaustive"] += recall.exhaustive
            found[arm]["seconds"] += time.process_time() - started
    return found


@contextmanager
def _timed(spent: dict[str, float], name: str) -> Iterator[None]:
    """Add the processor seconds of a block to an entry."""
    started = time.process_time()
    yield
    spent[name] += time.process_time() - started


def figures(one: dict[str, Any]) -> dict[str, Any]:
    """Mean and standard error of the predictions."""
    hits, exhaustive = np.array(one["hits"]), np.array(one["exhaustive"])
    error = float(hits.std() / np.sqrt(max(1, len(hits))))
    return {
        "recall": float(hits.mean()),
        "standard_error": error,
        "exhaustive": float(exhaustive.mean()),
        "predictions": len(hits),
        "seconds": one["seconds"],
    }


def table_of(name: str, n: int, arms: dict[str, Any]) -> Table:
    table = Table("arm", f"recall@{n}", "all items scored", "CPU s", title=name)
    for arm, one in arms.items():
        seconds = one["seconds"]
        spent = (
            ", ".join(f"{part} {value:.0f}" for part, value in seconds.items())
            if isinstance(seconds, dict)
            else f"{seconds:.0f}"
        )
        recall = f"{100 * one['recall']:.2f} ± {100 * one['standard_error']:.2f}"
        table.add_row(arm, recall, f"{100 * one['exhaustive']:.2f}", spent)
    return table


def main(arguments: list[str]) -> None:
    parser = run_options("stream", __doc__, STREAM_SETS, seeds="0", one_split=False)
    parser.add_argument("--arms", default=",".join(ARMS), help="comma-separated: " + ", ".join(ARMS))
    parser.add_argument("--every", type=int, default=8, help="predict every so many events")
    parser.add_argument("--publish", type=int, default=2048, help="events between published models")
    parser.add_argument("--batch-events", type=int, default=StreamOptions().batch_events)
    parser.add_argument("--m-step-events", type=int, default=StreamOptions().m_step_events)
    given = parser.parse_args(arguments)
    arms, parameters = given.arms.split(","), {"threads": 1, **parsed_parameters(given)}
    report: dict[str, Any] = {"machine": describe_machine(), "parameters": parameters, "sets": {}}
    compile_kernels()
    for name in given.sets.split(","):
        data, n = SETS[name].read(), SETS[name].n
        found: dict[str, Any] = {}
        if "streaming" in arms:
            options = StreamOptions(
                batch_events=given.batch_events, m_step_events=given.m_step_events, expected_items=data.num_items
            )
            found["streaming"] = figures(
                run_streaming(Stream.of(data, given.every), n, options, parameters, given.publish)
            )
        others = [arm for arm in arms if arm != "streaming"]
        if others:
            batch = run_retrained(Stream.of(data, given.every), n, parameters, others)
            found |= {arm: figures(one) for arm, one in batch.items()}
        report["sets"][name] = found
        Console(width=120).print(table_of(name, n, found))
        write_figures(report, given.out or Path("benchmarks/results/stream.json"))
