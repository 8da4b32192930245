"""Sentences from simple figures."""

from __future__ import annotations

import re
from typing import Any

from pathdex.experiments.report.findings import (
    comparison_findings,
    sensitivity_findings,
    tail_findings,
    time_findings,
    verdict,
)


def test_verdicts_need_a_small_p() -> None:
    assert verdict({"p_holm": 0.04, "difference": 0.1}) == "better"
    assert verdict({"p_holm": 0.04, "difference": -0.1}) == "worse"
    assert verdict({"p_holm": 0.05, "difference": 0.1}) == "no significant difference"


def test_the_comparison_names_the_best_method_and_the_ratio_to_the_ceiling() -> None:
    means = {"item-cf": 0.2, "deep-retrieval": 0.3, "brute-force": 0.4}
    rows = [{"method": name, "f_measure": value, "main": True, "filter_seen": True} for name, value in means.items()]
    test = {"filter_seen": True, "difference": 0.1, "low": 0.05, "high": 0.15, "p_holm": 0.01}
    tests = [{**test, "method": "deep-retrieval", "against": "item-cf"}]
    assert comparison_findings({"comparison": rows, "significance": tests}) == [
        "`deep-retrieval` has the highest F: 30.00%.",
        "`deep-retrieval` against `item-cf`: better (+10.00 points, p = 0.0100 after Holm's correction).",
        "Deep Retrieval reaches 0.750 times the F of brute force, which scores all items with the same encoder but "
        "without path probabilities and neighbours.",
    ]


def test_the_long_tail() -> None:
    tests = [
        {"against": "a", "p_holm": 0.01, "difference": 0.1},
        {"against": "b", "p_holm": 0.01, "difference": -0.1},
        {"against": "c", "p_holm": 0.9, "difference": 0.1},
    ]
    assert tail_findings({"popularity": {"tail_tests": tests}}) == [
        "`deep-retrieval` recommends more long-tail items than `a`; fewer than `b`; not significantly more or fewer "
        "than `c`."
    ]
    assert tail_findings({"popularity": {"tail_tests": []}}) == []


def study(
    paths: list[float],
    beams: list[float],
    penalties: list[float],
    depths: list[float],
    *,
    p: float = 0.01,
    base: int = 1,
) -> dict[str, Any]:
    """F with equal candidates is 0.5 for all rows; every row except number `base` is tested against it with this p."""

    def rows(key: str, values: list[float], start: int = 1) -> list[dict[str, Any]]:
        equal = {"f_measure": 0.5}
        found = [{key: place + start, "f_measure": value, "at_budget": equal} for place, value in enumerate(values)]
        for place, row in enumerate(found):
            row["base"] = place == base
            if not row["base"]:
                row |= {"difference": values[place] - values[base], "p_holm": p}
        return found

    return {
        "sensitivity": {
            "paths_per_item": rows("paths_per_item", paths),
            "beam_size": rows("beam", beams),
            "penalty": rows("penalty", penalties),
            "depth": [{**row, "nodes": 9} for row in rows("depth", depths, 2)],
        }
    }


def verdicts(found: list[str]) -> list[str]:
    """The verdicts with the beam B."""
    return [re.split(r" \(p = |;|\.", one.split("it ", 1)[1])[0] for one in found]


def test_claims_that_hold() -> None:
    found = sensitivity_findings(study([0.1, 0.2, 0.2], [0.1, 0.3, 0.29], [0.1, 0.3, 0.2], [0.1, 0.2, 0.2]))
    assert verdicts(found) == ["holds"] * 4
    assert found[0] == (
        "**J = 1 is worst**: with the beam B it holds (p = 0.0100); with equal candidates, not tested, all values are "
        "within 1% of the best."
    )
    assert found[3].startswith(
        "**Depth 2 is below depth 3 with the same K = 9**: with the beam B it holds (p = 0.0100);"
    )


def test_claims_that_do_not_hold() -> None:
    found = sensitivity_findings(study([0.2, 0.1], [0.3, 0.2], [0.3, 0.2, 0.1], [0.3, 0.2]))
    assert verdicts(found) == ["does not hold"] * 4
    third = sensitivity_findings(study([0.2, 0.3, 0.1], [0.1, 0.2], [0.2, 0.3, 0.1], [0.1, 0.2]))
    assert verdicts(third)[0] == "does not hold", "J = 1 is significantly worse, and J = 3 still worse"


def test_without_a_small_p_a_claim_is_undecided() -> None:
    found = sensitivity_findings(study([0.1, 0.2], [0.1, 0.2], [0.3, 0.2, 0.1], [0.3, 0.2], p=0.5))
    assert [verdicts(found)[number] for number in (0, 2, 3)] == [
        "is undecided, though the values support it",
        "is undecided, and the values contradict it",
        "is undecided, and the values contradict it",
    ]


def test_a_range_with_one_end_holds_on_one_side() -> None:
    results = study([0.1, 0.2], [0.1, 0.2], [0.19, 0.2, 0.1], [0.1, 0.2])
    results["sensitivity"]["penalty"][0]["p_holm"] = 0.5
    assert verdicts(sensitivity_findings(results))[2] == "holds on one side"
    base_at_the_end = study([0.1, 0.2], [0.1, 0.2], [0.2, 0.19, 0.1], [0.2, 0.1], base=0)
    assert verdicts(sensitivity_findings(base_at_the_end))[2] == "holds on one side"


def test_a_significantly_worse_wider_beam_breaks_the_claim() -> None:
    results = study([0.1, 0.2], [0.1, 0.4, 0.3], [0.1, 0.3, 0.2], [0.1, 0.2])
    results["sensitivity"]["beam_size"][2]["p_fall"] = 0.01
    assert sensitivity_findings(results)[1] == (
        "**A larger B is at least as good**: it does not hold; significantly below the best: B = 3."
    )


def test_the_time_beside_exhaustive_search() -> None:
    def row(method: str, singly: float, together: float) -> dict[str, Any]:
        return {"method": method, "main": True, "seconds_per_query": singly, "seconds_per_query_in_batches": together}

    rows = [row("deep-retrieval", 1.0, 3.0), row("brute-force", 4.0, 2.0)]
    (found,) = time_findings({"inference_time": rows, "data": {"items": 1000}})
    assert found.startswith(
        "Over 1,000 items, `deep-retrieval` takes 0.25 times as long as `brute-force` for single queries and 1.50 "
        "times as long in batches"
    )
    assert time_findings({"inference_time": rows[:1], "data": {"items": 1000}}) == []
