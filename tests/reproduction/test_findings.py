"""Sentences from figures whose meaning is plain."""

from __future__ import annotations

from typing import Any

from pathdex.reproduction.findings import comparison_findings, sensitivity_findings, tail_findings, verdict


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
        "With its index, Deep Retrieval keeps 0.750 of the F of brute force.",
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


def study(paths: list[float], beams: list[float], penalties: list[float], depths: list[float]) -> dict[str, Any]:
    """F at an equal budget is 0.5 for all."""

    def rows(key: str, values: list[float], start: int = 1) -> list[dict[str, Any]]:
        budget = {"f_measure": 0.5}
        return [{key: place + start, "f_measure": value, "at_budget": budget} for place, value in enumerate(values)]

    layers = [{**row, "nodes": 9, "base": row["depth"] == 3, "p_holm": 0.5} for row in rows("depth", depths, 2)]
    return {
        "sensitivity": {
            "paths_per_item": rows("paths_per_item", paths),
            "beam_size": rows("beam", beams),
            "penalty": rows("penalty", penalties),
            "depth": layers,
        }
    }


def answers(found: list[str]) -> list[str]:
    """What is said of the beam B."""
    return [one.split(": ", 1)[1].removeprefix("with the beam B ").split(" (F in")[0] for one in found]


def test_the_shapes_of_the_paper() -> None:
    found = sensitivity_findings(study([0.1, 0.2, 0.2], [0.1, 0.3, 0.29], [0.1, 0.3, 0.2], [0.1, 0.2, 0.2]))
    assert answers(found) == ["it holds"] * 4
    assert found[0] == (
        "**J = 1 is worst**: with the beam B it holds (F in %: J = 1: 10.00, J = 2: 20.00, J = 3: 20.00); at an equal "
        "budget it cannot be told, all lie within 1% of the best (F in %: J = 1: 50.00, J = 2: 50.00, J = 3: 50.00)."
    )
    assert "with the same K = 9: with the beam B it holds (F in %: 10.00 and 20.00, p = 0.5000 by Holm)" in found[3]
    assert "at an equal budget it does not hold (F in %: 50.00 and 50.00)" in found[3]


def test_shapes_that_do_not_hold_or_cannot_be_told() -> None:
    found = sensitivity_findings(study([0.2, 0.1], [0.3, 0.2], [0.3, 0.2, 0.1], [0.3, 0.2]))
    assert answers(found) == ["it does not hold"] * 4
    level = sensitivity_findings(study([0.2, 0.2001], [0.3, 0.4], [0.3, 0.3001, 0.3], [0.1, 0.2]))
    unclear = "it cannot be told, all lie within 1% of the best"
    assert [answers(level)[place] for place in (0, 2)] == [unclear, unclear]


def test_a_wider_beam_that_is_surely_worse_breaks_the_claim() -> None:
    results = study([0.1, 0.2], [0.1, 0.4, 0.3], [0.1, 0.3, 0.2], [0.1, 0.2])
    results["sensitivity"]["beam_size"][2]["p_fall"] = 0.01
    assert sensitivity_findings(results)[1] == (
        "**A larger B is better**, or at least not worse: it does not hold (F in %: B = 1: 10.00, B = 2: 40.00, "
        "B = 3: 30.00; significantly below the best: B = 3)."
    )
