"""`pathdex warmup`: compiles for a model, or for a small built-in one."""

from __future__ import annotations

import re
from pathlib import Path

import pathdex as package
from tests.cli.conftest import Pathdex
from tests.recommender_contract import TEXT_IDS, grouped_data


def test_a_model_is_warmed_up_and_the_cache_is_named(pathdex: Pathdex, tmp_path: Path) -> None:
    model = package.Popularity().fit(grouped_data(TEXT_IDS)).save(tmp_path / "bundle")
    text = pathdex("warmup", model).stdout
    assert str(model) in text
    assert re.search(r"loading and compiling +\d+\.\d s", text)
    assert re.search(r"one query +\d+\.\d\d ms", text)
    assert "__pycache__" in text


def test_without_a_model_a_small_one_is_used(pathdex: Pathdex) -> None:
    assert "a small built-in one" in pathdex("warmup").stdout
