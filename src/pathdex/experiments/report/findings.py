"""What the figures show, in sentences: which method is best, and whether the paper's claims hold on this data."""

from __future__ import annotations

from collections.abc import Sequence

from pathdex.experiments.report.wording import Results, Row
from pathdex.recommenders.brute_force import BruteForce
from pathdex.recommenders.deep_retrieval import DeepRetrieval

LEVEL = 0.05
"""Corrected p-values below this are significant."""
EVEN = 0.01
"""Values within this share of the best are called level."""


def comparison_findings(results: Results) -> list[str]:
    """Deep Retrieval against the best other method and against brute force, seen items removed."""
    means = {row["method"]: row["f_measure"] for row in results["comparison"] if row["main"] and row["filter_seen"]}
    tests = {row["method"]: row for row in results["significance"] if row["filter_seen"]}
    best = max((name for name in means if name != BruteForce.name), key=lambda name: means[name], default=None)
    found = [] if best is None else [f"`{best}` has the highest F: {100 * means[best]:.2f}%."]
    for name in (DeepRetrieval.name, BruteForce.name):
        if name in tests:
            row = tests[name]
            gap = f"{100 * row['difference']:+.2f} points, p = {row['p_holm']:.4f} after Holm's correction"
            found.append(f"`{name}` against `{row['against']}`: {verdict(row)} ({gap}).")
    if DeepRetrieval.name in means and means.get(BruteForce.name):
        ratio = means[DeepRetrieval.name] / means[BruteForce.name]
        found.append(
            f"Deep Retrieval reaches {ratio:.3f} times the F of brute force, which scores all items with the same "
            "encoder but without path probabilities and neighbours."
        )
    return found


def verdict(row: Row) -> str:
    """better, worse or no significant difference, by the corrected p-value."""
    if row["p_holm"] >= LEVEL:
        return "no significant difference"
    return "better" if row["difference"] > 0 else "worse"


def tail_findings(results: Results) -> list[str]:
    """Whether Deep Retrieval recommends more of the long tail than each other method."""
    tests = results["popularity"]["tail_tests"]
    groups = {"better": "more long-tail items than", "worse": "fewer than"}
    groups["no significant difference"] = "not significantly more or fewer than"
    parts = []
    for outcome, words in groups.items():
        if names := [f"`{row['against']}`" for row in tests if verdict(row) == outcome]:
            parts.append(f"{words} {', '.join(names)}")
    return [f"`{DeepRetrieval.name}` recommends {'; '.join(parts)}."] if parts else []


def time_findings(results: Results) -> list[str]:
    """The time of Deep Retrieval relative to exhaustive search with the same encoder."""
    rows = {row["method"]: row for row in results["inference_time"] if row["main"]}
    if DeepRetrieval.name not in rows or BruteForce.name not in rows:
        return []
    own, exhaustive = rows[DeepRetrieval.name], rows[BruteForce.name]
    single, batch = (own[key] / exhaustive[key] for key in ("seconds_per_query", "seconds_per_query_in_batches"))
    return [
        f"Over {results['data']['items']:,} items, `{DeepRetrieval.name}` takes {single:.2f} times as long as "
        f"`{BruteForce.name}` for single queries and {batch:.2f} times as long in batches, where exhaustive search is "
        "one matrix product."
    ]


def sensitivity_findings(results: Results) -> list[str]:
    """The paper's four claims: tested with the beam B, and looked at with an equal number of candidates."""
    study = results["sensitivity"]
    found = []
    paths, penalties = study["paths_per_item"], study["penalty"]
    if paths[0]["paths_per_item"] == 1:
        found.append(_claim("J = 1 is worst", paths, [_lowest_first(values) for values in _both(paths)], [0]))
    found.append(_beam_claim(study["beam_size"]))
    best_inside = [_best_inside(values) for values in _both(penalties)]
    found.append(_claim("alpha has a best range", penalties, best_inside, [0, -1]))
    return [*found, *_depth_claims(study["depth"])]


def _both(rows: Sequence[Row]) -> tuple[list[float], list[float]]:
    """F with the beam B, and with an equal number of candidates."""
    return [row["f_measure"] for row in rows], [row["at_budget"]["f_measure"] for row in rows]


def _claim(claim: str, rows: Sequence[Row], observed: Sequence[bool], worse: Sequence[int]) -> str:
    """`observed`: whether the values agree with the claim, with the beam B and with equal candidates. `worse`: the
    numbers of the rows that the claim puts below the base value."""
    tested = [rows[number] for number in worse]
    p_values = ", ".join(f"p = {row['p_holm']:.4f}" for row in tested if not row["base"])
    return (
        f"**{claim}**: with the beam B it {_tested(tested, observed[0])} ({p_values or 'not tested'}); with equal "
        f"candidates, not tested, {_untested(_both(rows)[1], observed[1])}."
    )


def _tested(rows: Sequence[Row], observed: bool) -> str:
    """What the tests of rows that should be below the base value say; the base value itself is not tested."""
    verdicts = ["" if row["base"] else verdict(row) for row in rows]
    if "better" in verdicts:
        return "does not hold"
    if all(one == "worse" for one in verdicts):
        return "holds" if observed else "does not hold"
    if "worse" in verdicts:
        return "holds on one side"
    return "is undecided, though the values support it" if observed else "is undecided, and the values contradict it"


def _untested(values: Sequence[float], observed: bool) -> str:
    if max(values) - min(values) <= EVEN * max(values):
        return "all values are within 1% of the best"
    return f"the values {'support' if observed else 'contradict'} it"


def _lowest_first(values: Sequence[float]) -> bool:
    return values[0] < min(values[1:])


def _best_inside(values: Sequence[float]) -> bool:
    return max(values[1:-1], default=0.0) > max(values[0], values[-1])


def _beam_claim(rows: Sequence[Row]) -> str:
    """F rises from the narrowest to the widest beam, and no beam wider than the best is significantly below it."""
    falls = [str(row["beam"]) for row in rows if row.get("p_fall", 1.0) < LEVEL]
    below = f"; significantly below the best: B = {', '.join(falls)}" if falls else ""
    holds = "holds" if rows[-1]["f_measure"] > rows[0]["f_measure"] and not falls else "does not hold"
    return f"**A larger B is at least as good**: it {holds}{below}."


def _depth_claims(rows: Sequence[Row]) -> list[str]:
    base = next(row for row in rows if row["base"])
    return [
        _claim(
            f"Depth {row['depth']} is below depth {base['depth']} with the same K = {base['nodes']}",
            [row, base],
            [_lowest_first(values) for values in _both([row, base])],
            [0],
        )
        for row in rows
        if row["depth"] == base["depth"] - 1 and row["nodes"] == base["nodes"]
    ]
