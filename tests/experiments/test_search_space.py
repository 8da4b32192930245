"""What is searched: defaults, texts, mappings, and what is refused."""

from typing import Any

import optuna
import pytest

from pathdex.config import Config
from pathdex.errors import ConfigError
from pathdex.experiments.search_space import default_space, describe_axis, holds, make_space, suggest
from pathdex.parameters import SearchChoices, SearchRange


def test_the_default_space_holds_the_defaults_but_nothing_fixed() -> None:
    space, config = default_space(), Config()
    assert {"dropout", "learning_rate", "embedding_dim", "path_size"} < set(space)
    assert all(holds(axis, getattr(config, name)) for name, axis in space.items())
    assert set(space) - set(make_space(None, {"dropout": 0.2})) == {"dropout"}


@pytest.mark.parametrize(
    ("text", "name", "axis"),
    [
        ("dropout", "dropout", SearchRange(0.0, 0.7)),
        ("dropout=0.1..0.6", "dropout", SearchRange(0.1, 0.6)),
        ("learning-rate=1e-4..1e-2:log", "learning_rate", SearchRange(1e-4, 1e-2, log=True)),
        ("depth=2..4", "depth", SearchRange(2, 4)),
        ("encoder=gru,pooled", "encoder", SearchChoices(("gru", "pooled"))),
        ("encoder", "encoder", SearchChoices(("gru", "pooled", "attention"))),
        ("shared_items", "shared_items", SearchChoices((False, True))),
        ("shared_items=true", "shared_items", SearchChoices((True,))),
        ("batch_size=64,128", "batch_size", SearchChoices((64, 128))),
        ("neighbour_share", "neighbour_share", SearchRange(0.0, 1.0)),
    ],
)
def test_texts(text: str, name: str, axis: Any) -> None:
    assert make_space([text], {}) == {name: axis}
    # What is shown can be typed again.
    assert make_space([f"{name}={describe_axis(axis)}"], {}) == {name: axis}


def test_mappings() -> None:
    asked = {"dropout": (0.0, 0.5), "encoder": ["gru", "pooled"], "depth": SearchRange(2, 3), "path_size": None}
    assert make_space(asked, {}) == {
        "dropout": SearchRange(0.0, 0.5),
        "encoder": SearchChoices(("gru", "pooled")),
        "depth": SearchRange(2, 3),
        "path_size": SearchRange(4.0, 64.0, log=True),
    }


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (["drop_out"], "did you mean 'dropout'?"),
        (["dropout=0.1..much"], "'much' is not a number"),
        (["depth=1.5..3"], "'1.5' is not a whole number"),
        (["dropout=0.6..0.1"], "search='dropout=0.6..0.1': the range must end above its begin"),
        (["learning_rate=0..1:log"], "search='learning_rate=0.0..1.0:log': a logarithmic range must begin above 0"),
        (["dropout=0..2"], "dropout=2.0: must be at most 0.95"),
        (["encoder=lstm"], "encoder='lstm': must be one of gru"),
        (["dropout=0..0.5:square"], "the only scale is log"),
        (["epochs"], "give one, as in epochs=LOW..HIGH"),
        (["dropout="], "must name values"),
        (["path_weight"], "has no range of its own"),
        ([], "must name hyper-parameters"),
        ({"dropout": 3}, "must be a pair of bounds or a list of choices"),
    ],
)
def test_what_is_refused(asked: Any, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        make_space(asked, {})
    assert message in str(caught.value)


def test_all_problems_are_listed_and_fixed_ones_cannot_be_searched() -> None:
    with pytest.raises(ConfigError) as caught:
        make_space(["dropout", "depht=1..2"], {"dropout": 0.1})
    assert "dropout is fixed to 0.1" in str(caught.value)
    assert "did you mean 'depth'?" in str(caught.value)


def test_suggested_values_have_the_type_of_their_parameter() -> None:
    trial = optuna.trial.FixedTrial({"depth": 3, "dropout": 0.25, "encoder": "pooled"})
    found = suggest(trial, make_space(["depth=2..4", "dropout", "encoder"], {}))
    assert found == {"depth": 3, "dropout": 0.25, "encoder": "pooled"}
    assert isinstance(found["depth"], int)
