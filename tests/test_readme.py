"""The README's commands and Python blocks run in order on a small file; its figures are those of the reports."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from typer.testing import CliRunner

from pathdex.cli.app import app
from tests.snippets import MOVIES, ROOT, TINY, code_blocks, make_workbench, run_python, typed_lines

README = ROOT / "README.md"
METHODS = {
    "Deep Retrieval": "deep-retrieval",
    "OTM": "otm",
    "TDM": "tdm",
    "JTM": "jtm",
    "YouTube DNN": "youtube-dnn",
    "FFM with HNSW": "ffm-hnsw",
    "Item-CF": "item-cf",
    "ALS": "implicit-als",
    "popularity": "popularity",
}
TINY_FLAGS = [part for name, value in TINY.items() for part in (f"--{name.replace('_', '-')}", str(value))]


@pytest.fixture(scope="module")
def walked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """The folder after all commands of the README, the output of each, and the names its Python blocks define."""
    folder = tmp_path_factory.mktemp("readme")
    with pytest.MonkeyPatch.context() as patch:
        make_workbench(folder, patch)
        (folder / "events.jsonl").write_text(
            "".join(json.dumps({"user": n % 20, "item": n % 7, "time": n}) + "\n" for n in range(100))
        )
        (folder / "ratings-of-june.csv").write_text((folder / "ratings.csv").read_text())
        outputs = {}
        for line in typed_lines(README, "pathdex"):
            # The first training creates the folder; with --resume a run keeps its settings.
            small = TINY_FLAGS if line[0] in ("train", "tune") and not {"--resume", "--from"} & set(line) else []
            if line[0] == "tune":
                small = [*small, "--trials", "2", "--search", "dropout"]
            done = CliRunner().invoke(app, [*line, *small])
            assert done.exit_code == 0, f"pathdex {' '.join(line)}\n{done.output}"
            outputs[" ".join(line)] = done.output
        yield {"folder": folder, "outputs": outputs, "names": run_python(README)}


def test_it_shows_every_step() -> None:
    steps = [line[0] if line[0] != "data" else f"data {line[1]}" for line in typed_lines(README, "pathdex")]
    wanted = [
        "doctor", "data describe", "data validate", "train", "tune", "evaluate", "inspect", "recommend", "stream",
    ]  # fmt: skip
    assert list(dict.fromkeys(steps)) == wanted


def test_the_first_python_block_is_read_fit_recommend_save_load(walked: dict[str, Any]) -> None:
    first = code_blocks(README, "python")[0]
    assert [verb for verb in ("read(", ".fit(", ".recommend(", ".save(", "load(") if verb in first] == [
        "read(", ".fit(", ".recommend(", ".save(", "load(",
    ]  # fmt: skip
    answer = walked["names"]["same"].recommend([260, 1196], n=10)
    ids = [one.id for one in answer]
    assert len(set(ids)) == 10
    assert set(ids) <= set(MOVIES) - {260, 1196}


def test_the_second_python_block_opens_the_run(walked: dict[str, Any]) -> None:
    model = walked["names"]["model"]
    assert model.config.num_nodes == TINY["num_nodes"]
    assert {2571} & {one.id for one in model.recommend([260], n=30)}
    assert not {2571} & {one.id for one in model.recommend([260], n=30, deny=[2571])}


def test_the_evaluation_leaves_its_figures(walked: dict[str, Any]) -> None:
    figures = json.loads((walked["folder"] / "figures.json").read_text())
    assert {row["method"] for row in figures["results"]} == {"deep-retrieval", "brute-force", "item-cf", "popularity"}
    assert {row["candidate_budget"] for row in figures["results"]} == {None, 50, 100, 200}


def test_every_user_of_the_file_gets_recommendations(walked: dict[str, Any]) -> None:
    rows = pl.read_parquet(walked["folder"] / "recommendations.parquet")
    assert rows.columns == ["user", "rank", "item", "score"]
    assert rows["user"].n_unique() == 60


def test_resuming_a_finished_run_says_so(walked: dict[str, Any]) -> None:
    resumed = next(output for line, output in walked["outputs"].items() if "--resume" in line)
    assert "already finished" in resumed


def test_the_figures_are_marked_once() -> None:
    assert README.read_text().count("<!-- figures: ml-1m -->") == 1
    assert README.read_text().count("<!-- figures: comparison -->") == 1


@pytest.mark.parametrize(("column", "report"), [(1, "ml-1m"), (2, "amazon-beauty"), (3, "nowplaying")])
def test_the_comparison_agrees_with_the_reports(column: int, report: str) -> None:
    results = json.loads((ROOT / "benchmarks/results/reports" / report / "results.json").read_text())
    rows = [row for row in results["comparison"] if row["main"] and row["filter_seen"]]
    measured = {row["method"]: f"{100 * row['f_measure']:.2f}" for row in rows if row["method"] != "brute-force"}
    block = README.read_text().split("<!-- figures: comparison -->\n")[1].split("\n<!-- end -->")[0]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in block.splitlines()[2:]]
    shown = {METHODS[row[0]]: row[column] for row in cells}
    assert {method: figure.strip("*") for method, figure in shown.items()} == measured
    best = max(measured, key=lambda method: float(measured[method]))
    assert [method for method, figure in shown.items() if figure.startswith("**")] == [best]


def test_the_first_screen_names_the_two_commands() -> None:
    head = README.read_text()[:2500]
    assert all(f"$ make {target}" in head for target in ("demo", "test"))
    assert Path(ROOT / "LICENSE").exists()
