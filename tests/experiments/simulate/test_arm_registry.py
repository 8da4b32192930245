"""Arms by name."""

from __future__ import annotations

import pytest

from pathdex.errors import ConfigError, MissingExtraError
from pathdex.experiments.simulate.arm_registry import DESCRIPTIONS, make_arms
from pathdex.experiments.simulate.options import ARM_NAMES
from pathdex.experiments.simulate.platform import Platform
from pathdex.system import Feature
from tests.experiments.simulate.conftest import TINY


def test_every_arm_can_be_made_and_has_a_description() -> None:
    pytest.importorskip("usearch")
    assert list(make_arms(ARM_NAMES, TINY, Platform(TINY))) == list(ARM_NAMES) == list(DESCRIPTIONS)
    assert "every 2 minutes, served 1 later" in DESCRIPTIONS["ffm-hnsw"].format(**TINY.to_dict())


def test_unknown_arms() -> None:
    with pytest.raises(ConfigError, match="is not an arm"):
        make_arms(["oracle", "orakel"], TINY, Platform(TINY))


def test_the_baseline_needs_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Feature, "available", False)
    with pytest.raises(MissingExtraError, match="usearch"):
        make_arms(["ffm-hnsw", "oracle"], TINY, Platform(TINY))
    assert list(make_arms(["random", "oracle"], TINY, Platform(TINY))) == ["random", "oracle"]
