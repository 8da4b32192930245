"""`pathdex inspect`."""

from __future__ import annotations

import json
from pathlib import Path

import pathdex as package
from pathdex.cli.inspect import training_lines
from tests.cli.conftest import Pathdex


def test_the_health_is_shown_written_and_drawn(pathdex: Pathdex, run: Path, tmp_path: Path) -> None:
    figures, plot = tmp_path / "index.json", tmp_path / "index.png"
    text = pathdex("inspect", run, "--json", figures, "--plot", plot).stdout
    content = json.loads(figures.read_text())
    health = package.load(run).health()
    assert content["health"]["used_paths"] == health.used_paths
    assert len(content["m_steps"]) == 2
    assert all({"objective", "overlap", "top_size"} <= set(step) for step in content["m_steps"])
    for words in (
        f"{health.used_paths} of K^D = 4^2",
        f"{health.top_size} items",
        "distinct paths per item  2.00",
        "unreachable items        0",
        "Paths by number of items",
        "entropy (nats)",
        "dead",
        "objective",
    ):
        assert words in text
    assert plot.read_bytes().startswith(b"\x89PNG")


def test_what_training_chose_is_shown() -> None:
    records = [
        {"phase": "encoder", "choices": {"next_items": 64}, "reason": "best F"},
        {"phase": "structure"},
        {"phase": "comparison", "comparison": {}, "reason": "F@10: deep-retrieval 1.00%"},
    ]
    assert training_lines(records) == ["", "chosen: next_items=64: best F", "F@10: deep-retrieval 1.00%"]
    assert training_lines(records[1:2]) == []


def test_an_unknown_plot_format_is_refused_first(pathdex: Pathdex, run: Path, tmp_path: Path) -> None:
    outcome = pathdex("inspect", run, "--plot", tmp_path / "index.bmp", fails=1)
    assert "unknown ending '.bmp'; use .png, .pdf, .svg" in outcome.stderr
    assert outcome.stdout == ""


def test_a_model_without_paths_is_refused(pathdex: Pathdex, planted: Path, tmp_path: Path) -> None:
    saved = package.Popularity().fit(package.read(planted)).save(tmp_path / "popular")
    assert "a popularity model has no paths" in pathdex("inspect", saved, fails=1).stderr


def test_the_items_on_a_path(pathdex: Pathdex, titled_run: Path) -> None:
    found = json.loads(pathdex("inspect", titled_run, "--item", 3, "--json", "-").stdout)["paths"]
    assert all("Item 3" in one["titles"] for one in found)
    path = "-".join(map(str, found[0]["path"]))
    text = pathdex("inspect", titled_run, "--path", path).stdout
    assert path in text
    assert pathdex("inspect", titled_run, "--item", 3).stdout.startswith("Paths of 3 (Item 3)")
    assert "--path='x': must be one node per layer" in pathdex("inspect", titled_run, "--path", "x", fails=1).stderr
    both = pathdex("inspect", titled_run, "--path", path, "--item", 3, fails=1).stderr
    assert "pass one of --plot, --item and --path" in both
