"""The parts of the benchmarks that judge; measuring needs data and time."""

from __future__ import annotations

import importlib
import json
from typing import Any

import pytest
from benchmarks import ann_curves
from benchmarks.__main__ import NAMES
from benchmarks.cost_model import FILE, Costs, Shape, plan, tables
from benchmarks.peers import WHOLE, best_row, table, verdicts, windows
from benchmarks.query_clock import PARTS, TimedQuery
from benchmarks.report import ROOT
from benchmarks.robustness import BASELINES, CEILING, OWN, flags, ratios
from benchmarks.training_runs import parsed_parameters, run_options, spread

from pathdex.data.ragged import Ragged
from pathdex.retrieval.filters import Filters
from tests.random_model import random_model

TRAINING_ONLY = ("accuracy", "robustness", "e-step", "m-step", "scale")


def run_with(values: dict[str, float]) -> dict[str, Any]:
    """A run in which every method has F = 0.1, except those in `values`."""
    names = (*BASELINES, CEILING, *OWN)
    removed = [{"method": name, "filter_seen": True, "f_measure": values.get(name, 0.1)} for name in names]
    kept = [{"method": name, "filter_seen": False, "f_measure": 0.0} for name in names]
    return {"results": [*removed, *kept]}


@pytest.mark.parametrize("name", TRAINING_ONLY)
def test_every_training_benchmark_has_a_main(name: str) -> None:
    assert callable(importlib.import_module(NAMES[name]).main)


def test_equal_figures_raise_no_flag() -> None:
    assert flags([run_with({})]) == []


def test_a_baseline_that_is_better_is_named() -> None:
    assert flags([run_with({"popularity": 0.11})]) == [f"{name}: 0.909 of popularity" for name in OWN]


def test_the_limits_to_brute_force_depend_on_the_candidates() -> None:
    # 0.1 / 0.102 = 0.980: enough for 5 n, too little for 10 n, no rule for the default beam.
    assert flags([run_with({CEILING: 0.102})]) == ["deep-retrieval, 10 n: 0.980 of brute-force"]


def test_flags_follow_the_mean_of_the_ratios_over_the_seeds() -> None:
    runs = [run_with({"item-cf": 0.08}), run_with({"item-cf": 0.11})]
    assert ratios(runs, OWN[0], "item-cf") == pytest.approx([1.25, 1 / 1.1])
    assert flags(runs) == []


def test_options_are_json() -> None:
    parser = run_options("x", "Text.\n\nMore.", ["a", "b"])
    given = parser.parse_args(["--set", "epochs=2", "--set", 'encoder="pooled"'])
    assert parsed_parameters(given) == {"epochs": 2, "encoder": "pooled"}
    assert given.sets == "a,b"


def test_spread_is_the_sample_deviation() -> None:
    assert spread([1.0]) == "1.00"
    assert spread([1.0, 3.0], 1) == "2.0 ± 1.4"


def peer_figures(*f_measures: float) -> dict[str, Any]:
    """SASRec with these F by epoch, 100 seconds each; Deep Retrieval has F = 0.1 after 50."""

    def row(epoch: int, seconds: float, f_measure: float) -> dict[str, Any]:
        figures = {"f_measure": f_measure, "recall": 0.0, "ndcg": 0.0}
        return {"epoch": epoch, "cpu_seconds": seconds, "valid": figures, "test": figures}

    peers = [row(epoch, 100.0 * epoch, f) for epoch, f in enumerate(f_measures, 1)]
    methods = {WHOLE: {"rows": [row(3, 50.0, 0.1)]}, "RecTools sasrec": {"rows": peers}}
    return {"n": 10, "users": {"valid": 5, "test": 5}, "methods": methods}


def test_the_first_epoch_of_equal_accuracy_counts() -> None:
    own, peer = verdicts(peer_figures(0.05, 0.1, 0.2))
    assert own == f"{WHOLE}: F 10.00% after 50 processor seconds"
    assert peer == "  RecTools sasrec reaches it after 200, 4.0 times as long"


def test_a_peer_that_never_gets_there() -> None:
    text = "does not reach it in 300 (3 epochs); its best is 9.00% after 200"
    assert verdicts(peer_figures(0.05, 0.09, 0.08))[1].endswith(text)


def test_the_epoch_to_quote_is_the_best_on_validation_users() -> None:
    rows = peer_figures(0.05, 0.09, 0.08)["methods"]["RecTools sasrec"]["rows"]
    rows[2]["test"] = {"f_measure": 0.5}
    assert best_row(rows)["epoch"] == 2


def test_the_table_has_a_row_per_method() -> None:
    assert table("x", peer_figures(0.05, 0.1), 1).row_count == 2


def test_windows_share_one_item_so_that_every_other_item_is_a_target_once() -> None:
    found = windows(Ragged.from_rows([[1, 2, 3, 4, 5, 6], [7, 8, 9], [1, 2, 3, 4, 5], [4]]), 2)
    assert [row.tolist() for row in found] == [[1, 2, 3], [3, 4, 5], [5, 6], [7, 8, 9], [1, 2, 3], [3, 4, 5], [4]]


@pytest.mark.parametrize("neighbours", [0, 8])
def test_a_query_timed_part_by_part_has_the_answer_of_the_whole(neighbours: int) -> None:
    model = random_model(neighbours=neighbours)
    history = Ragged.from_rows([[1, 2, 3]])
    whole = model.rank(history, 5, Filters(exclude=history), beam=6)
    spent, items, scores = TimedQuery(model.retriever, n=5, beam=6)(history)
    assert spent.shape == (len(PARTS),)
    assert (spent >= 0).all()
    assert (items.tolist(), scores.tolist()) == (whole.items[0].tolist(), whole.scores[0].tolist())


CURVE = [(40.0, 0.10), (100.0, 0.20), (400.0, 0.30)]
"""A frontier of (microseconds, recall)."""


def test_a_curve_is_above_another_only_if_it_is_at_every_time() -> None:
    better = [(spent, recall + 0.01) for spent, recall in CURVE]
    assert ann_curves.verdict(better, CURVE)["verdict"] == "above"
    assert ann_curves.verdict(CURVE, CURVE)["verdict"] == "above"
    found = ann_curves.verdict(CURVE, better)
    assert found["verdict"] == "below"
    # At 50 microseconds 0.1 + 0.1 log(50 / 40) / log(100 / 40) = 0.1244.
    assert found["lowest"]["microseconds"] == 50
    assert found["lowest"]["ratio"] == pytest.approx(0.1244 / 0.1344, abs=1e-4)
    assert found["at"]["100"]["ratio"] == pytest.approx(0.20 / 0.21)


def test_a_curve_at_most_half_a_percent_below_is_on_it() -> None:
    assert ann_curves.verdict([(spent, 0.996 * recall) for spent, recall in CURVE], CURVE)["verdict"] == "on"
    assert ann_curves.verdict([(spent, 0.994 * recall) for spent, recall in CURVE], CURVE)["verdict"] == "below"


def test_what_a_curve_does_below_50_microseconds_does_not_count() -> None:
    assert ann_curves.verdict([(49.0, 0.30)], CURVE)["verdict"] == "above"
    late = ann_curves.verdict([(60.0, 0.30)], CURVE)
    assert (late["verdict"], late["lowest"]["ratio"]) == ("below", 0)
    never = ann_curves.verdict(CURVE, [(1000.0, 0.0)])
    assert (never["verdict"], never["lowest"]) == ("above", None)


def test_the_least_favourable_build_decides() -> None:
    verdicts = [ann_curves.verdict(CURVE, [(50.0, recall)]) for recall in (0.05, 0.2, 0.1)]
    assert ann_curves.worst(verdicts) == {**verdicts[1], "build": 1}


def test_the_better_of_both_curves_is_judged_at_each_time() -> None:
    pytest.importorskip("threadpoolctl")
    from benchmarks.ann import EITHER, judge

    own = {"deep_retrieval": [(100.0, 0.30)], "index_alone": [(50.0, 0.20)]}
    points = {"ef 10": {"cpu_microseconds": 50.0, "recall": 0.20}, "ef 50": {"cpu_microseconds": 100.0, "recall": 0.30}}
    found = judge(own, points)
    assert [found[key]["verdict"] for key in (*own, EITHER)] == ["below", "below", "above"]


def test_the_cost_model_counts_bytes() -> None:
    shape = Shape(1000, d=64, J=3, S=50)
    assert shape.row_bytes == 260
    assert shape.optimiser_bytes == 780_000
    assert shape.score_table_bytes == 600_000
    assert shape.m_step_bytes == 88_000
    assert shape.bundle_bytes == 333_920


COSTS = Costs(
    encoder=1e-5,
    structure=5e-6,
    score=5e-5,
    m_step=2e-6,
    m_step_growth=0.25,
    out_of_core=6e-6,
    query=4e-4,
    event=1e-3,
    open_item=4e-7,
    rows=5000,
    process_gb=0.2,
    dense=100_000,
)


def test_the_cost_model_follows_the_number_of_items_and_workers() -> None:
    assert COSTS.m_step_seconds(10**6) == pytest.approx(2.0)
    assert COSTS.m_step_seconds(10**8) == pytest.approx(200 * 1.5)
    assert COSTS.step_network_bytes(Shape(10**6), 1) == 0
    # 5,000 numbers of 8 bytes, rows and gradients of 260, and gradients of dense parameters there and back.
    assert COSTS.step_network_bytes(Shape(10**6), 2) == pytest.approx(0.5 * (5000 * 528 + 800_000))
    rows = dict(plan(COSTS, Shape(300 * 10**6), 1e9, workers=10, cores=10))
    assert rows["bundle"] == "100 GB"
    assert rows["one pass over a day's events, encoder and structure"] == "4.2 core-hours"
    assert rows["stream, cores for all events at an even rate"] == "11.6"


def test_the_page_on_scale_holds_the_tables_of_the_cost_model() -> None:
    page = (ROOT.parent / "docs" / "scale.md").read_text()
    for name, text in tables(json.loads(FILE.read_text())).items():
        assert f"<!-- cost-model: {name} -->\n{text}\n<!-- end -->" in page
