"""Which steps there are, and in which order."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from pathdex.experiments.plan import make_plan, options_of, sensitivity_points
from pathdex.experiments.report_request import Asked, check_asked

ASKED = Asked(Path("events.parquet"), methods=["item-cf", "tdm", "deep-retrieval", "brute-force"], seeds=[0, 1])


def names(asked: Asked) -> list[str]:
    return [step.name for step in make_plan(check_asked(asked))]


def test_every_step_once_and_after_what_it_needs() -> None:
    found = names(ASKED)
    assert len(set(found)) == len(found)
    order = {name: place for place, name in enumerate(found)}
    assert order["tune-tdm-3"] < order["fit-tdm-seed0"] < order["curve-tdm"] < order["time-seed0"]
    assert order["fit-deep-retrieval-seed1"] < order["fit-brute-force-seed1"] < order["loss-seed1"]
    assert order["sensitivity-beam"] < order["sensitivity-base"]
    assert sum(name.startswith("tune-") for name in found) == 3 * 4
    assert sum(name.startswith("fit-") for name in found) == 4 * 2


def test_what_is_not_asked_for_is_not_planned() -> None:
    found = names(replace(ASKED, tune=False, sensitivity=False, methods=["item-cf", "popularity"], seeds=[3]))
    assert found == ["split-seed3", "fit-popularity-seed3", "fit-item-cf-seed3", "time-seed3"]


def test_a_quick_look_has_fewer_points() -> None:
    quick, full = names(replace(ASKED, quick=True)), names(ASKED)
    assert not [name for name in quick if name.startswith("tune-")]
    studied = [sum(name.startswith("sensitivity-") for name in plan) for plan in (quick, full)]
    assert studied == [11, 17]


def test_the_pairs_of_the_paper() -> None:
    """(100, 2), (100, 3), (100, 4) and (1000, 2): the last is 100 to the power of 3/2."""
    points = sensitivity_points(check_asked(ASKED))
    assert sorted(value for value, _ in points["depth"]) == [(1.0, 2), (1.0, 3), (1.0, 4), (1.5, 2)]
    changes = {
        step.name: step.inputs["changes"] for step in make_plan(check_asked(ASKED)) if step.kind == "sensitivity"
    }
    assert changes["sensitivity-depth-2-same-paths"] == {"depth": 2, "nodes_power": 1.5}
    assert changes["sensitivity-paths-1"] == {"paths_per_item": 1}
    assert changes["sensitivity-penalty-0.01"] == {"penalty_factor": 0.01}
    assert changes["sensitivity-base"] == {}


def test_deep_retrieval_is_asked_with_budgets_and_with_the_papers_beam() -> None:
    assert options_of(check_asked(ASKED), "deep-retrieval") == [
        {"candidates": 100},
        {"candidates": 50},
        {"candidates": 200},
    ]
    paper = check_asked(replace(ASKED, source=Path("ml-20m.zip")))
    assert options_of(paper, "deep-retrieval")[0] == {"beam": 25}


def test_with_the_first_seed_the_curves_are_timed_in_the_same_run() -> None:
    steps = {step.name: step for step in make_plan(check_asked(ASKED))}
    first, second = (steps[f"time-seed{seed}"].inputs["asked"] for seed in (0, 1))
    assert ["tdm", {"beam": 200}] in first
    assert ["tdm", {"beam": 200}] not in second
    assert ["tdm", {"beam": 50}] in second
