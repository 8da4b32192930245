"""The results of the finished steps as one JSON object, with means, tests and provenance."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from operator import itemgetter
from statistics import median_high
from typing import Any

import numpy as np

from pathdex.evaluation.protocol import standard_error
from pathdex.evaluation.significance import PairedTest, holm, paired_test, paired_tests, spread
from pathdex.experiments.plan import (
    BASE_STEP,
    BEAM_STEP,
    curve_options,
    query_options,
    sensitivity_changes,
    trial_names,
)
from pathdex.experiments.provenance import provenance
from pathdex.experiments.report_request import ReportRequest
from pathdex.experiments.step_runner import selected_trial
from pathdex.experiments.steps import Step, StepStore
from pathdex.experiments.timing import TIMES
from pathdex.recommenders.brute_force import BruteForce
from pathdex.recommenders.deep_retrieval import DeepRetrieval

SCHEMA = 1
SPREAD = ("precision", "recall", "distinct_recall", "f_measure", "ndcg", "hit_rate", "mrr", "coverage", "candidates")
"""Figures reported with mean and standard deviation over the seeds."""
_POINT = ("options", "precision", "recall", "f_measure", "f_measure_standard_error", "candidates")
Row = dict[str, Any]


def collect(
    request: ReportRequest, steps: Sequence[Step], store: StepStore, *, checksum: str, command: str
) -> dict[str, Any]:
    """All results of a comparison whose steps are finished."""
    found, records = _Collector(request, store), [store.record(step.name) for step in steps]
    return {
        "schema": SCHEMA,
        "quick": request.quick,
        "n": request.n,
        "seeds": list(request.seeds),
        "methods": list(request.methods),
        "missing": request.missing,
        "data": found.data(),
        "results": found.rows(),
        "comparison": found.comparison(),
        "significance": found.significance(),
        "tuning": found.tuning(),
        "hyper_parameters": {name: fits[0]["parameters"] for name, fits in found.fits.items()},
        "inference_time": found.times(),
        "curves": found.curves(),
        "sensitivity": found.sensitivity() if request.sensitivity else None,
        "popularity": found.popularity(),
        "loss": found.losses(),
        "training": found.training(),
        "provenance": provenance(request, records, store.path, checksum=checksum, command=command),
    }


class _Collector:
    """Reads the steps of one report."""

    def __init__(self, request: ReportRequest, store: StepStore) -> None:
        self.request, self.store, self.seeds = request, store, request.seeds
        self.splits = [store.result(f"split-seed{seed}") for seed in self.seeds]
        self.users = [split["test_users"] for split in self.splits]
        self.fits = {name: [store.result(f"fit-{name}-seed{seed}") for seed in self.seeds] for name in request.methods}
        """The fits of each method, one per seed."""
        self._times = {seed: store.result(f"time-seed{seed}")["rows"] for seed in self.seeds}

    @property
    def has_index(self) -> bool:
        return DeepRetrieval.name in self.request.methods

    def time(self, name: str, options: Mapping[str, Any], seed: int) -> Row:
        return next(row for row in self._times[seed] if row["method"] == name and row["options"] == dict(options))

    def data(self) -> Row:
        """The data set and the sizes of its splits."""
        counts = ("train_users", "train_interactions", "items", "valid_users", "truth_items")
        splits = [
            {**{key: split[key] for key in counts}, "seed": seed, "test_users": len(split["test_users"])}
            for seed, split in zip(self.seeds, self.splits, strict=True)
        ]
        return {**self.splits[0]["data"], "splits": splits}

    def rows(self) -> list[Row]:
        """Every row of `evaluate`, with its seed and times."""
        found = []
        for name, fits in self.fits.items():
            for seed, fit in zip(self.seeds, fits, strict=True):
                for row in fit["rows"]:
                    timed = self.time(name, row["options"], seed)
                    seconds = {key: timed[key] for key in TIMES}
                    found.append({**row, "seed": seed, **seconds, "fit_seconds": fit["fit_seconds"]})
        return found

    def comparison(self) -> list[Row]:
        """Mean and standard deviation over the seeds, by method, options and `filter_seen`."""
        found = []
        for name, fits in self.fits.items():
            seconds, _ = spread([fit["fit_seconds"] for fit in fits])
            for rows in zip(*(fit["rows"] for fit in fits), strict=True):
                head = {"method": name, **{key: rows[0][key] for key in ("options", "filter_seen")}}
                head["main"] = head["options"] == query_options(self.request, name)[0]
                # Between users where there are no seeds to compare.
                error = rows[0]["f_measure_standard_error"] if len(rows) == 1 else None
                spreads = {**_spreads(rows, SPREAD), "f_measure_standard_error": error}
                found.append({**head, **spreads, "fit_seconds": seconds})
        return found

    def significance(self) -> list[Row]:
        """Tests of every method against the best other one; brute force, which is only a ceiling, against its index."""
        found: list[Row] = []
        for number, filter_seen in enumerate((True, False)):
            values = {name: [fit["f_measure_by_user"][number] for fit in fits] for name, fits in self.fits.items()}
            means = {name: spread([sum(one) / len(one) for one in own])[0] for name, own in values.items()}
            pairs = [(name, other) for name in means if (other := self._opponent(name, means))]
            tests = {pair: paired_test(values[pair[0]], values[pair[1]], self.users) for pair in pairs}
            # Two methods that are tested against each other count as one test.
            distinct = {frozenset(pair): test.p for pair, test in tests.items()}
            corrected = dict(zip(distinct, holm(list(distinct.values())), strict=True))
            for (name, other), test in tests.items():
                head = {"method": name, "against": other, "filter_seen": filter_seen}
                found.append({**head, **test.to_dict(), "p_holm": corrected[frozenset((name, other))]})
        return found

    def _opponent(self, name: str, means: Mapping[str, float]) -> str | None:
        if name == BruteForce.name and self.has_index:
            return DeepRetrieval.name
        others = [other for other in means if other not in (name, BruteForce.name)]
        return max(others, key=lambda other: means[other], default=None)

    def tuning(self) -> dict[str, list[Row]]:
        """Every trial of every tuned method."""
        found = {}
        for name in self.request.tuned:
            best = selected_trial(self.store, trial_names(name))["step"]
            found[name] = [
                {
                    "parameters": record["inputs"]["parameters"],
                    **record["result"]["figures"],
                    "fit_seconds": record["result"]["fit_seconds"],
                    "chosen": record["step"] == best,
                }
                for record in map(self.store.record, trial_names(name))
            ]
        return found

    def times(self) -> list[Row]:
        """Seconds per query for each set of options: the median over the seeds, the lowest and the highest round."""
        found = []
        for name in self.request.methods:
            for number, options in enumerate(query_options(self.request, name)):
                rows = [self.time(name, options, seed) for seed in self.seeds]
                figures = {}
                for key in TIMES:
                    figures[key] = median_high(row[key] for row in rows)
                    figures[f"{key}_low"] = min(row[f"{key}_low"] for row in rows)
                    figures[f"{key}_high"] = max(row[f"{key}_high"] for row in rows)
                found.append({"method": name, "options": options, "main": number == 0, **figures})
        return found

    def curves(self) -> dict[str, list[Row]]:
        """F and time along the curve of each method, with the first seed."""
        found = {}
        for name, fits in self.fits.items():
            if curve_options(self.request, name):
                points = self.store.result(f"curve-{name}")["points"]
            else:
                row = next(row for row in fits[0]["rows"] if row["filter_seen"])
                points = [{key: row[key] for key in _POINT}]
            for point in points:
                point["seconds_per_query"] = self.time(name, point["options"], self.seeds[0])["seconds_per_query"]
            found[name] = points
        return found

    def sensitivity(self) -> dict[str, list[Row]]:
        """Figures of Deep Retrieval as one hyper-parameter changes, each value tested against the base value."""
        base, beams = self.store.result(BASE_STEP), self.store.result(BEAM_STEP)
        found: dict[str, list[Row]] = {}
        for parameter, steps in sensitivity_changes(self.request).items():
            others = [one for one in map(self.store.result, steps) if one != base]
            rows = [{**base, "base": True}, *({**one, "base": False} for one in others)]
            found[parameter] = sorted(rows, key=itemgetter("depth", "nodes", "paths_per_item", "penalty"))
        found["beam_size"] = [{**point, "base": point["beam"] == beams["beam"]} for point in beams["points"]]
        for rows in found.values():
            others = [row for row in rows if not row["base"]]
            for row, test in self._against(next(row for row in rows if row["base"]), others):
                row |= {key: getattr(test, key) for key in ("difference", "low", "high", "p", "p_holm")}
        # Does a beam wider than the best one cost accuracy?
        rows = found["beam_size"]
        best = max(rows, key=itemgetter("f_measure"))
        for row, test in self._against(best, rows[rows.index(best) + 1 :]):
            row["p_fall"] = test.p_holm
        for row in itertools.chain(*found.values()):
            del row["f_measure_by_user"]
        return found

    def _against(self, base: Row, rows: Sequence[Row]) -> Iterable[tuple[Row, PairedTest]]:
        """Rows of the first seed with their tests against the base."""
        pairs = [([row["f_measure_by_user"]], [base["f_measure_by_user"]]) for row in rows]
        return zip(rows, paired_tests(pairs, self.users[:1]), strict=True)

    def popularity(self) -> Row:
        """Deciles, long tail, coverage and novelty of each method and of the truth."""
        truth: Row = {"deciles": _mean_list([split["truth_deciles"] for split in self.splits])}
        truth |= {key: spread([split[f"truth_{key}"] for split in self.splits])[0] for key in ("tail", "novelty")}
        found = {name: [fit["popularity"] for fit in fits] for name, fits in self.fits.items()}
        methods = [
            {
                "method": name,
                "deciles": _mean_list([one["deciles"] for one in own]),
                **_spreads(own, ("tail", "coverage", "novelty")),
                "tail_standard_error": standard_error(np.array(own[0]["tail_by_user"])) if len(own) == 1 else None,
            }
            for name, own in found.items()
        ]
        tails = {name: [one["tail_by_user"] for one in own] for name, own in found.items()}
        others = [name for name in tails if self.has_index and name != DeepRetrieval.name]
        tests = paired_tests([(tails[DeepRetrieval.name], tails[name]) for name in others], self.users)
        rows = [{"against": name, **test.to_dict()} for name, test in zip(others, tests, strict=True)]
        return {"truth": truth, "methods": methods, "tail_tests": rows}

    def losses(self) -> list[Row]:
        seeds = self.seeds if self.has_index else ()
        return [{"seed": seed, **self.store.result(f"loss-seed{seed}")} for seed in seeds]

    def training(self) -> list[Row]:
        """The records of every training, and the health of its index."""
        return [
            {"method": name, "seed": seed, "records": fit["records"], "health": fit["health"]}
            for name, fits in self.fits.items()
            for seed, fit in zip(self.seeds, fits, strict=True)
            if fit["records"]
        ]


def _spreads(rows: Sequence[Row], keys: Sequence[str]) -> Row:
    """The mean of each figure, and its standard deviation under `KEY_deviation`.

    A figure that some row lacks is left out: steps that an earlier version finished have fewer figures.
    """
    found: Row = {}
    for key in (key for key in keys if all(key in row for row in rows)):
        found[key], found[f"{key}_deviation"] = spread([row[key] for row in rows])
    return found


def _mean_list(rows: Sequence[Sequence[float]]) -> list[float]:
    return [sum(column) / len(rows) for column in zip(*rows, strict=True)]
