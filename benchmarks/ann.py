"""Deep Retrieval against nearest-neighbour indexes over the same vectors: recall of the truth by time.

    python -m benchmarks ann                                   # MovieLens-1M, #nowplaying, 1,000,000 synthetic items
    python -m benchmarks ann --sets ml-1m --families hnswlib,scann
    python -m benchmarks ann --quick                           # check the benchmark itself

Every method gets the same user vectors and returns the n best items outside the history, one query at a time on one
thread, including the final ordering. An index searches n + |history| items, so that n remain. Times exclude the
encoder, which is the same for all; verdicts are given with and without it.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray
from rich.table import Table
from threadpoolctl import threadpool_limits

from benchmarks.ann_curves import OPERATING_POINTS, draw, frontier, verdict
from benchmarks.ann_indexes import FAMILIES, Codes, Index, Settings, as_items, as_queries, padded
from benchmarks.ann_models import NAMES, Trained, trained
from benchmarks.exhaustive import Exhaustive
from benchmarks.report import Report, arguments_parser, chosen, open_report
from benchmarks.timing import Task, alternate
from pathdex import metrics
from pathdex.kernels.hashing import EMPTY, find_slot, new_table
from pathdex.retrieval.filters import Filters

BEAMS = (1, 2, 5, 10, 20, 30, 50, 75, 100, 150, 200)
CANDIDATE_FACTORS = (2, 5, 10, 20, 40)
"""Candidates as multiples of n."""
Search = Callable[[int], Codes]


@dataclass(eq=False)
class Bench:
    """One data set: queries, truth and timing."""

    data: Trained
    timed: int
    """Number of timed queries; recall uses all."""
    repeats: int
    users: NDArray[np.float32] = field(init=False)
    seen: list[NDArray[np.int32]] = field(init=False)

    def __post_init__(self) -> None:
        self.states = [self.data.model.retriever.encoder.encode(history) for history in self.data.queries.history]
        self.users = np.stack([state.vector for state in self.states])
        self.seen = [np.unique(row) for row in self.data.queries.history]
        self.filters = Filters(exclude=self.data.queries.history)
        self.timed = min(self.timed, len(self.seen))

    def measure(self, searches: dict[str, Search]) -> dict[str, dict[str, Any]]:
        """Recall and time of several searches, timed in turns."""
        points = {}
        for name, search in searches.items():
            found = np.full((len(self.seen), self.data.n), -1, np.int64)
            for query in range(len(self.seen)):
                items = search(query)
                found[query, : len(items)] = items
            recall = metrics.recall(metrics.hit_matrix(found, self.data.queries.truth), self.data.queries.truth)
            error = float(recall.std(ddof=1) / np.sqrt(len(recall)))
            points[name] = {"recall": float(recall.mean()), "standard_error": error, "short": int((found < 0).sum())}
        times = alternate({name: Task(search, self.timed) for name, search in searches.items()}, self.repeats)
        return {name: {**points[name], **times[name].to_dict()} for name in searches}

    def deep_retrieval(self, **options: int) -> Search:
        model, n = self.data.model, self.data.n
        budget, retriever = model.search_options(n, options), model.retriever

        def search(query: int) -> Codes:
            return retriever.best_items(self.states[query], self.filters, query, n=n, **budget)[0]

        return search

    def operating_points(self) -> dict[str, Search]:
        n = self.data.n
        options = {"beam": {"beam": 50}, "budget": {"candidates": min(10 * n, len(self.data.model.items))}}
        return {name: self.deep_retrieval(**options[name]) for name in OPERATING_POINTS}

    def exact(self, exhaustive: Exhaustive) -> Search:
        return lambda query: exhaustive.best(self.users[query], self.seen[query], self.data.n)

    def index(self, index: Index, space: str) -> Search:
        queries, n = padded(as_queries(self.users, space), index.multiple), self.data.n
        items = len(self.data.model.items)

        def search(query: int) -> Codes:
            seen = self.seen[query]
            return _unseen(index.search(queries[query : query + 1], min(items, n + len(seen))), seen, n)

        return search


@njit(cache=True, nogil=True)
def _unseen(found: Codes, seen: NDArray[np.int32], n: int) -> Codes:
    """The first n of the found items that are not among the seen ones."""
    table = new_table(len(seen))
    for item in seen:
        table[find_slot(table, item), 0] = item
    kept = np.empty(n, np.int64)
    count = 0
    for item in found:
        if count == n:
            break
        if item >= 0 and table[find_slot(table, item), 0] == EMPTY:
            kept[count] = item
            count += 1
    return kept[:count]


def measure_set(
    name: str, data: Trained, families: list[type[Index]], bench: Bench, report: Report, most_builds: int | None
) -> None:
    """Measure one data set; the figures are written after each family."""
    model = data.model
    encode = alternate(
        {"encode": Task(lambda query: model.retriever.encoder.encode(data.queries.history[query]), bench.timed)}, 3
    )
    figures: dict[str, Any] = {
        "items": len(model.items),
        "users": len(data.queries),
        "n": data.n,
        "encode_microseconds": encode["encode"].microseconds,
        "training": {key: value for key, value in data.training.items() if key != "records"},
        "deep_retrieval": _deep_retrieval(bench, data),
        "families": {},
    }
    before = report.parts.get(name, {})
    if before.get("training") == figures["training"]:
        # Families of an earlier run with the same model stay: each was timed together with Deep Retrieval.
        figures["families"] |= before["families"]
    exhaustive = Exhaustive(model)
    figures["brute_force"] = bench.measure({"brute force": bench.exact(exhaustive)})["brute force"]
    del exhaustive
    gc.collect()
    for family in families:
        missing = family.missing()
        if missing is not None:
            figures["families"][family.family] = {"missing": missing}
            report.say(f"{name}: {family.family} is left out: {missing}")
            continue
        figures["families"][family.family] = _family(
            family, bench, report, name, figures["encode_microseconds"], most_builds
        )
        report.add(name, figures)
        draw(report.plot_file(f"-{name}"), name, figures)
    report.add(name, figures, _table(name, figures))
    draw(report.plot_file(f"-{name}"), name, figures)


def _deep_retrieval(bench: Bench, data: Trained) -> dict[str, Any]:
    model, n = data.model, data.n
    beams = [one for one in BEAMS if one <= len(model.postings)]
    counts = [one * n for one in CANDIDATE_FACTORS if one * n <= len(model.items)]
    points = bench.measure(
        {
            **{f"beam {one}": bench.deep_retrieval(beam=one) for one in beams},
            **{f"candidates {one}": bench.deep_retrieval(candidates=one) for one in counts},
        }
    )
    retriever = model.retriever
    searched = {
        "postings": model.postings.items.nbytes + retriever.on_paths.log_shares.nbytes + model.postings.offsets.nbytes,
        "trie": retriever.trie.first_child.nbytes + retriever.trie.label.nbytes,
        "network": sum(one.nbytes for one in retriever.structure if isinstance(one, np.ndarray)),
        "paths of each item, for short allow lists": model.paths.nbytes + model.model_state.counts.nbytes,
    }
    return {
        "points": points,
        "build_seconds": data.structure_seconds,
        "bytes_per_item": {part: size / len(model.items) for part, size in searched.items()},
        "bytes_beyond_vectors_per_item": sum(searched.values()) / len(model.items),
    }


def _family(
    family: type[Index], bench: Bench, report: Report, name: str, encode: float, most_builds: int | None
) -> dict[str, Any]:
    """The first `most_builds` builds of one family, each timed together with Deep Retrieval's operating points."""
    model = bench.data.model
    count = len(model.items)
    builds, own = [], []
    for parameters in family.grid(count)[:most_builds]:
        items = padded(as_items(model.item_vectors, model.item_bias, parameters["space"]), family.multiple)
        index = family()
        clock, processor = time.perf_counter(), time.process_time()
        index.build(items, **parameters)
        seconds = {"seconds": time.perf_counter() - clock, "cpu_seconds": time.process_time() - processor}
        size = index.nbytes()
        points = []
        deep = bench.measure(bench.operating_points())
        for settings in family.settings(count):
            index.set(**settings)
            points.append(
                {"settings": settings, **bench.measure({"index": bench.index(index, parameters["space"])})["index"]}
            )
        own.append(deep)
        builds.append(
            {
                "parameters": parameters,
                "build": seconds,
                "bytes_per_item": size / count,
                "bytes_beyond_vectors_per_item": size / count - items.itemsize * (model.config.embedding_dim + 1),
                "points": points,
            }
        )
        report.say(f"{name}: {family.family} {_words(parameters)}: built in {seconds['seconds']:.1f} s")
        del index, items
        gc.collect()
    beside = {
        point: {
            "recall": own[0][point]["recall"],
            "microseconds": float(np.median([one[point]["microseconds"] for one in own])),
        }
        for point in OPERATING_POINTS
    }
    curve = frontier([(point["microseconds"], point["recall"]) for one in builds for point in one["points"]])
    verdicts = {
        point: {"without_encoder": verdict(one, curve, 0.0), "with_encoder": verdict(one, curve, encode)}
        for point, one in beside.items()
    }
    return {"builds": builds, "frontier": curve, "verdicts": verdicts}


def _words(parameters: Settings) -> str:
    return ", ".join(f"{key} {value}" for key, value in parameters.items())


def _table(name: str, figures: dict[str, Any]) -> Table:
    n, encode = figures["n"], figures["encode_microseconds"]
    title = (
        f"{name}: {figures['items']:,} items, recall@{n} of {figures['users']:,} users' truth, one thread; encoding "
    )
    title += f"adds {encode:.0f} us to all"
    columns = ("index", "best recall", "build, s", "bytes/item beyond vectors")
    table = Table(*columns, *(f"at the time of {label}" for label in OPERATING_POINTS.values()), title=title)
    deep = figures["deep_retrieval"]
    best = max(point["recall"] for point in deep["points"].values())
    table.add_row(
        "Deep Retrieval",
        f"{100 * best:.2f}%",
        f"{deep['build_seconds']:.0f}",
        f"{deep['bytes_beyond_vectors_per_item']:.0f}",
        end_section=True,
    )
    exact = figures["brute_force"]
    table.add_row("brute force", f"{100 * exact['recall']:.2f}%, {exact['microseconds']:,.0f} us")
    for family, row in figures["families"].items():
        if "missing" in row:
            table.add_row(family, row["missing"])
            continue
        cells = [_cell(row["verdicts"][point]["without_encoder"]) for point in OPERATING_POINTS]
        table.add_row(
            family,
            f"{100 * row['frontier'][-1][1]:.2f}%",
            " to ".join(f"{value:.0f}" for value in _range([one["build"]["seconds"] for one in row["builds"]])),
            " to ".join(
                f"{value:.0f}" for value in _range([one["bytes_beyond_vectors_per_item"] for one in row["builds"]])
            ),
            *cells,
        )
    return table


def _cell(one: dict[str, Any]) -> str:
    reached = "no answer in that time" if one["curve_recall"] is None else f"{100 * one['curve_recall']:.2f}%"
    return f"{reached}; Deep Retrieval {one['verdict']}: {100 * one['recall']:.2f}%, {one['microseconds']:.0f} us"


def _range(values: list[float]) -> tuple[float, float]:
    return min(values), max(values)


def main(arguments: list[str]) -> None:
    parser = arguments_parser("ann", __doc__)
    known = tuple(family.family.replace(" ", "-").lower() for family in FAMILIES)
    parser.add_argument("--sets", help="comma-separated: " + ", ".join(NAMES))
    parser.add_argument("--families", help="comma-separated: " + ", ".join(known))
    parser.add_argument("--builds", type=int, help="number of builds of each family [default: all]")
    parser.add_argument("--items", type=int, help="size of the synthetic set [default: 1,000,000]")
    parser.add_argument("--retrain", action="store_true", help="train again instead of using cached models")
    given = parser.parse_args(arguments)
    sets = chosen(parser, given.sets or ("synthetic" if given.quick else None), NAMES)
    names = chosen(parser, given.families, known)
    families = [family for family, name in zip(FAMILIES, known, strict=True) if name in names]
    items = given.items or (5_000 if given.quick else 1_000_000)
    report = open_report("ann", given)
    for name in sets:
        data = trained(
            name, report, items=items, test_users=200 if given.quick else 2000, quick=given.quick, retrain=given.retrain
        )
        with threadpool_limits(1):
            bench = Bench(data, timed=100 if given.quick else 500, repeats=2 if given.quick else 3)
            measure_set(name, data, families, bench, report, given.builds)
