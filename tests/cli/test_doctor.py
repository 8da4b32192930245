"""`pathdex doctor`."""

from __future__ import annotations

import json
import platform
from pathlib import Path

import pytest

from pathdex.config import tomllib
from pathdex.system import FEATURES, Feature
from tests.cli.conftest import Pathdex


def test_it_shows_versions_the_machine_and_features(pathdex: Pathdex, monkeypatch: pytest.MonkeyPatch) -> None:
    features = (Feature("reading", "json", "plot"), Feature("flying", "no_such_package", "wings"))
    monkeypatch.setattr("pathdex.system.FEATURES", features)
    text = pathdex("doctor").stdout
    assert f"python       {platform.python_version()}" in text
    for name in ("torch", "cores", "threads", "devices  cpu", "memory", "GB free in"):
        assert name in text
    lines = [" ".join(line.split()) for line in text.splitlines()]
    assert "reading json yes" in lines
    assert "flying no_such_package no: pip install 'pathdex[wings]'" in lines


def test_as_json(pathdex: Pathdex) -> None:
    found = json.loads(pathdex("doctor", "--json", "-").stdout)
    assert found["versions"]["python"] == platform.python_version()
    assert found["machine"]["cores"] >= 1
    assert {one["package"] for one in found["features"]} == {one.package for one in FEATURES}


def test_every_extra_is_listed_as_a_feature() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    assert {feature.extra for feature in FEATURES} == set(project["optional-dependencies"]) - {"dev", "docs"}
