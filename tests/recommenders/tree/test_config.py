"""Hyper-parameters of the trees: checked together, with defaults per method."""

import dataclasses

import pytest

from pathdex.errors import ConfigError
from pathdex.recommenders.jtm import JTM
from pathdex.recommenders.otm import OTM
from pathdex.recommenders.tdm import TDM
from pathdex.recommenders.tree.config import TreeConfig


def test_every_broken_rule_is_reported() -> None:
    with pytest.raises(ConfigError) as caught:
        TreeConfig(epochs=0, gap=11, node_model="linear")
    assert [problem.argument for problem in caught.value.problems] == ["node_model", "gap", "epochs"]


def test_every_parameter_has_a_help_text() -> None:
    assert all(spec.metadata["help"] for spec in dataclasses.fields(TreeConfig))


def test_methods_differ_in_their_defaults_alone() -> None:
    assert TDM().get_params() == dataclasses.asdict(TreeConfig())
    assert JTM().get_params() == dataclasses.asdict(TreeConfig(hierarchical=True, assignments=2, epochs=2))
    assert OTM().get_params() == dataclasses.asdict(TreeConfig(beam_epochs=2, next_items=10))
    assert JTM(epochs=5).settings.epochs == 5
