"""A finished report, an interrupted one that is resumed, and what a report refuses."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from pathdex.data import generate
from pathdex.errors import DataError, MissingExtraError, RunError
from pathdex.experiments.method_specs import METHOD_SPECS
from pathdex.experiments.plan import make_plan
from pathdex.experiments.report_request import ReproduceOptions, make_report_request
from pathdex.experiments.reproduce import Report, reproduce
from pathdex.system import Feature
from tests.experiments.conftest import StepRecorder

SECTIONS = [
    "Comparison",
    "Inference time",
    "Sensitivity",
    "Popularity",
    "Retrieval loss, index and training",
    "How to repeat this",
]
FIGURES = ["comparison", "curve", "sensitivity", "path-size", "popularity", "loss", "health", "training"]


def modified(folder: Path) -> dict[str, int]:
    return {file.name: file.stat().st_mtime_ns for file in (folder / "steps").iterdir()}


@pytest.fixture
def without_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Skip drawing, which takes seconds."""
    monkeypatch.setattr("pathdex.experiments.reproduce.write_report", lambda results, folder: (folder, folder))


def test_both_pages_have_every_section_and_figure(report: Report) -> None:
    page, markdown = report.html.read_text(), report.markdown.read_text()
    for section in SECTIONS:
        assert f"<h2>{section}</h2>" in page
        assert f"\n## {section}\n" in markdown
    for name in FIGURES:
        assert f"(figures/{name}.svg)" in markdown
        assert ElementTree.parse(report.html.parent / "figures" / f"{name}.svg").getroot().tag.endswith("svg")
    assert page.count("<svg") == len(FIGURES)
    assert "<script" not in page
    assert "Quick run" in page


def test_the_page_is_self_contained(report: Report) -> None:
    """The only addresses are XML namespaces."""
    page = report.html.read_text()
    assert 'src="' not in page
    assert "@import" not in page
    assert "<link" not in page


def test_the_json_has_a_row_per_method_options_seed_and_filter(report: Report) -> None:
    content = json.loads(report.json.read_text())
    assert content == json.loads(json.dumps(report.results))
    rows = content["results"]
    kinds = [(row["method"], row["candidate_budget"], row["seed"], row["filter_seen"]) for row in rows]
    ways = [("item-cf", None), ("deep-retrieval", 30), ("deep-retrieval", 15), ("deep-retrieval", 60)]
    ways.append(("brute-force", None))
    assert sorted(kinds, key=str) == sorted(
        [(*way, seed, seen) for way in ways for seed in (0, 1) for seen in (True, False)], key=str
    )
    assert all(row["seconds_per_query"] > 0 for row in rows)
    assert {"precision", "recall", "distinct_recall", "f_measure", "ndcg", "hit_rate", "coverage"} <= set(rows[0])


def test_means_and_deviations_follow_from_the_rows(report: Report) -> None:
    results = report.results
    own = next(row for row in results["comparison"] if row["method"] == "item-cf" and row["filter_seen"])
    first, second = (
        row["f_measure"] for row in results["results"] if row["method"] == "item-cf" and row["filter_seen"]
    )
    assert own["f_measure"] == pytest.approx((first + second) / 2)
    assert own["f_measure_deviation"] == pytest.approx(abs(first - second) / 2**0.5)


def test_every_method_is_tested_against_the_best_other_one(report: Report) -> None:
    pairs = {(row["method"], row["against"]) for row in report.results["significance"]}
    assert pairs == {
        ("item-cf", "deep-retrieval"),
        ("deep-retrieval", "item-cf"),
        ("brute-force", "deep-retrieval"),
    }
    there, back = (
        next(row for row in report.results["significance"] if row["method"] == name and row["filter_seen"])
        for name in ("item-cf", "deep-retrieval")
    )
    assert there["difference"] == -back["difference"]
    assert (there["low"], there["high"]) == (-back["high"], -back["low"])
    assert there["p_holm"] == back["p_holm"] >= there["p"]
    means = {
        row["method"]: row["f_measure"] for row in report.results["comparison"] if row["main"] and row["filter_seen"]
    }
    assert (there["difference"] > 0) == (means["item-cf"] > means["deep-retrieval"])


def test_the_other_parts(report: Report) -> None:
    results = report.results
    assert set(results["sensitivity"]) == {"num_nodes", "depth", "paths_per_item", "beam_size", "penalty"}
    assert all(sum(row["base"] for row in rows) == 1 for rows in results["sensitivity"].values())
    studied = [row["paths_per_item"] for row in results["sensitivity"]["paths_per_item"]]
    assert len(studied) == len(set(studied)) > 1
    for one in results["popularity"]["methods"]:
        assert sum(one["deciles"]) == pytest.approx(1)
        assert one["tail"] == pytest.approx(sum(one["deciles"][2:]))
    assert [row["against"] for row in results["popularity"]["tail_tests"]] == ["item-cf", "brute-force"]
    assert [one["seed"] for one in results["loss"]] == [0, 1]
    assert len(results["curves"]["deep-retrieval"]) == 3
    found = results["provenance"]
    assert len(found["steps"]) == len(list((report.html.parent / "steps").iterdir()))
    assert found["checksum"].startswith("sha256:")
    assert found["versions"]["torch"]


@pytest.mark.usefixtures("without_figures")
def test_a_finished_report_is_written_again_without_running_a_step(options: ReproduceOptions, report: Report) -> None:
    folder, recorder = report.html.parent, StepRecorder()
    before = modified(folder)
    assert (
        reproduce(make_report_request(options), folder, progress=recorder, command="x").results["results"]
        == report.results["results"]
    )
    assert recorder.planned == []
    assert modified(folder) == before


@pytest.mark.usefixtures("without_figures")
def test_a_report_of_an_earlier_version_has_fewer_figures(
    options: ReproduceOptions, report: Report, tmp_path: Path
) -> None:
    folder = shutil.copytree(report.html.parent, tmp_path / "report")
    for file in (folder / "steps").glob("fit-item-cf-*.json"):
        file.write_text(re.sub(r'"distinct_recall": [^,]+,', "", file.read_text()))
    found = reproduce(make_report_request(options), folder, command="x")
    have = {row["method"] for row in found.results["comparison"] if "distinct_recall" in row}
    assert have == {"deep-retrieval", "brute-force"}


@pytest.mark.usefixtures("without_figures")
def test_an_interrupted_report_is_resumed_without_repeating_steps(short: ReproduceOptions, tmp_path: Path) -> None:
    request = make_report_request(short)
    names = [step.name for step in make_plan(request)]
    stop = StepRecorder(stop="loss-seed0")
    with pytest.raises(KeyboardInterrupt):
        reproduce(request, tmp_path / "report", progress=stop)
    assert stop.finished == names[: names.index("loss-seed0")]
    before = modified(tmp_path / "report")
    rest = StepRecorder()
    reproduce(request, tmp_path / "report", progress=rest)
    assert stop.finished + rest.finished == names
    after = modified(tmp_path / "report")
    assert {name: after[name] for name in before} == before
    more = StepRecorder()
    added = replace(short, methods=[*short.methods, "popularity"])
    reproduce(make_report_request(added), tmp_path / "report", progress=more)
    # Times are comparable only within one run, so they are measured again.
    assert more.finished == ["fit-popularity-seed0", "time-seed0"]


@pytest.mark.usefixtures("without_figures")
def test_tuning_tries_every_trial_and_fits_the_selected_one_once(short: ReproduceOptions, tmp_path: Path) -> None:
    options = replace(short, methods=["item-cf"], parameters={}, seeds=[0, 1], quick=False)
    found = reproduce(make_report_request(options), tmp_path / "report").results
    trials = found["tuning"]["item-cf"]
    assert [trial["parameters"] for trial in trials] == [{}, *METHOD_SPECS["item-cf"].trials]
    best = next(trial for trial in trials if trial["chosen"])
    assert best["f_measure"] == max(trial["f_measure"] for trial in trials)
    assert found["hyper_parameters"]["item-cf"].items() >= best["parameters"].items()
    seconds = [row["fit_seconds"] for row in found["results"] if row["seed"] == 0]
    assert seconds == [best["fit_seconds"]] * 2
    assert sorted(file.name for file in (tmp_path / "report" / "models").iterdir()) == [
        "item-cf-seed0",
        "item-cf-seed1",
    ]


def test_a_changed_request_is_refused(options: ReproduceOptions, report: Report) -> None:
    folder = report.html.parent
    with pytest.raises(
        RunError, match=r"cannot be resumed with other options: n=4, but the report has 3; use the same"
    ):
        reproduce(make_report_request(replace(options, n=4)), folder)
    with pytest.raises(RunError, match=r"first_seed=1, but the report has 0"):
        reproduce(make_report_request(replace(options, seeds=[1, 0])), folder)
    other = {"deep-retrieval": {**options.parameters["deep-retrieval"], "epochs": 3}}
    with pytest.raises(
        RunError, match=r"fit-deep-retrieval-seed0.json cannot be resumed with other options: parameters=.*'epochs': 3"
    ):
        reproduce(make_report_request(replace(options, parameters=other)), folder)


@pytest.mark.usefixtures("without_figures")
def test_changed_data_is_refused(short: ReproduceOptions, planted: Path, tmp_path: Path) -> None:
    source = tmp_path / "rows.parquet"
    source.write_bytes(planted.read_bytes())
    options = replace(short, source=source, methods=["popularity"], parameters={})
    reproduce(make_report_request(options), tmp_path / "report")
    generate(tmp_path / "other.parquet", users=80, items=40, interactions=1200, seed=1).replace(source)
    with pytest.raises(RunError, match=r"checksum='\w{64}', but the report has '\w{64}'"):
        reproduce(make_report_request(options), tmp_path / "report")


def test_missing_data_is_refused(short: ReproduceOptions, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"does not exist; check the path$"):
        reproduce(make_report_request(replace(short, source=tmp_path / "no.parquet")), tmp_path / "report")
    assert list(tmp_path.iterdir()) == []


def test_the_figures_need_matplotlib(short: ReproduceOptions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    missing = Feature("the figures of a report (pathdex reproduce)", "no_such_package", "plot")
    monkeypatch.setattr("pathdex.experiments.reproduce.PLOTTING", missing)
    with pytest.raises(MissingExtraError, match=r"no_such_package; install it with: pip install 'pathdex\[plot\]'"):
        reproduce(make_report_request(short), tmp_path / "report")
