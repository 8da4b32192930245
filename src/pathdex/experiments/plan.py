"""The steps of a comparison, in order, from the request alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from pathdex.config import Config
from pathdex.experiments.method_specs import BUDGETS, METHOD_SPECS
from pathdex.experiments.presets import PRESETS
from pathdex.experiments.report_request import Request
from pathdex.experiments.steps import Step
from pathdex.recommenders.deep_retrieval import DeepRetrieval

T = TypeVar("T")

NODES_FACTORS = (0.25, 0.5, 2.0)
PENALTY_FACTORS = (0.01, 0.1, 10.0, 100.0)
PATHS_PER_ITEM = (1, 2, 4, 5, 3)
"""In such an order that a few of them, taken evenly, are not the usual 3."""
BEAMS = (1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 75, 100, 150, 200)
BASE, WIDTHS = "sensitivity-base", "sensitivity-beam"


def make_plan(request: Request) -> list[Step]:
    """All steps; each can be done when those before it are."""
    first = request.seeds[0]
    steps = [Step(f"split-seed{seed}", "split", f"split, seed {seed}", {"seed": seed}) for seed in request.seeds]
    for name in request.tuned:
        steps += _trials(request, name)
    steps += [_fit(request, name, seed) for seed in request.seeds for name in request.methods]
    if DeepRetrieval.name in request.methods:
        steps += [
            Step(
                f"loss-seed{seed}",
                "loss",
                f"loss of retrieval, seed {seed}",
                {"seed": seed, "options": budgets(request)},
            )
            for seed in request.seeds
        ]
    for name in request.methods:
        if METHOD_SPECS[name].sweep:
            inputs = {"method": name, "seed": first, "options": swept(request, name)}
            steps.append(Step(f"curve-{name}", "curve", f"accuracy along the width of {name}", inputs, again=True))
    steps += [_time(request, seed) for seed in request.seeds]
    return steps + (_sensitivity(request) if request.sensitivity else [])


def options_of(request: Request, name: str) -> list[dict[str, Any]]:
    """How a method is asked in the comparison, the way that counts first."""
    if name != DeepRetrieval.name:
        return [METHOD_SPECS[name].options(request.n)]
    found = budgets(request)
    if PRESETS[request.preset].model:
        # The paper's settings name the beam.
        return [{"beam": beam_size(request)}, *found]
    return [
        METHOD_SPECS[name].options(request.n),
        *(one for one in found if one != METHOD_SPECS[name].options(request.n)),
    ]


def budgets(request: Request) -> list[dict[str, Any]]:
    """The budgets of Deep Retrieval."""
    return [{"candidates": factor * request.n} for factor in BUDGETS]


def swept(request: Request, name: str) -> list[dict[str, Any]]:
    """The options along the curve of a method."""
    return _some(METHOD_SPECS[name].swept(request.n), request.effort.points)


def beam_size(request: Request) -> int:
    """B of the comparison's Deep Retrieval."""
    return int(request.parameters[DeepRetrieval.name].get("beam_size", Config().beam_size))


def trial_names(name: str) -> list[str]:
    """The steps that tune a method, the defaults first."""
    return [f"tune-{name}-{number}" for number in range(len(METHOD_SPECS[name].trials) + 1)]


def sensitivity_points(request: Request) -> dict[str, list[tuple[Any, str]]]:
    """By hyper-parameter: its values, or how they are got from those of the comparison, and the step of each."""
    own = {**vars(Config()), **request.parameters[DeepRetrieval.name]}
    most = request.effort.points
    depth = own["depth"]
    nodes = [(factor, f"sensitivity-nodes-{factor:g}") for factor in NODES_FACTORS]
    # The paper's pairs: one layer less and more with as many nodes, and one layer less with as many paths.
    pairs: list[tuple[Any, str]] = [
        ((1.0, depth - 1), f"sensitivity-depth-{depth - 1}"),
        ((1.0, depth + 1), f"sensitivity-depth-{depth + 1}"),
        ((depth / max(1, depth - 1), depth - 1), f"sensitivity-depth-{depth - 1}-same-paths"),
    ]
    return {
        "num_nodes": _some([*nodes, (1.0, BASE)], most),
        # J of the comparison may come from a trial, so all values are asked for; the same one is not fitted again.
        "paths_per_item": _some([*((one, f"sensitivity-paths-{one}") for one in PATHS_PER_ITEM), (None, BASE)], most),
        "penalty": _some([*((one, f"sensitivity-penalty-{one:g}") for one in PENALTY_FACTORS), (1.0, BASE)], most),
        "depth": [*(pair for pair in pairs if pair[0][1] >= 1), ((1.0, depth), BASE)],
    }


def _trials(request: Request, name: str) -> list[Step]:
    fixed, option = request.parameters[name], options_of(request, name)[0]
    return [
        Step(
            step,
            "tune",
            f"tune {name}, trial {number + 1}",
            {
                "trial": step,
                "method": name,
                "parameters": {**trial, **fixed},
                "seed": request.seeds[0],
                "options": option,
            },
        )
        for number, (step, trial) in enumerate(zip(trial_names(name), [{}, *METHOD_SPECS[name].trials], strict=True))
    ]


def _fit(request: Request, name: str, seed: int) -> Step:
    inputs = {
        "method": name,
        "parameters": request.parameters[name],
        "seed": seed,
        "options": options_of(request, name),
        "tuned": trial_names(name) if name in request.tuned else [],
    }
    return Step(f"fit-{name}-seed{seed}", "fit", f"fit {name}, seed {seed}", inputs)


def _time(request: Request, seed: int) -> Step:
    """Every option of every method; with the first seed also those along the curves."""
    asked: list[list[Any]] = []
    for name in request.methods:
        options = options_of(request, name)
        if seed == request.seeds[0]:
            options += [one for one in swept(request, name) if one not in options]
        asked += [[name, one] for one in options]
    effort = request.effort
    inputs = {"seed": seed, "queries": effort.timed_queries, "rounds": effort.timing_rounds, "asked": asked}
    # Times compare only within one run, so another set of methods is measured anew.
    return Step(f"time-seed{seed}", "time", f"inference time, seed {seed}", inputs, again=True)


def _sensitivity(request: Request) -> list[Step]:
    seed = request.seeds[0]
    # The paper's settings name B; else it is the beam that finds about ten times n candidates, the paper's regime.
    own = beam_size(request) if PRESETS[request.preset].model else None
    beams = sorted({*BEAMS} if own is None else {*BEAMS, own})
    widths = Step(WIDTHS, "beams", "sensitivity, beam", {"seed": seed, "beams": beams, "own": own})
    changes: dict[str, Mapping[str, Any]] = {BASE: {}}
    for parameter, points in sensitivity_points(request).items():
        for value, step in points:
            if step != BASE:
                changes[step] = _change(parameter, value)
    steps = [
        Step(
            step, "sensitivity", f"sensitivity, {step.removeprefix('sensitivity-')}", {"seed": seed, "changes": change}
        )
        for step, change in changes.items()
    ]
    return [widths, *steps]


def _change(parameter: str, value: Any) -> dict[str, Any]:
    if parameter == "num_nodes":
        return {"nodes_factor": value}
    if parameter == "penalty":
        return {"penalty_factor": value}
    if parameter == "depth":
        power, depth = value
        return {"depth": depth, **({"nodes_power": power} if power != 1 else {})}
    return {parameter: value}


def _some(values: Sequence[T], most: int | None) -> list[T]:
    """At most so many of the values, the first and the last among them."""
    if most is None or len(values) <= most:
        return list(values)
    places = [round(place * (len(values) - 1) / (most - 1)) for place in range(most)]
    return [values[place] for place in places]
