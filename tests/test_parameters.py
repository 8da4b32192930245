"""Declared parameters: each rule has its message, and all broken rules come at once."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from pathdex.errors import ConfigError, Problem
from pathdex.parameters import check_fields, count_problems, from_keywords, parameter


@dataclass(frozen=True, kw_only=True)
class Oven:
    heat: float = parameter(180.0, "degrees", low=50.0, high=250.0)
    trays: int = parameter(2, "trays inside", low=1)
    glow: float = parameter(1.0, "brightness", above=0.0)
    mode: str = parameter("fan", "heating", choices=("fan", "grill"))
    label: str = parameter("", "printed on the door")
    light: bool = parameter(True, "whether the lamp is on")
    timer: int | None = parameter(None, "minutes; default: none", low=1)

    def __post_init__(self) -> None:
        check_fields(self, self._cross_checks)

    def _cross_checks(self) -> list[Problem]:
        return [Problem("needs a timer", "mode", self.mode)] if self.mode == "grill" and self.timer is None else []


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"heat": 20}, "heat=20: must be at least 50.0; degrees"),
        ({"heat": 300}, "heat=300: must be at most 250.0; degrees"),
        ({"glow": 0.0}, "glow=0.0: must be greater than 0.0; brightness"),
        ({"trays": 1.5}, "trays=1.5: must be a whole number"),
        ({"trays": True}, "trays=True: must be a whole number"),
        ({"heat": float("nan")}, "heat=nan: must be finite"),
        ({"mode": "fann"}, "mode='fann': must be one of fan, grill; did you mean 'fan'?"),
        ({"label": 3}, "label=3: must be text"),
        ({"light": 1}, "light=1: must be true or false"),
        ({"trays": None}, "trays=None: must be set; leave it out for the default 2"),
        ({"mode": "grill"}, "mode='grill': needs a timer"),
    ],
)
def test_a_broken_rule_has_its_message(values: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Oven(**values)
    assert str(caught.value) == message


@pytest.mark.parametrize("value", [True, 1.0, "2", None, 1, 10, np.int64(1)])
def test_a_count_out_of_range_is_a_problem(value: Any) -> None:
    (problem,) = count_problems("trays", value, 2, 9, "buy another")
    assert str(problem) == f"trays={value!r}: must be a whole number of at least 2 and at most 9; buy another"


@pytest.mark.parametrize("value", [2, 9, np.int32(3)])
def test_a_count_in_range_is_no_problem(value: Any) -> None:
    assert count_problems("trays", value, 2, 9) == []
    assert count_problems("trays", value) == []


def test_all_broken_rules_are_reported_and_rules_between_fields_only_after_them() -> None:
    with pytest.raises(ConfigError) as caught:
        Oven(heat=20, trays=0, mode="grill")
    assert [problem.argument for problem in caught.value.problems] == ["heat", "trays"]


def test_valid_values_pass() -> None:
    assert Oven(heat=100, timer=None).heat == 100


def test_unknown_keywords_are_reported_with_all_other_problems() -> None:
    with pytest.raises(ConfigError) as caught:
        from_keywords(Oven, {"tray": 1, "heat": 20})
    assert [str(problem) for problem in caught.value.problems] == [
        "tray=1: is not a hyper-parameter; did you mean 'trays'?",
        "heat=20: must be at least 50.0; degrees",
    ]
    assert from_keywords(Oven, {"heat": 100}) == Oven(heat=100)
