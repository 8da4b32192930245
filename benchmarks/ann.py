"""Deep Retrieval against nearest-neighbour indexes over the same vectors: recall of the truth by time.

    python -m benchmarks ann                                   # three real sets and 1,000,000 synthetic items
    python -m benchmarks ann --sets ml-1m --families hnswlib,scann
    python -m benchmarks ann --quick                           # check the benchmark itself

Every method gets the same user vectors and returns the n best items outside the history, one query at a time on one
thread, including the final ordering. An index searches n + |history| items, so that n remain. Times exclude the
encoder, which is the same for all. Deep Retrieval's points are timed in turn with those of each build of a family; the
verdict compares the two frontiers at every time from 50 microseconds on.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray
from rich.table import Table
from threadpoolctl import threadpool_limits

from benchmarks.ann_curves import FASTEST, Point, draw, frontier, time_and_recall, verdict, worst
from benchmarks.ann_indexes import FAMILIES, Codes, Index, Settings, as_items, as_queries, padded
from benchmarks.ann_models import NAMES, Trained, trained
from benchmarks.exhaustive import Exhaustive
from benchmarks.report import Report, arguments_parser, chosen, open_report
from benchmarks.timing import Task, alternate
from pathdex import metrics
from pathdex.kernels.hashing import EMPTY, find_slot, new_table
from pathdex.recommenders.deep_retrieval import DeepRetrieval
from pathdex.retrieval.filters import Filters

BEAMS = (1, 2, 3, 5, 10, 20, 30, 50, 75, 100, 150, 200)
CANDIDATE_FACTORS = (2, 3, 5, 10, 20, 40)
"""Candidates as multiples of n."""
PAIRS = [(beam, factor) for beam in (1, 2, 3, 5, 10, 20, 30, 50) for factor in (3, 5, 10)]
"""Beams with candidates: most of them come from neighbours if the beam is narrow."""
OWN = {"deep_retrieval": "Deep Retrieval", "index_alone": "without neighbours"}
"""Curves of Deep Retrieval: as trained, and with its index alone."""
EITHER = "either"
"""The verdict for both together: at each time, the better of the two."""
JUDGED = {**OWN, EITHER: "the better of both"}


@dataclass(frozen=True)
class Search:
    """One point of a curve."""

    call: Callable[[int], Codes]
    """The answer to a query."""
    prepare: Callable[[], Any] = lambda: None
    """Called before a series of queries."""


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
        model = self.data.model
        self.own = {"deep_retrieval": self._own_points(model), "index_alone": {}}
        if model.retriever.neighbours is not None:
            self.own["index_alone"] = self._own_points(model.without_neighbours())
        self._own_recall: dict[tuple[str, str], dict[str, Any]] = {}

    def measure(self, searches: Mapping[str, Search]) -> tuple[dict[str, Any], dict[str, Any]]:
        """Recall and time of searches, and of Deep Retrieval's by curve, all timed in turns."""
        points = {("", name): search for name, search in searches.items()}
        own = {(curve, name): search for curve, group in self.own.items() for name, search in group.items()}
        for key, search in own.items():
            if key not in self._own_recall:
                self._own_recall[key] = self._recall(search)
        found = {**self._own_recall, **{key: self._recall(search) for key, search in points.items()}}
        tasks = {key: Task(search.call, self.timed, search.prepare) for key, search in {**points, **own}.items()}
        figures: dict[str, dict[str, Any]] = {"": {}, **{curve: {} for curve in self.own}}
        for (curve, name), times in alternate(tasks, self.repeats).items():
            figures[curve][name] = {**found[curve, name], **times.to_dict()}
        return figures.pop(""), figures

    def _recall(self, search: Search) -> dict[str, Any]:
        search.prepare()
        found = np.full((len(self.seen), self.data.n), -1, np.int64)
        for query in range(len(self.seen)):
            items = search.call(query)
            found[query, : len(items)] = items
        recall = metrics.recall(metrics.hit_matrix(found, self.data.queries.truth), self.data.queries.truth)
        error = float(recall.std(ddof=1) / np.sqrt(len(recall)))
        return {"recall": float(recall.mean()), "standard_error": error, "short": int((found < 0).sum())}

    def _own_points(self, model: DeepRetrieval) -> dict[str, Search]:
        n = self.data.n
        beams = [one for one in BEAMS if one <= len(model.postings)]
        counts = [one * n for one in CANDIDATE_FACTORS if one * n <= len(model.items)]
        pairs = PAIRS if model.retriever.neighbours is not None else []
        return {
            **{
                f"beam {beam}, candidates {factor * n}": self._deep_retrieval(model, beam=beam, candidates=factor * n)
                for beam, factor in pairs
                if beam <= len(model.postings) and factor * n <= len(model.items)
            },
            **{f"beam {one}": self._deep_retrieval(model, beam=one) for one in beams},
            **{f"candidates {one}": self._deep_retrieval(model, candidates=one) for one in counts},
        }

    def _deep_retrieval(self, model: DeepRetrieval, **options: int) -> Search:
        n, retriever = self.data.n, model.retriever
        budget = model.search_options(n, options)

        def search(query: int) -> Codes:
            return retriever.best_items(self.states[query], self.filters, query, n=n, **budget)[0]

        return Search(search)

    def exact(self, exhaustive: Exhaustive) -> Search:
        return Search(lambda query: exhaustive.best(self.users[query], self.seen[query], self.data.n))

    def index(self, index: Index, space: str, settings: Settings) -> Search:
        queries, n = padded(as_queries(self.users, space), index.multiple), self.data.n
        items = len(self.data.model.items)

        def search(query: int) -> Codes:
            seen = self.seen[query]
            return _unseen(index.search(queries[query : query + 1], min(items, n + len(seen))), seen, n)

        return Search(search, partial(index.set, **settings))


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
    exhaustive = Exhaustive(model)
    exact, own = bench.measure({"brute force": bench.exact(exhaustive)})
    del exhaustive
    gc.collect()
    figures: dict[str, Any] = {
        "items": len(model.items),
        "users": len(data.queries),
        "n": data.n,
        "encode_microseconds": encode["encode"].microseconds,
        "training": {key: value for key, value in data.training.items() if key != "records"},
        "brute_force": exact["brute force"],
        "deep_retrieval": {"points": own["deep_retrieval"], **_cost(data)},
        "index_alone": {"points": own["index_alone"]},
        "families": {},
    }
    before = report.parts.get(name, {})
    if before.get("training") == figures["training"] and "index_alone" in before:
        # Families of an earlier run with the same model stay: each was timed together with Deep Retrieval.
        figures["families"] |= before["families"]
    for family in families:
        missing = family.missing()
        if missing is not None:
            figures["families"][family.family] = {"missing": missing}
            report.say(f"{name}: {family.family} is left out: {missing}")
            continue
        figures["families"][family.family] = _family(family, bench, report, name, most_builds)
        report.add(name, figures)
        draw(report.plot_file(f"-{name}"), name, figures)
    report.add(name, figures, _table(name, figures))
    draw(report.plot_file(f"-{name}"), name, figures)


def _cost(data: Trained) -> dict[str, Any]:
    """Build time and memory of Deep Retrieval."""
    model, retriever = data.model, data.model.retriever
    searched = {
        "postings": model.postings.items.nbytes + retriever.on_paths.log_shares.nbytes + model.postings.starts.nbytes,
        "trie": retriever.trie.first_child.nbytes + retriever.trie.label.nbytes,
        "network": sum(one.nbytes for one in retriever.structure if isinstance(one, np.ndarray)),
        "paths of each item, for short allow lists": model.paths.nbytes + model.model_state.counts.nbytes,
        "vectors in 8 bits": retriever.compact.nbytes,
        "neighbours": sum(one.nbytes for one in retriever.neighbours or ()),
    }
    return {
        "build_seconds": data.structure_seconds,
        "bytes_per_item": {part: size / len(model.items) for part, size in searched.items()},
        "bytes_beyond_vectors_per_item": sum(searched.values()) / len(model.items),
    }


def _family(family: type[Index], bench: Bench, report: Report, name: str, most_builds: int | None) -> dict[str, Any]:
    """The first `most_builds` builds of one family, each timed together with Deep Retrieval."""
    model = bench.data.model
    count = len(model.items)
    builds = []
    for parameters in family.grid(count)[:most_builds]:
        items = padded(as_items(model.item_vectors, model.item_bias, parameters["space"]), family.multiple)
        index = family()
        clock, processor = time.perf_counter(), time.process_time()
        index.build(items, **parameters)
        seconds = {"seconds": time.perf_counter() - clock, "cpu_seconds": time.process_time() - processor}
        size = index.nbytes()
        settings = family.settings(count)
        points, own = bench.measure({_words(one): bench.index(index, parameters["space"], one) for one in settings})
        verdicts = judge({key: time_and_recall(group.values()) for key, group in own.items()}, points)
        builds.append(
            {
                "parameters": parameters,
                "build": seconds,
                "bytes_per_item": size / count,
                "bytes_beyond_vectors_per_item": size / count - items.itemsize * (model.config.embedding_dim + 1),
                "points": points,
                "own_microseconds": {
                    key: {point: row["cpu_microseconds"] for point, row in group.items()} for key, group in own.items()
                },
                "verdicts": verdicts,
            }
        )
        said = "; ".join(f"{JUDGED[key]} {_shown(one)}" for key, one in verdicts.items())
        report.say(f"{name}: {family.family} {_words(parameters)}: built in {seconds['seconds']:.1f} s; {said}")
        del index, items
        gc.collect()
    return {
        "builds": builds,
        "frontier": frontier([point for one in builds for point in time_and_recall(one["points"].values())]),
        "verdicts": {key: worst([one["verdicts"][key] for one in builds]) for key in builds[0]["verdicts"]},
    }


def judge(own: Mapping[str, list[Point]], points: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    """The verdict for each curve of Deep Retrieval, and for both together, against the points of an index."""
    curve = frontier(time_and_recall(points.values()))
    groups = {**own, EITHER: [point for group in own.values() for point in group]}
    return {key: verdict(frontier(group), curve) for key, group in groups.items() if group}


def _words(parameters: Settings) -> str:
    return ", ".join(f"{key} {value}" for key, value in parameters.items())


def _table(name: str, figures: dict[str, Any]) -> Table:
    n, encode = figures["n"], figures["encode_microseconds"]
    title = (
        f"{name}: {figures['items']:,} items, recall@{n} of {figures['users']:,} users' truth, one thread; encoding "
        f"adds {encode:.0f} us to all; lowest ratio of recalls at equal time from {FASTEST:.0f} us on"
    )
    table = Table("index", "best recall", "build, s", "bytes/item beyond vectors", *JUDGED.values(), title=title)
    deep = figures["deep_retrieval"]
    for key, label in OWN.items():
        if points := figures[key]["points"]:
            cost = (f"{deep['build_seconds']:.0f}", f"{deep['bytes_beyond_vectors_per_item']:.0f}")
            best = max(point["recall"] for point in points.values())
            table.add_row(label, f"{100 * best:.2f}%", *(cost if key == "deep_retrieval" else ()))
    exact = figures["brute_force"]
    table.add_row("brute force", f"{100 * exact['recall']:.2f}%, {exact['cpu_microseconds']:,.0f} us", end_section=True)
    for family, row in figures["families"].items():
        if "missing" in row:
            table.add_row(family, row["missing"])
            continue
        table.add_row(
            family,
            f"{100 * row['frontier'][-1][1]:.2f}%",
            " to ".join(f"{value:.0f}" for value in _range([one["build"]["seconds"] for one in row["builds"]])),
            " to ".join(
                f"{value:.0f}" for value in _range([one["bytes_beyond_vectors_per_item"] for one in row["builds"]])
            ),
            *(_shown(row["verdicts"][key]) for key in JUDGED if key in row["verdicts"]),
        )
    return table


def _shown(one: dict[str, Any]) -> str:
    lowest = one["lowest"]
    if lowest is None:
        return f"{one['verdict']}: the index has no answer"
    recall = 100 * (lowest["recall"] or 0.0)
    return (
        f"{one['verdict']}: {lowest['ratio']:.3f} at {lowest['microseconds']:.0f} us, "
        f"{recall:.2f}% to {100 * lowest['curve_recall']:.2f}%"
    )


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
            bench = Bench(data, timed=100 if given.quick else 500, repeats=2 if given.quick else 5)
            measure_set(name, data, families, bench, report, given.builds)
