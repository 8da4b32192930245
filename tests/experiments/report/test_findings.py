"""Sentences from figures whose meaning is plain."""

from __future__ import annotations

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


def test_the_comparison_names_the_best_system_and_the_share_of_the_ceiling() -> None:
    means = {"item-cf": 0.2, "deep-retrieval": 0.3, "brute-force": 0.4}
    rows = [{"method": name, "f_measure": value, "main": True, "filter_seen": True} for name, value in means.items()]
    test = {"filter_seen": True, "difference": 0.1, "low": 0.05, "high": 0.15, "p_holm": 0.01}
    tests = [{**test, "method": "deep-retrieval", "against": "item-cf"}]
    assert comparison_findings({"comparison": rows, "significance": tests}) == [
        "`deep-retrieval` has the highest F of all systems: 30.00%.",
        "`deep-retrieval` has 30.00% and `item-cf` 20.00%: better (+10.00, 95% interval +5.00 to +15.00, "
        "p = 0.0100 by Holm).",
        "Deep Retrieval has 0.750 times the F of brute force, which is the same encoder over all items, without what "
        "paths and neighbours add to the score.",
    ]


def test_the_long_tail() -> None:
    tests = [
        {"against": "a", "p_holm": 0.01, "difference": 0.1},
        {"against": "b", "p_holm": 0.01, "difference": -0.1},
        {"against": "c", "p_holm": 0.9, "difference": 0.1},
    ]
    assert tail_findings({"popularity": {"tail_tests": tests}}) == [
        "On this data `deep-retrieval` recommends more of the long tail than `a`; less than `b`; no significant "
        "difference to `c`."
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
    """F at an equal budget is 0.5 for all; every row but that at place `base` is tested against it, with the same p."""

    def rows(key: str, values: list[float], start: int = 1) -> list[dict[str, Any]]:
        budget = {"f_measure": 0.5}
        found = [{key: place + start, "f_measure": value, "at_budget": budget} for place, value in enumerate(values)]
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


def answers(found: list[str]) -> list[str]:
    """What is said of the beam B."""
    return [one.split("**: " if "larger" not in one else "worse: ", 1)[1].split(" (F in")[0] for one in found]


def test_the_shapes_of_the_paper() -> None:
    found = sensitivity_findings(study([0.1, 0.2, 0.2], [0.1, 0.3, 0.29], [0.1, 0.3, 0.2], [0.1, 0.2, 0.2]))
    assert answers(found) == ["with the beam B it holds", "it holds", *["with the beam B it holds"] * 2]
    assert found[0] == (
        "**J = 1 is worst**: with the beam B it holds (F in %: J = 1: 10.00, J = 2: 20.00, J = 3: 20.00; p = 0.0100 "
        "for J = 1, by Holm); at an equal budget, untested, all lie within 1% of the best (F in %: J = 1: 50.00, "
        "J = 2: 50.00, J = 3: 50.00)."
    )
    assert found[3].startswith(
        "**Depth 2 is below depth 3 with the same K = 9**: with the beam B it holds (F in %: D = 2"
    )


def test_shapes_that_do_not_hold() -> None:
    found = sensitivity_findings(study([0.2, 0.1], [0.3, 0.2], [0.3, 0.2, 0.1], [0.3, 0.2]))
    assert answers(found) == [
        "with the beam B it does not hold",
        "it does not hold",
        *["with the beam B it does not hold"] * 2,
    ]
    third = sensitivity_findings(study([0.2, 0.3, 0.1], [0.1, 0.2], [0.2, 0.3, 0.1], [0.1, 0.2]))
    assert answers(third)[0] == "with the beam B it does not hold", (
        "J = 1 is significantly worse, and J = 3 still worse"
    )


def test_without_a_small_p_nothing_is_told() -> None:
    found = sensitivity_findings(study([0.1, 0.2], [0.1, 0.2], [0.3, 0.2, 0.1], [0.3, 0.2], p=0.5))
    looks, looks_not = (
        f"with the beam B it cannot be told, {words} so"
        for words in ("though the figures look", "and the figures do not look")
    )
    assert [answers(found)[place] for place in (0, 2, 3)] == [looks, looks_not, looks_not]


def test_a_range_with_one_end_holds_on_one_side() -> None:
    results = study([0.1, 0.2], [0.1, 0.2], [0.19, 0.2, 0.1], [0.1, 0.2])
    results["sensitivity"]["penalty"][0]["p_holm"] = 0.5
    assert answers(sensitivity_findings(results))[2] == "with the beam B it holds on one side"
    usual_at_the_end = study([0.1, 0.2], [0.1, 0.2], [0.2, 0.19, 0.1], [0.2, 0.1], base=0)
    assert answers(sensitivity_findings(usual_at_the_end))[2] == "with the beam B it holds on one side"


def test_a_wider_beam_that_is_surely_worse_breaks_the_claim() -> None:
    results = study([0.1, 0.2], [0.1, 0.4, 0.3], [0.1, 0.3, 0.2], [0.1, 0.2])
    results["sensitivity"]["beam_size"][2]["p_fall"] = 0.01
    assert sensitivity_findings(results)[1] == (
        "**A larger B is better**, or at least not worse: it does not hold (F in %: B = 1: 10.00, B = 2: 40.00, "
        "B = 3: 30.00; significantly below the best: B = 3)."
    )


def test_the_time_beside_exhaustive_search() -> None:
    def row(method: str, singly: float, together: float) -> dict[str, Any]:
        return {"method": method, "main": True, "seconds_per_query": singly, "seconds_per_query_in_batches": together}

    rows = [row("deep-retrieval", 1.0, 3.0), row("brute-force", 4.0, 2.0)]
    (found,) = time_findings({"inference_time": rows, "data": {"items": 1000}})
    assert found.startswith(
        "Over 1,000 items `deep-retrieval` takes 0.25 of the time of `brute-force` one by one and 1.5 times in batches"
    )
    assert time_findings({"inference_time": rows[:1], "data": {"items": 1000}}) == []
