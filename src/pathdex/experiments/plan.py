"""The steps of a comparison, in order, derived from the request alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from pathdex.config import Config
from pathdex.experiments.method_specs import CANDIDATE_FACTORS, METHOD_SPECS
from pathdex.experiments.presets import PRESETS
from pathdex.experiments.report_request import ReportRequest
from pathdex.experiments.steps import Step
from pathdex.recommenders.deep_retrieval import DeepRetrieval

T = TypeVar("T")

NODES_FACTORS = (0.25, 0.5, 2.0)
PENALTY_FACTORS = (0.01, 0.1, 10.0, 100.0)
PATHS_PER_ITEM = (1, 2, 4, 5, 3)
"""The default 3 comes last, so that a quick study, which takes a few values evenly, includes others."""
BEAMS = (1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 75, 100, 150, 200)
BASE_STEP, BEAM_STEP = "sensitivity-base", "sensitivity-beam"


def make_plan(request: ReportRequest) -> list[Step]:
    """All steps; each depends only on earlier ones."""
    first = request.seeds[0]
    steps = [Step(f"split-seed{seed}", "split", f"split, seed {seed}", {"seed": seed}) for seed in request.seeds]
    for name in request.tuned:
        steps += _trials(request, name)
    steps += [_fit(request, name, seed) for seed in request.seeds for name in request.methods]
    if DeepRetrieval.name in request.methods:
        for seed in request.seeds:
            inputs = {"seed": seed, "options": candidate_options(request)}
            steps.append(Step(f"loss-seed{seed}", "loss", f"retrieval loss, seed {seed}", inputs))
    for name in request.methods:
        if options := curve_options(request, name):
            inputs = {"method": name, "seed": first, "options": options}
            steps.append(Step(f"curve-{name}", "curve", f"accuracy curve of {name}", inputs, replaceable=True))
    steps += [_time(request, seed) for seed in request.seeds]
    return steps + (_sensitivity(request) if request.sensitivity else [])


def query_options(request: ReportRequest, name: str) -> list[dict[str, Any]]:
    """The sets of query options that a method is evaluated with; the first is its main one."""
    main = METHOD_SPECS[name].query_options(request.n)
    if name != DeepRetrieval.name:
        return [main]
    if PRESETS[request.preset].model:
        # The paper's hyper-parameters include the beam.
        main = {"beam": beam_size(request)}
    return [main, *(one for one in candidate_options(request) if one != main)]


def candidate_options(request: ReportRequest) -> list[dict[str, Any]]:
    """Deep Retrieval's query options by number of candidates."""
    return [{"candidates": factor * request.n} for factor in CANDIDATE_FACTORS]


def curve_options(request: ReportRequest, name: str) -> list[dict[str, Any]]:
    """The query options along the accuracy-time curve of a method."""
    return _some(METHOD_SPECS[name].curve_options(request.n), request.budget.max_points)


def beam_size(request: ReportRequest) -> int:
    """B of the comparison's Deep Retrieval."""
    return int(request.parameters[DeepRetrieval.name].get("beam_size", Config().beam_size))


def trial_names(name: str) -> list[str]:
    """The steps that tune a method; the first uses the defaults."""
    return [f"tune-{name}-{number}" for number in range(len(METHOD_SPECS[name].trials) + 1)]


def sensitivity_changes(request: ReportRequest) -> dict[str, dict[str, dict[str, Any]]]:
    """By hyper-parameter: the steps of its study, each with its changes relative to the base step."""
    depth = {**vars(Config()), **request.parameters[DeepRetrieval.name]}["depth"]
    nodes = {f"nodes-{factor:g}": {"nodes_factor": factor} for factor in NODES_FACTORS}
    paths = {f"paths-{count}": {"paths_per_item": count} for count in PATHS_PER_ITEM}
    penalties = {f"penalty-{factor:g}": {"penalty_factor": factor} for factor in PENALTY_FACTORS}
    # The paper's pairs: one layer less and one more with as many nodes, and one layer less with as many paths.
    layers: dict[str, dict[str, Any]] = {f"depth-{one}": {"depth": one} for one in (depth - 1, depth + 1)}
    layers[f"depth-{depth - 1}-same-paths"] = {"depth": depth - 1, "nodes_power": depth / max(1, depth - 1)}
    layers = {step: change for step, change in layers.items() if change["depth"] >= 1}
    # J of the comparison may come from a trial, so all values are planned; an equal one is not fitted again.
    studies: dict[str, dict[str, Any]] = {
        "num_nodes": nodes,
        "paths_per_item": paths,
        "penalty": penalties,
        "depth": layers,
    }
    found = {}
    for parameter, changes in studies.items():
        steps = [*((f"sensitivity-{step}", change) for step, change in changes.items()), (BASE_STEP, {})]
        found[parameter] = dict(_some(steps, None if parameter == "depth" else request.budget.max_points))
    return found


def _trials(request: ReportRequest, name: str) -> list[Step]:
    fixed, options = request.parameters[name], query_options(request, name)[0]
    trials = zip(trial_names(name), [{}, *METHOD_SPECS[name].trials], strict=True)
    shared = {"method": name, "seed": request.seeds[0], "options": options}
    return [
        Step(step, "tune", f"tune {name}, trial {number}", {**shared, "trial": step, "parameters": {**trial, **fixed}})
        for number, (step, trial) in enumerate(trials, start=1)
    ]


def _fit(request: ReportRequest, name: str, seed: int) -> Step:
    inputs = {
        "method": name,
        "parameters": request.parameters[name],
        "seed": seed,
        "options": query_options(request, name),
        "trials": trial_names(name) if name in request.tuned else [],
    }
    return Step(f"fit-{name}-seed{seed}", "fit", f"fit {name}, seed {seed}", inputs)


def _time(request: ReportRequest, seed: int) -> Step:
    """Every method with every set of options; the first seed includes those along the curves."""
    methods: list[list[Any]] = []
    for name in request.methods:
        options = query_options(request, name)
        if seed == request.seeds[0]:
            options += [one for one in curve_options(request, name) if one not in options]
        methods += [[name, one] for one in options]
    budget = request.budget
    inputs = {"seed": seed, "queries": budget.timed_queries, "rounds": budget.timing_rounds, "methods": methods}
    # Times are comparable only within one run, so another set of methods is measured again.
    return Step(f"time-seed{seed}", "time", f"inference time, seed {seed}", inputs, replaceable=True)


def _sensitivity(request: ReportRequest) -> list[Step]:
    seed = request.seeds[0]
    # The paper's hyper-parameters include B; otherwise it is the beam that finds about 10 n candidates.
    beam = beam_size(request) if PRESETS[request.preset].model else None
    beams = sorted({*BEAMS} if beam is None else {*BEAMS, beam})
    changes: dict[str, dict[str, Any]] = {BASE_STEP: {}}
    for study in sensitivity_changes(request).values():
        changes |= study
    return [
        Step(BEAM_STEP, "beams", "sensitivity, beam", {"seed": seed, "beams": beams, "beam": beam}),
        *(
            Step(step, "sensitivity", step.replace("-", ", ", 1), {"seed": seed, "changes": change})
            for step, change in changes.items()
        ),
    ]


def _some(values: Sequence[T], limit: int | None) -> list[T]:
    """At most `limit` of the values, spread evenly, with the first and the last."""
    if limit is None or len(values) <= limit:
        return list(values)
    return [values[round(number * (len(values) - 1) / (limit - 1))] for number in range(limit)]
