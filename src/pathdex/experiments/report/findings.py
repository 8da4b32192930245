"""What the figures say, in sentences: who wins, whether the paper's claims hold on this data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pathdex.recommenders.brute_force import BruteForce
from pathdex.recommenders.deep_retrieval import DeepRetrieval

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
        found.append(
            f"Deep Retrieval has {ratio:.3f} times the F of brute force, which is the same encoder over all items, "
            "without what paths and neighbours add to the score."
        )
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


def time_findings(results: Results) -> list[str]:
    """How long Deep Retrieval takes beside exhaustive search with the same encoder."""
    rows = {row["method"]: row for row in results["inference_time"] if row["main"]}
    if DeepRetrieval.name not in rows or BruteForce.name not in rows:
        return []
    own, exhaustive = rows[DeepRetrieval.name], rows[BruteForce.name]
    singly = exhaustive["seconds_per_query"] / own["seconds_per_query"]
    together = exhaustive["seconds_per_query_in_batches"] / own["seconds_per_query_in_batches"]
    return [
        f"Over {results['data']['items']:,} items `{DeepRetrieval.name}` takes {_times(singly)} the time of "
        f"`{BruteForce.name}` one by one and {_times(together)} in batches, where exhaustive search is a product of "
        "matrices."
    ]


def sensitivity_findings(results: Results) -> list[str]:
    """The paper's four shapes: what tests say with the beam B, and how the figures look at an equal budget."""
    study = results["sensitivity"]
    found = []
    paths, penalties = study["paths_per_item"], study["penalty"]
    if paths[0]["paths_per_item"] == 1:
        lowest = [_lowest_first(values) for values in _both(paths)]
        found.append(_shape("J = 1 is worst", paths, [f"J = {row['paths_per_item']}" for row in paths], lowest, [0]))
    found.append(_rising(study["beam_size"]))
    inside = [_best_inside(values) for values in _both(penalties)]
    names = [f"{row['penalty']:.2g}" for row in penalties]
    found.append(_shape("alpha has a best range", penalties, names, inside, [0, -1]))
    return [*found, *_less_depth(study["depth"])]


def _both(rows: Sequence[Row]) -> tuple[list[float], list[float]]:
    """F with the beam B and at an equal budget."""
    return [row["f_measure"] for row in rows], [row["at_budget"]["f_measure"] for row in rows]


def _shape(claim: str, rows: Sequence[Row], names: Sequence[str], seen: Sequence[bool], worse: Sequence[int]) -> str:
    """`seen`: whether the figures look as claimed, with the beam B and at an equal budget. `worse`: the places of the
    rows that the claim puts below the usual value."""
    values, equal = _both(rows)
    tested = {names[place]: rows[place] for place in worse}
    tests = "".join(f"; p = {row['p_holm']:.4f} for {name}" for name, row in tested.items() if not row["base"])
    return (
        f"**{claim}**: with the beam B {_tested(list(tested.values()), seen[0])} ({_listed(names, values)}{tests}, by "
        f"Holm); at an equal budget, untested, {_untested(equal, seen[1])} ({_listed(names, equal)})."
    )


def _tested(rows: Sequence[Row], seen: bool) -> str:
    """What the tests of rows that should be below the usual value say; the usual value itself cannot be."""
    verdicts = ["" if row["base"] else verdict(row) for row in rows]
    if "better" in verdicts:
        return "it does not hold"
    if all(one == "worse" for one in verdicts):
        return "it holds" if seen else "it does not hold"
    if "worse" in verdicts:
        return "it holds on one side"
    return f"it cannot be told, {'though' if seen else 'and'} the figures {'look' if seen else 'do not look'} so"


def _untested(values: Sequence[float], seen: bool) -> str:
    if max(values) - min(values) <= EVEN * max(values):
        return "all lie within 1% of the best"
    return f"the figures {'look' if seen else 'do not look'} so"


def _lowest_first(values: Sequence[float]) -> bool:
    return values[0] < min(values[1:])


def _best_inside(values: Sequence[float]) -> bool:
    return max(values[1:-1], default=0.0) > max(values[0], values[-1])


def _rising(rows: Sequence[Row]) -> str:
    """F rises from the narrowest to the widest beam, and no beam wider than the best is significantly below it."""
    values = [row["f_measure"] for row in rows]
    falls = [row["beam"] for row in rows if row.get("p_fall", 1.0) < LEVEL]
    below = f"; significantly below the best: B = {', '.join(map(str, falls))}" if falls else ""
    names = [f"B = {row['beam']}" for row in rows]
    holds = "it holds" if values[-1] > values[0] and not falls else "it does not hold"
    return f"**A larger B is better**, or at least not worse: {holds} ({_listed(names, values)}{below})."


def _less_depth(rows: Sequence[Row]) -> list[str]:
    base = next(row for row in rows if row["base"])
    found = []
    for row in rows:
        if row["depth"] == base["depth"] - 1 and row["nodes"] == base["nodes"]:
            claim = f"Depth {row['depth']} is below depth {base['depth']} with the same K = {base['nodes']}"
            lower = [_lowest_first(values) for values in _both([row, base])]
            found.append(_shape(claim, [row, base], [f"D = {one['depth']}" for one in (row, base)], lower, [0]))
    return found


def _listed(names: Sequence[str], values: Sequence[float]) -> str:
    return "F in %: " + ", ".join(f"{name}: {100 * value:.2f}" for name, value in zip(names, values, strict=True))


def _times(ratio: float) -> str:
    return f"{1 / ratio:.2f} of" if ratio >= 1 else f"{1 / ratio:.1f} times"


def _interval(row: Row) -> str:
    return (
        f"{100 * row['difference']:+.2f}, 95% interval {100 * row['low']:+.2f} to {100 * row['high']:+.2f}, "
        f"p = {row['p_holm']:.4f} by Holm"
    )


def _names(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
