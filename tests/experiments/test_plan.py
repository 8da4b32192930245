"""The steps and their order."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from pathdex.experiments.plan import make_plan, query_options, sensitivity_changes
from pathdex.experiments.report_request import ReproduceOptions, make_report_request

OPTIONS = ReproduceOptions(
    Path("events.parquet"), methods=["item-cf", "tdm", "deep-retrieval", "brute-force"], seeds=[0, 1]
)


def names(options: ReproduceOptions) -> list[str]:
    return [step.name for step in make_plan(make_report_request(options))]


def test_every_step_appears_once_and_after_those_it_needs() -> None:
    found = names(OPTIONS)
    assert len(set(found)) == len(found)
    order = {name: place for place, name in enumerate(found)}
    assert order["tune-tdm-3"] < order["fit-tdm-seed0"] < order["curve-tdm"] < order["time-seed0"]
    assert order["fit-deep-retrieval-seed1"] < order["fit-brute-force-seed1"] < order["loss-seed1"]
    assert order["sensitivity-beam"] < order["sensitivity-base"]
    assert sum(name.startswith("tune-") for name in found) == 3 * 4
    assert sum(name.startswith("fit-") for name in found) == 4 * 2


def test_only_requested_steps_are_planned() -> None:
    found = names(replace(OPTIONS, tune=False, sensitivity=False, methods=["item-cf", "popularity"], seeds=[3]))
    assert found == ["split-seed3", "fit-popularity-seed3", "fit-item-cf-seed3", "time-seed3"]


def test_a_quick_run_has_fewer_points() -> None:
    quick, full = names(replace(OPTIONS, quick=True)), names(OPTIONS)
    assert not [name for name in quick if name.startswith("tune-")]
    studied = [sum(name.startswith("sensitivity-") for name in plan) for plan in (quick, full)]
    assert studied == [11, 17]


def test_the_pairs_of_the_paper() -> None:
    """(100, 2), (100, 3), (100, 4) and (1000, 2): the last is 100 to the power of 3/2."""
    assert sensitivity_changes(make_report_request(OPTIONS))["depth"] == {
        "sensitivity-depth-2": {"depth": 2},
        "sensitivity-depth-4": {"depth": 4},
        "sensitivity-depth-2-same-paths": {"depth": 2, "nodes_power": 1.5},
        "sensitivity-base": {},
    }
    changes = {
        step.name: step.inputs["changes"]
        for step in make_plan(make_report_request(OPTIONS))
        if step.kind == "sensitivity"
    }
    assert changes["sensitivity-paths-1"] == {"paths_per_item": 1}
    assert changes["sensitivity-penalty-0.01"] == {"penalty_factor": 0.01}
    assert changes["sensitivity-base"] == {}


def test_deep_retrieval_is_evaluated_by_candidates_and_with_the_papers_beam() -> None:
    assert query_options(make_report_request(OPTIONS), "deep-retrieval") == [
        {"candidates": 100},
        {"candidates": 50},
        {"candidates": 200},
    ]
    paper = make_report_request(replace(OPTIONS, source=Path("ml-20m.zip")))
    assert query_options(paper, "deep-retrieval")[0] == {"beam": 25}


def test_the_curves_are_timed_with_the_first_seed() -> None:
    steps = {step.name: step for step in make_plan(make_report_request(OPTIONS))}
    first, second = (steps[f"time-seed{seed}"].inputs["methods"] for seed in (0, 1))
    assert ["tdm", {"beam": 200}] in first
    assert ["tdm", {"beam": 200}] not in second
    assert ["tdm", {"beam": 50}] in second
