"""What the figures say, in sentences: who wins, whether the paper's claims hold on this data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pathdex.retrieval.recommender import DeepRetrieval

LEVEL = 0.05
"""A corrected p below this is called a difference."""
EVEN = 0.01
"""Figures that differ by less than this share of the larger one are called equal in shape."""
Results = Mapping[str, Any]
Row = Mapping[str, Any]


def comparison_findings(results: Results) -> list[str]:
    """A sentence per method, seen items removed."""
    means = {row["method"]: row["f_measure"] for row in results["comparison"] if row["main"] and row["filter_seen"]}
    found = []
    for row in results["significance"]:
        if row["filter_seen"]:
            seeds = sum(one * row["difference"] > 0 for one in row["by_seed"])
            found.append(
                f"`{row['method']}` {100 * means[row['method']]:.2f} against `{row['against']}` "
                f"{100 * means[row['against']]:.2f}: {verdict(row)} ({_interval(row)}; the same sign in {seeds} of "
                f"{len(row['by_seed'])} seeds)"
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


def sensitivity_findings(results: Results) -> list[str]:
    """The paper's four shapes, each with the figures behind the answer."""
    study = results["sensitivity"]
    found = []
    if study["paths_per_item"][0]["paths_per_item"] == 1:
        found.append(_worst_first(study["paths_per_item"], "paths_per_item", "J", "J = 1 is worst"))
    found.append(_rising(study["beam_size"]))
    found.append(_best_inside(study["penalty"]))
    found.append(_less_depth(study["depth"]))
    return [one for one in found if one]


def _worst_first(rows: Sequence[Row], key: str, letter: str, claim: str) -> str:
    lowest = min(rows, key=lambda row: row["f_measure"])
    figures = ", ".join(f"{letter} = {row[key]}: {_f(row)}" for row in rows)
    return f"**{claim}**: {_yes(lowest is rows[0])}. F in %: {figures}."


def _rising(rows: Sequence[Row]) -> str:
    values = [row["f_measure"] for row in rows]
    falls = [max(values[: place + 1]) - value for place, value in enumerate(values)]
    holds = max(falls) <= EVEN * max(values) and values[-1] > values[0]
    figures = ", ".join(f"B = {row['beam']}: {_f(row)}" for row in rows)
    return f"**A larger B is better** (falls below 1% of the best count as level): {_yes(holds)}. F in %: {figures}."


def _best_inside(rows: Sequence[Row]) -> str:
    best = max(range(len(rows)), key=lambda place: rows[place]["f_measure"])
    figures = ", ".join(f"{row['penalty']:.2g}: {_f(row)}" for row in rows)
    return f"**alpha has a best range**, neither end is best: {_yes(0 < best < len(rows) - 1)}. F in %: {figures}."


def _less_depth(rows: Sequence[Row]) -> str:
    base = next(row for row in rows if row["base"])
    less = [row for row in rows if row["depth"] == base["depth"] - 1 and row["nodes"] == base["nodes"]]
    if not less:
        return ""
    row = less[0]
    return (
        f"**Depth {row['depth']} is below depth {base['depth']}** with the same K = {base['nodes']}: "
        f"{_yes(row['f_measure'] < base['f_measure'])}. F in %: {_f(row)} and {_f(base)} "
        f"(p = {row['p_holm']:.4f} by Holm)."
    )


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
    return "holds here" if holds else "does not hold here"
