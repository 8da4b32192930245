"""Figures of the index: what they draw, how they look, and what their captions say."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pathdex.evaluation.decomposition import POPULARITY_BUCKETS, bucket_name
from pathdex.evaluation.visual import method_colour
from pathdex.experiments.report import index_figures as figures
from tests.figure_checks import assert_caption_says_whiskers, assert_readable, texts, whisker_ends

BUCKETS = [bucket_name(*one) for one in POPULARITY_BUCKETS]


def point(f: float, error: float | None, **values: Any) -> dict[str, Any]:
    measured = {"recall": f - 0.02, "precision": f + 0.1, "f_measure": f}
    errors = {} if error is None else {f"{name}_standard_error": error for name in measured}
    return {**measured, **errors, **values}


def study(error: float | None) -> dict[str, list[dict[str, Any]]]:
    def rows(key: str, values: list[float], base: int) -> list[dict[str, Any]]:
        return [
            point(0.1 + 0.01 * place, error, **{key: value}, base=place == base, beam=2, at_budget=point(0.12, error))
            for place, value in enumerate(values)
        ]

    beams = [point(0.1, error, beam=beam, base=beam == 3) for beam in (1, 2, 3, 5, 7, 10, 15, 20, 50, 100, 200)]
    return {
        "num_nodes": rows("nodes", [5, 21, 42], 1),
        "paths_per_item": rows("paths_per_item", [1, 2, 3], 2),
        "beam_size": beams,
        "penalty": rows("penalty", [1.4e-6, 1.4e-4, 1.4e-3], 1),
    }


def test_sensitivity_is_shaded_where_errors_are_known() -> None:
    chart = figures.sensitivity_figure(study(0.01), 10, 0)
    assert_readable(chart.figure)
    assert "Shaded: 95% intervals over the test users of one seed." in chart.caption
    for axes in chart.figure.axes:
        (band,) = axes.collections
        ys = band.get_paths()[0].vertices[:, 1]
        line = axes.lines[1].get_ydata()
        assert ys.max() == pytest.approx(line.max() + 1.96, abs=0.01)


def test_sensitivity_of_an_earlier_version_has_no_band() -> None:
    chart = figures.sensitivity_figure(study(None), 10, 0)
    assert "Shaded" not in chart.caption
    assert not any(axes.collections for axes in chart.figure.axes)


def test_sensitivity_names_its_lines_once_and_draws_the_base() -> None:
    chart = figures.sensitivity_figure(study(0.01), 10, 0)
    named = [text for text, _ in texts(chart.figure)]
    assert named.count("B = 2") == named.count("100 cand.") == 3
    assert chart.figure.axes[0].lines[0].get_xdata()[0] == 21


def test_sizes_of_paths_are_named_directly() -> None:
    rows = [{"penalty": 10.0**-step, "top_size": 10 * step, "item_mean_size": step} for step in (4, 3, 2)]
    chart = figures.path_size_figure(rows)
    assert_readable(chart.figure)
    assert {"fullest path", "average item's path"} <= {text for text, _ in texts(chart.figure)}


def losses(seeds: int, *, errors: bool = True) -> list[dict[str, Any]]:
    def one(seed: int, budget: int) -> dict[str, Any]:
        stages = {"f_brute_force": 0.3 + 0.01 * seed, "f_structure": 0.25 + 1e-4 * budget, "f_final": 0.31}
        found: dict[str, Any] = {**stages, "filter_seen": True, "candidate_budget": budget}
        found["kept_by_popularity"] = {name: 0.004 * budget + 0.02 * place for place, name in enumerate(BUCKETS)}
        found["kept_by_popularity"][BUCKETS[0]] = None
        if errors:
            found |= {f"{stage}_standard_error": 0.02 for stage in stages}
            found["kept_by_popularity_standard_error"] = dict.fromkeys(BUCKETS[1:], 0.03)
        return found

    return [{"seed": seed, "losses": [one(seed, budget) for budget in (50, 100, 200)]} for seed in range(seeds)]


def test_the_loss_of_one_seed_has_whiskers_over_its_users() -> None:
    chart = figures.loss_figure(losses(1), 10)
    assert_readable(chart.figure)
    assert "Whiskers: 95% intervals over the test users of one seed." in chart.caption
    left, right = chart.figure.axes
    halves = {round((high - low) / 2, 2) for low, high in whisker_ends(left)}
    assert halves == {3.92}
    assert {round((high - low) / 2, 2) for low, high in whisker_ends(right)} == {5.88}
    assert [label.get_text() for label in right.get_xticklabels()] == BUCKETS[1:]


def test_the_loss_of_several_seeds_has_whiskers_over_the_seeds() -> None:
    chart = figures.loss_figure(losses(3), 10)
    assert "Whiskers: 95% intervals over 3 seeds (Student's t)." in chart.caption
    expected = 4.3027 * 1.0 / np.sqrt(3)  # 30, 31 and 32 percent
    assert (np.ptp(whisker_ends(chart.figure.axes[0])[0]) / 2) == pytest.approx(expected, rel=1e-3)


def test_the_loss_of_an_earlier_version_has_none() -> None:
    chart = figures.loss_figure(losses(1, errors=False), 10)
    assert_caption_says_whiskers(chart)
    assert "surer" not in chart.caption


def training(seed: int, method: str = "deep-retrieval") -> dict[str, Any]:
    health = {"used_paths": 90 + seed, "item_mean_size": 4.0, "top_size": 9, "dead_nodes": 0, "overlap": 0.5}
    steps = [
        {**health, "objective": 1.0, "entropy_share": 0.9, "softmax": 3.0 - step, "structure": 2.0} for step in (0, 1)
    ]
    records = steps if method == "deep-retrieval" else [{"loss": 2.0}, {"loss": 1.0}]
    return {"seed": seed, "method": method, "records": records}


def test_each_seed_is_a_named_line_of_the_same_colour() -> None:
    chart = figures.health_figure([training(0), training(1)])
    assert_readable(chart.figure)
    assert "One line per seed." in chart.caption
    lines = [line for line in chart.figure.axes[0].lines if not line.get_label().startswith("_")]
    assert [line.get_label() for line in lines] == ["seed 0", "seed 1"]
    assert {line.get_color() for line in lines} == {method_colour("deep-retrieval")}
    assert len({(line.get_marker(), line.get_linestyle()) for line in lines}) == 2


def test_one_seed_needs_no_name() -> None:
    chart = figures.health_figure([training(0)])
    assert not chart.figure.axes[0].texts
    assert chart.caption == "The index after each M-step. Seed 0."


def test_health_without_m_steps_is_drawn_empty() -> None:
    assert figures.health_figure([{"seed": 0, "records": []}]).part("health").svg.startswith("<?xml")


def test_training_has_no_empty_axes() -> None:
    alone = figures.training_figure([training(0)], "deep-retrieval")
    assert len(alone.figure.axes) == 2
    assert alone.caption == "Deep Retrieval's training losses, seed 0."
    both = figures.training_figure([training(0), training(1), training(0, "tdm")], "deep-retrieval")
    assert_readable(both.figure)
    assert both.figure.axes[2].lines[0].get_ydata().tolist() == [1.0, 0.5]
    assert both.caption == "Deep Retrieval's training losses, one line per seed. Right: the other methods, seed 0."
