"""`pathdex doctor`."""

from __future__ import annotations

import platform

import pytest

from pathdex.system import Feature
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
