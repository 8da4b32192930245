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
