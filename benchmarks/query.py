"""Query times: against brute force, part by part, by filter, in sessions, in batches and by catalogue size.

    python -m benchmarks query                       # everything; about 10 GB of memory and 5 GB of disk
    python -m benchmarks query --parts whole,filters
    python -m benchmarks query --quick               # a check of the benchmark itself

One thread unless stated. The model is synthetic (see `benchmarks.synthetic`), saved and loaded as in production.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table
from threadpoolctl import threadpool_limits

import pathdex
from benchmarks import growth, query_filters, query_parts
from benchmarks.exhaustive import Exhaustive
from benchmarks.report import Report, arguments_parser, chosen, open_report
from benchmarks.synthetic import open_model, random_histories, save_synthetic
from benchmarks.timing import Task, Times, alternate, ratio, shown
from pathdex.data.ragged import Ragged
from pathdex.recommenders.deep_retrieval import DeepRetrieval
from pathdex.retrieval.filters import Filters

PARTS = ("whole", "breakdown", "filters", "sessions", "batches", "growth", "opening")
ON_ONE_MODEL = PARTS[:5]


@dataclass(frozen=True)
class Sizes:
    """Sizes of the model and of the measurements."""

    items: int = 1_480_000
    num_nodes: int = 100
    path_size: float = 25.0
    """B = 50 of them hold about 1,250 items."""
    history: int = 69
    beam: int = 50
    n: int = 200
    sharpness: float = 8.0
    """Of the second model, whose path probabilities are peaked."""
    queries: int = 1000
    """Different histories."""
    slow_queries: int = 12
    """Queries per repeat of brute force."""
    repeats: int = 7
    growth_items: tuple[int, ...] = (100_000, 1_000_000, 10_000_000)
    growth_nodes: int = 150

    @classmethod
    def quick(cls) -> Sizes:
        return cls(
            items=30_000,
            num_nodes=40,
            queries=100,
            slow_queries=5,
            repeats=3,
            growth_items=(5_000, 50_000),
            growth_nodes=40,
        )

    def parameters(self) -> dict[str, Any]:
        """Parameters of the model."""
        return {"num_nodes": self.num_nodes, "depth": 3, "paths_per_item": 3, "embedding_dim": 64}


@dataclass(frozen=True, eq=False)
class Workload:
    """A model and the histories to query it with."""

    model: DeepRetrieval
    histories: list[Ragged]
    seen: list[Filters]
    sizes: Sizes

    @classmethod
    def of(cls, model: DeepRetrieval, sizes: Sizes) -> Workload:
        histories = random_histories(len(model.items), sizes.queries, sizes.history)
        return cls(model, histories, [Filters(exclude=one) for one in histories], sizes)

    def rank(self, query: int) -> pathdex.recommenders.base.Ranking:
        """The whole query: history to ranked items, without seen ones."""
        return self.model.rank(self.histories[query], self.sizes.n, self.seen[query], beam=self.sizes.beam)

    def all(self) -> Ragged:
        return Ragged.from_rows(one[0] for one in self.histories)


def whole(workload: Workload, report: Report) -> None:
    """The whole query against the same encoder with a product over all item vectors."""
    sizes, model = workload.sizes, workload.model
    exact = Exhaustive(model)
    report.say(f"brute force: {exact.describe()}")

    def brute(query: int) -> Any:
        user = model.retriever.encoder.encode(workload.histories[query][0]).vector
        return exact.best(user, workload.histories[query][0], sizes.n)

    times = alternate(
        {
            "query": Task(workload.rank, sizes.queries),
            "encode and brute force": Task(brute, sizes.slow_queries),
            "product alone": Task(lambda query: exact.scores(exact.users[query % 8]), sizes.slow_queries),
        },
        sizes.repeats,
    )
    candidates = np.array([workload.rank(query).candidates[0] for query in range(sizes.queries)])
    figures = {
        "items": len(model.items),
        "paths": len(model.postings),
        "candidates": {"mean": float(candidates.mean()), "min": int(candidates.min())},
        "brute_force": exact.describe(),
        "times": {name: one.to_dict() for name, one in times.items()},
        "ratio": ratio(times["encode and brute force"], times["query"]),
        "ratio_to_product_alone": ratio(times["product alone"], times["query"]),
        "wanted": "ratio of at least 50; the paper: 4",
    }
    table = Table("", "microseconds", "p50", "p99", title=f"{len(model.items):,} items, top {sizes.n}")
    for name, one in times.items():
        row = one.to_dict()
        table.add_row(name, f"{row['microseconds']:,.0f}", f"{row['p50']:,.0f}", f"{row['p99']:,.0f}")
    table.add_row("brute force / query", shown(figures["ratio"]))
    table.add_row("candidates", f"{candidates.mean():,.0f}, at least {candidates.min():,}")
    report.add("whole", figures, table)


def sessions(workload: Workload, report: Report) -> None:
    """The next query of a session from its saved state, against the whole query."""
    sizes, model = workload.sizes, workload.model
    rows, figures = [], {}
    for label, length in (("growing", sizes.history // 2), ("full", sizes.history)):
        histories = [model.items.ids(one[0][:length]) for one in workload.histories]
        states = [model.state(history[:-1]) for history in histories]

        def from_history(query: int, histories: list[Any] = histories) -> Any:
            return model.recommend(histories[query], sizes.n, beam=sizes.beam)

        def from_state(query: int, histories: list[Any] = histories, states: list[Any] = states) -> Any:
            state = model.advance(states[query], histories[query][-1])
            return model.recommend_next(state, sizes.n, beam=sizes.beam)

        times = alternate(
            {"recommend": Task(from_history, sizes.queries), "next": Task(from_state, sizes.queries)}, sizes.repeats
        )
        share = ratio(times["next"], times["recommend"])
        figures[label] = {"history": length, "share": share, **{name: one.to_dict() for name, one in times.items()}}
        rows.append((label, length, times, share))
    table = Table("history", "items", "recommend, us", "advance and recommend_next, us", "share", title="sessions")
    for label, length, times, share in rows:
        cells = [f"{times[name].microseconds:,.0f}" for name in ("recommend", "next")]
        table.add_row(label, str(length), *cells, shown(share))
    report.add("sessions", figures, table)


def batches(workload: Workload, report: Report) -> None:
    """Queries per second in one call for many histories, on one and two threads, and brute force in batches."""
    sizes, model = workload.sizes, workload.model
    histories = workload.all()
    few = histories.take(np.arange(min(256, sizes.queries)))
    exhaustive = pathdex.BruteForce(model)

    def batch(_: int, threads: int) -> Any:
        model.set_threads(threads)
        return model.rank(histories, sizes.n, Filters(exclude=histories), beam=sizes.beam)

    times = alternate(
        {
            "1 thread": Task(partial(batch, threads=1), 1),
            "2 threads": Task(partial(batch, threads=2), 1),
            "brute force in batches, 1 thread": Task(lambda _: exhaustive.rank(few, sizes.n, Filters(exclude=few)), 1),
        },
        sizes.repeats,
    )
    model.set_threads(1)
    # CPU seconds would be those of the calling thread, which only waits.
    times = {name: Times(one.seconds) for name, one in times.items()}
    queries_of = {name: len(few) if name.startswith("brute") else len(histories) for name in times}
    per_query = {name: one.microseconds / queries_of[name] for name, one in times.items()}
    figures = {
        "microseconds_per_query": per_query,
        "queries_per_second": {name: 1e6 / one for name, one in per_query.items()},
        "two_threads_over_one": ratio(times["1 thread"], times["2 threads"]),
        "brute_force_over_query": per_query["brute force in batches, 1 thread"] / per_query["1 thread"],
    }
    table = Table("batches", "microseconds per query", "queries/s")
    for name, one in per_query.items():
        table.add_row(name, f"{one:,.0f}", f"{1e6 / one:,.0f}")
    report.add("batches", figures, table)


def main(arguments: list[str]) -> None:
    parser = arguments_parser("query", __doc__)
    parser.add_argument("--parts", help="comma-separated: " + ", ".join(PARTS))
    given = parser.parse_args(arguments)
    parts = chosen(parser, given.parts, PARTS)
    sizes = Sizes.quick() if given.quick else Sizes()
    report = open_report("query", given)
    with threadpool_limits(1), tempfile.TemporaryDirectory(prefix="pathdex-bench-") as folder:
        _run(parts, sizes, report, Path(folder))


def _run(parts: list[str], sizes: Sizes, report: Report, folder: Path) -> None:
    if set(parts) & set(ON_ONE_MODEL):
        saved = save_synthetic(folder / "flat", sizes.items, path_size=sizes.path_size, **sizes.parameters())
        workload = Workload.of(open_model(saved), sizes)
        report.say(f"made a model of {sizes.items:,} items on {len(workload.model.postings):,} paths")
        if "whole" in parts:
            whole(workload, report)
        if "breakdown" in parts:
            peaked = save_synthetic(
                folder / "peaked",
                sizes.items,
                path_size=sizes.path_size,
                sharpness=sizes.sharpness,
                **sizes.parameters(),
            )
            query_parts.measure(workload, Workload.of(open_model(peaked), sizes), report)
        if "filters" in parts:
            query_filters.measure(workload, report)
        if "sessions" in parts:
            sessions(workload, report)
        if "batches" in parts:
            batches(workload, report)
        del workload
    if "growth" in parts or "opening" in parts:
        growth.measure(sizes, folder, report, times="growth" in parts, opening="opening" in parts)
