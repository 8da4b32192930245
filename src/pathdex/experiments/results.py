"""The results of the finished steps as one JSON object, with means, tests and provenance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pathdex.evaluation.significance import holm, paired_test, spread
from pathdex.experiments.plan import BASE_STEP, BEAM_STEP, curve_options, query_options, sensitivity_points, trial_names
from pathdex.experiments.provenance import provenance
from pathdex.experiments.report_request import ReportRequest
from pathdex.experiments.step_runner import selected_trial
from pathdex.experiments.steps import Step, StepStore
from pathdex.recommenders.brute_force import BruteForce
from pathdex.recommenders.deep_retrieval import DeepRetrieval

SCHEMA = 1
SPREAD = ("precision", "recall", "f_measure", "ndcg", "hit_rate", "mrr", "coverage", "candidates")
"""Figures reported with mean and standard deviation over the seeds."""
Row = dict[str, Any]


def collect(
    request: ReportRequest, steps: Sequence[Step], store: StepStore, *, checksum: str, command: str
) -> dict[str, Any]:
    """All results of a comparison whose steps are finished."""
    found = _Collector(request, store)
    splits = {seed: store.result(f"split-seed{seed}") for seed in request.seeds}
    first = splits[request.seeds[0]]
    return {
        "schema": SCHEMA,
        "quick": request.quick,
        "n": request.n,
        "seeds": list(request.seeds),
        "methods": list(request.methods),
        "missing": request.missing,
        "data": {
            **first["data"],
            "splits": [
                {**{key: split[key] for key in _COUNTS}, "seed": seed, "test_users": len(split["test_users"])}
                for seed, split in splits.items()
            ],
        },
        "results": found.rows(),
        "comparison": found.comparison(),
        "significance": found.significance(),
        "tuning": found.tuning(),
        "hyper_parameters": {name: found.fit(name, request.seeds[0])["parameters"] for name in request.methods},
        "inference_time": found.times(),
        "curves": found.curves(),
        "sensitivity": found.sensitivity() if request.sensitivity else None,
        "popularity": found.popularity(),
        "loss": found.losses(),
        "training": found.training(),
        "provenance": provenance(request, steps, store, checksum=checksum, command=command),
    }


_COUNTS = ("train_users", "train_interactions", "items", "valid_users", "truth_items")


class _Collector:
    """Reads the steps of one report."""

    def __init__(self, request: ReportRequest, store: StepStore) -> None:
        self.request, self.store = request, store
        self.users = [store.result(f"split-seed{seed}")["test_users"] for seed in request.seeds]
        self._fits = {
            (name, seed): store.result(f"fit-{name}-seed{seed}") for name in request.methods for seed in request.seeds
        }
        self._times = {seed: store.result(f"time-seed{seed}")["rows"] for seed in request.seeds}

    @property
    def has_index(self) -> bool:
        return DeepRetrieval.name in self.request.methods

    def fit(self, name: str, seed: int) -> Row:
        return self._fits[name, seed]

    def time(self, name: str, options: Mapping[str, Any], seed: int) -> Row:
        return next(row for row in self._times[seed] if row["method"] == name and row["options"] == dict(options))

    def rows(self) -> list[Row]:
        """Every row of `evaluate`, with its seed and times."""
        found = []
        for (name, seed), fit in self._fits.items():
            for row in fit["rows"]:
                timed = self.time(name, row["options"], seed)
                seconds = {key: timed[key] for key in ("seconds_per_query", "seconds_per_query_in_batches")}
                found.append({**row, "seed": seed, **seconds, "fit_seconds": fit["fit_seconds"]})
        return found

    def comparison(self) -> list[Row]:
        """Mean and standard deviation over the seeds, by method, options and `filter_seen`."""
        found = []
        for name in self.request.methods:
            fits = [self.fit(name, seed) for seed in self.request.seeds]
            for number, row in enumerate(fits[0]["rows"]):
                figures: Row = {}
                for key in SPREAD:
                    figures[key], figures[f"{key}_deviation"] = spread([fit["rows"][number][key] for fit in fits])
                figures["fit_seconds"], _ = spread([fit["fit_seconds"] for fit in fits])
                main = row["options"] == query_options(self.request, name)[0]
                head = {"method": name, "options": row["options"], "filter_seen": row["filter_seen"], "main": main}
                found.append({**head, **figures})
        return found

    def significance(self) -> list[Row]:
        """Tests of every method against the best other one; brute force, which is only a ceiling, against its index."""
        found: list[Row] = []
        for number, filter_seen in enumerate((True, False)):
            values = {
                name: [self.fit(name, seed)["f_measure_by_user"][number] for seed in self.request.seeds]
                for name in self.request.methods
            }
            means = {name: spread([sum(one) / len(one) for one in own])[0] for name, own in values.items()}
            pairs = {name: self._opponent(name, means) for name in means}
            tests = {
                frozenset((name, other)): (name, paired_test(values[name], values[other], self.users))
                for name, other in pairs.items()
                if other is not None
            }
            corrected = dict(zip(tests, holm([test.p for _, test in tests.values()]), strict=True))
            for name, other in pairs.items():
                if other is not None:
                    owner, test = tests[frozenset((name, other))]
                    row = test.to_dict()
                    if owner != name:
                        row |= {"difference": -test.difference, "low": -test.high, "high": -test.low}
                        row["by_seed"] = [-one for one in test.by_seed]
                    p = corrected[frozenset((name, other))]
                    found.append({"method": name, "against": other, "filter_seen": filter_seen, **row, "p_holm": p})
        return found

    def _opponent(self, name: str, means: Mapping[str, float]) -> str | None:
        if name == BruteForce.name and self.has_index:
            return DeepRetrieval.name
        others = [other for other in means if other not in (name, BruteForce.name)]
        return max(others, key=lambda other: means[other]) if others else None

    def tuning(self) -> dict[str, list[Row]]:
        """Every trial of every tuned method."""
        found = {}
        for name in self.request.tuned:
            best = selected_trial(self.store, trial_names(name))["step"]
            records = [self.store.record(step) for step in trial_names(name)]
            found[name] = [
                {
                    "parameters": record["inputs"]["parameters"],
                    **record["result"]["figures"],
                    "fit_seconds": record["result"]["fit_seconds"],
                    "chosen": record["step"] == best,
                }
                for record in records
            ]
        return found

    def times(self) -> list[Row]:
        """Seconds per query for each set of options: the median over the seeds, the lowest and the highest round."""
        found = []
        for name in self.request.methods:
            for number, options in enumerate(query_options(self.request, name)):
                rows = [self.time(name, options, seed) for seed in self.request.seeds]
                figures = {}
                for key in ("seconds_per_query", "seconds_per_query_in_batches"):
                    ordered = sorted(row[key] for row in rows)
                    figures[key] = ordered[len(ordered) // 2]
                    figures[f"{key}_low"] = min(row[f"{key}_low"] for row in rows)
                    figures[f"{key}_high"] = max(row[f"{key}_high"] for row in rows)
                found.append({"method": name, "options": options, "main": number == 0, **figures})
        return found

    def curves(self) -> dict[str, list[Row]]:
        """F and time along the curve of each method, with the first seed."""
        seed, found = self.request.seeds[0], {}
        for name in self.request.methods:
            if curve_options(self.request, name):
                points = self.store.result(f"curve-{name}")["points"]
            else:
                row = next(row for row in self.fit(name, seed)["rows"] if row["filter_seen"])
                points = [{key: row[key] for key in ("options", "precision", "recall", "f_measure", "candidates")}]
            timed = [self.time(name, point["options"], seed)["seconds_per_query"] for point in points]
            found[name] = [{**point, "seconds_per_query": one} for point, one in zip(points, timed, strict=True)]
        return found

    def sensitivity(self) -> dict[str, list[Row]]:
        """Figures of Deep Retrieval as one hyper-parameter changes, each value tested against the base value."""
        found: dict[str, list[Row]] = {}
        for parameter, points in sensitivity_points(self.request).items():
            base, others = (
                self.store.result(BASE_STEP),
                [self.store.result(step) for _, step in points if step != BASE_STEP],
            )
            rows = [{**base, "base": True}, *({**one, "base": False} for one in others if one != base)]
            found[parameter] = sorted(rows, key=_order(parameter))
        beams = self.store.result(BEAM_STEP)
        found["beam_size"] = [{**point, "base": point["beam"] == beams["beam"]} for point in beams["points"]]
        for rows in found.values():
            base_f = next(row["f_measure_by_user"] for row in rows if row["base"])
            others = [row for row in rows if not row["base"]]
            tests = [paired_test([row["f_measure_by_user"]], [base_f], self.users[:1]) for row in others]
            for row, test, p in zip(others, tests, holm([test.p for test in tests]), strict=True):
                row |= {"difference": test.difference, "low": test.low, "high": test.high, "p": test.p, "p_holm": p}
        self._test_falls(found["beam_size"])
        return {
            parameter: [{key: value for key, value in row.items() if key != "f_measure_by_user"} for row in rows]
            for parameter, rows in found.items()
        }

    def _test_falls(self, rows: list[Row]) -> None:
        """Test every beam wider than the best one against it: does a wider beam cost accuracy?"""
        best = max(range(len(rows)), key=lambda number: float(rows[number]["f_measure"]))
        top, wider = rows[best]["f_measure_by_user"], rows[best + 1 :]
        tests = [paired_test([row["f_measure_by_user"]], [top], self.users[:1]) for row in wider]
        for row, p in zip(wider, holm([test.p for test in tests]), strict=True):
            row["p_fall"] = p

    def popularity(self) -> Row:
        """Deciles, long tail, coverage and novelty of each method and of the truth."""
        splits = [self.store.result(f"split-seed{seed}") for seed in self.request.seeds]
        truth = {
            "deciles": _mean_list([split["truth_deciles"] for split in splits]),
            "tail": spread([split["truth_tail"] for split in splits])[0],
            "novelty": spread([split["truth_novelty"] for split in splits])[0],
        }
        methods, tails = [], {}
        for name in self.request.methods:
            own = [self.fit(name, seed)["popularity"] for seed in self.request.seeds]
            tails[name] = [one["tail_by_user"] for one in own]
            row: Row = {"method": name, "deciles": _mean_list([one["deciles"] for one in own])}
            for key in ("tail", "coverage", "novelty"):
                row[key], row[f"{key}_deviation"] = spread([one[key] for one in own])
            methods.append(row)
        others = [name for name in tails if self.has_index and name != DeepRetrieval.name]
        tests = [paired_test(tails[DeepRetrieval.name], tails[name], self.users) for name in others]
        corrected = holm([test.p for test in tests])
        rows = [
            {"against": name, **test.to_dict(), "p_holm": p}
            for name, test, p in zip(others, tests, corrected, strict=True)
        ]
        return {"truth": truth, "methods": methods, "tail_tests": rows}

    def losses(self) -> list[Row]:
        if not self.has_index:
            return []
        return [{"seed": seed, **self.store.result(f"loss-seed{seed}")} for seed in self.request.seeds]

    def training(self) -> list[Row]:
        """The records of every training, and the health of its index."""
        return [
            {"method": name, "seed": seed, "records": fit["records"], "health": fit["health"]}
            for (name, seed), fit in self._fits.items()
            if fit["records"]
        ]


def _order(parameter: str) -> Any:
    if parameter == "depth":
        return lambda row: (row["depth"], row["nodes"])
    key = {"num_nodes": "nodes"}.get(parameter, parameter)
    return lambda row: row[key]


def _mean_list(rows: Sequence[Sequence[float]]) -> list[float]:
    return [sum(column) / len(rows) for column in zip(*rows, strict=True)]
