"""What the figures say, in sentences: who wins, whether the paper's claims hold on this data."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pathdex.baselines.brute_force import BruteForce
from pathdex.retrieval.recommender import DeepRetrieval

LEVEL = 0.05
"""A corrected p below this is called a difference."""
EVEN = 0.01
"""Figures that differ by at most this share of the best are called level."""
Results = Mapping[str, Any]
Row = Mapping[str, Any]


def comparison_findings(results: Results) -> list[str]:
    """How Deep Retrieval stands to the best other method and to brute force, seen items removed."""
    means = {row["method"]: row["f_measure"] for row in results["comparison"] if row["main"] and row["filter_seen"]}
    tests = {row["method"]: row for row in results["significance"] if row["filter_seen"]}
    best = max((name for name in means if name != BruteForce.name), key=lambda name: means[name], default=None)
    found = [] if best is None else [f"`{best}` has the highest F of all systems: {100 * means[best]:.2f}%."]
    for name in (DeepRetrieval.name, BruteForce.name):
        if name in tests:
            row = tests[name]
            found.append(
                f"`{name}` has {100 * means[name]:.2f}% and `{row['against']}` {100 * means[row['against']]:.2f}%: "
                f"{verdict(row)} ({_interval(row)})."
            )
    if DeepRetrieval.name in means and means.get(BruteForce.name):
        ratio = means[DeepRetrieval.name] / means[BruteForce.name]
        found.append(f"With its index, Deep Retrieval keeps {ratio:.3f} of the F of brute force.")
    return found


def verdict(row: Row) -> str:
    """better, worse or no difference, by the corrected p."""
    if row["p_holm"] >= LEVEL:
        return "no significant difference"
    return "better" if row["difference"] > 0 else "worse"


def tail_findings(results: Results) -> list[str]:
    """Whether Deep Retrieval is friendlier to the long tail than each other method."""
    tests = results["popularity"]["tail_tests"]
    if not tests:
        return []
    more = [row["against"] for row in tests if row["p_holm"] < LEVEL and row["difference"] > 0]
    less = [row["against"] for row in tests if row["p_holm"] < LEVEL and row["difference"] < 0]
    same = [row["against"] for row in tests if row["p_holm"] >= LEVEL]
    parts = [
        f"more of the long tail than {_names(more)}" if more else "",
        f"less than {_names(less)}" if less else "",
        f"no significant difference to {_names(same)}" if same else "",
    ]
    return [f"On this data `{DeepRetrieval.name}` recommends {'; '.join(part for part in parts if part)}."]


def sensitivity_findings(results: Results) -> list[str]:
    """The paper's four shapes with the beam B, and at an equal budget, each with the figures behind the answer."""
    study = results["sensitivity"]
    found = []
    if study["paths_per_item"][0]["paths_per_item"] == 1:
        found.append(
            _shape("J = 1 is worst", study["paths_per_item"], lambda row: f"J = {row['paths_per_item']}", _first_worst)
        )
    found.append(_rising(study["beam_size"]))
    found.append(_shape("alpha has a best range", study["penalty"], lambda row: f"{row['penalty']:.2g}", _best_inside))
    return [*found, *_less_depth(study["depth"])]


def _shape(
    claim: str, rows: Sequence[Row], name: Callable[[Row], str], holds: Callable[[Sequence[float]], bool]
) -> str:
    values, equal = [row["f_measure"] for row in rows], [row["at_budget"]["f_measure"] for row in rows]
    names = [name(row) for row in rows]
    return (
        f"**{claim}**: with the beam B {_answer(values, holds)} ({_listed(names, values)}); at an equal budget "
        f"{_answer(equal, holds)} ({_listed(names, equal)})."
    )


def _first_worst(values: Sequence[float]) -> bool:
    return values[0] < min(values[1:])


def _best_inside(values: Sequence[float]) -> bool:
    return max(values[1:-1], default=0.0) > max(values[0], values[-1])


def _answer(values: Sequence[float], holds: Callable[[Sequence[float]], bool]) -> str:
    if max(values) - min(values) <= EVEN * max(values):
        return "it cannot be told, all lie within 1% of the best"
    return _yes(holds(values))


def _rising(rows: Sequence[Row]) -> str:
    """F rises from the narrowest to the widest beam, and no beam is significantly below a narrower one."""
    values = [row["f_measure"] for row in rows]
    falls = [row["beam"] for row in rows if row.get("p_fall", 1.0) < LEVEL]
    below = f"; significantly below the best: B = {', '.join(map(str, falls))}" if falls else ""
    names = [f"B = {row['beam']}" for row in rows]
    holds = values[-1] > values[0] and not falls
    return f"**A larger B is better**, or at least not worse: {_yes(holds)} ({_listed(names, values)}{below})."


def _listed(names: Sequence[str], values: Sequence[float]) -> str:
    return "F in %: " + ", ".join(f"{name}: {100 * value:.2f}" for name, value in zip(names, values, strict=True))


def _less_depth(rows: Sequence[Row]) -> list[str]:
    base = next(row for row in rows if row["base"])
    return [
        f"**Depth {row['depth']} is below depth {base['depth']}** with the same K = {base['nodes']}: with the beam B "
        f"{_yes(row['f_measure'] < base['f_measure'])} (F in %: {_f(row)} and {_f(base)}, p = {row['p_holm']:.4f} by "
        f"Holm); at an equal budget {_yes(row['at_budget']['f_measure'] < base['at_budget']['f_measure'])} (F in %: "
        f"{_f(row['at_budget'])} and {_f(base['at_budget'])})."
        for row in rows
        if row["depth"] == base["depth"] - 1 and row["nodes"] == base["nodes"]
    ]


def _interval(row: Row) -> str:
    return (
        f"{100 * row['difference']:+.2f}, 95% interval {100 * row['low']:+.2f} to {100 * row['high']:+.2f}, "
        f"p = {row['p_holm']:.4f} by Holm"
    )


def _f(row: Row) -> str:
    return f"{100 * row['f_measure']:.2f}"


def _names(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _yes(holds: bool) -> str:
    return "it holds" if holds else "it does not hold"
