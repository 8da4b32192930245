"""Declaring parameters as dataclass fields, and checking all of them at once."""

from __future__ import annotations

import dataclasses
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any, TypeAlias, TypeVar

from pathdex.errors import ConfigError, Problem, did_you_mean

T = TypeVar("T")
LARGEST = 2**31 - 1
"""Numbers without an upper bound of their own are at most this, so that they fit all compiled code and torch."""


@dataclass(frozen=True)
class SearchRange:
    """Numbers that tuning tries, both bounds included; `log` if ratios matter rather than differences."""

    low: float
    high: float
    log: bool = False


@dataclass(frozen=True)
class SearchChoices:
    """Values that tuning tries."""

    values: tuple[Any, ...]


SearchValues: TypeAlias = SearchRange | SearchChoices


def parameter(
    default: Any,
    help: str,
    *,
    low: float | None = None,
    high: float | None = None,
    above: float | None = None,
    choices: tuple[str, ...] | None = None,
    search: SearchValues | None = None,
) -> Any:
    """A dataclass field with a default, a help text and the values it may take; `check_fields` checks it.

    `search` holds the values that tuning tries, if the parameter is worth tuning.
    """
    rules = {"help": help, "low": low, "high": high, "above": above, "choices": choices, "search": search}
    return field(default=default, metadata=rules)


def from_keywords(kind: type[T], values: Mapping[str, Any]) -> T:
    """`kind(**values)`; names that are no field are reported with every other problem in one `ConfigError`."""
    names = [spec.name for spec in dataclasses.fields(kind)]  # type: ignore[arg-type]
    problems: list[Problem | str] = [
        Problem(f"is not a hyper-parameter{did_you_mean(name, names)}", name, value)
        for name, value in values.items()
        if name not in names
    ]
    try:
        made = kind(**{name: value for name, value in values.items() if name in names})
    except ConfigError as error:
        raise ConfigError([*problems, *error.problems]) from None
    if problems:
        raise ConfigError(problems)
    return made


def check_fields(config: Any, cross_checks: Callable[[], Sequence[Problem | str]] = list) -> None:
    """Raise `ConfigError` with every field that breaks its rule or, if none does, every problem of `cross_checks`."""
    problems: list[Problem | str] = []
    for spec in dataclasses.fields(config):
        problem = _broken_rule(spec, getattr(config, spec.name))
        if problem is not None:
            problems.append(problem)
    # A rule between fields means nothing while one of them is wrong by itself.
    problems = problems or list(cross_checks())
    if problems:
        raise ConfigError(problems)


def count_problems(
    name: str, value: Any, low: int = 1, high: int | None = None, remedy: str | None = None
) -> list[Problem]:
    """The problem with a value that must be a whole number from `low` to `high`, or no problem."""
    whole = not isinstance(value, bool) and isinstance(value, Integral)
    if whole and value >= low and (high is None or value <= high):
        return []
    limit = "" if high is None else f" and at most {high}"
    return [Problem(f"must be a whole number of at least {low}{limit}", name, value, remedy)]


def _broken_rule(spec: dataclasses.Field[Any], value: Any) -> Problem | None:
    # The type is text under `from __future__ import annotations`, a class or a union otherwise.
    rules, kind = spec.metadata, spec.type.__name__ if isinstance(spec.type, type) else str(spec.type)

    def problem(rule: str, remedy: str | None = None) -> Problem:
        return Problem(rule, spec.name, value, remedy)

    if value is None:
        return None if "None" in kind else problem("must be set", f"leave it out for the default {spec.default!r}")
    if rules["choices"] is not None:
        if value not in rules["choices"]:
            return problem(f"must be one of {', '.join(rules['choices'])}{did_you_mean(value, rules['choices'])}")
        return None
    if kind in ("str", "bool"):
        wanted, words = (str, "text") if kind == "str" else (bool, "true or false")
        return None if isinstance(value, wanted) else problem(f"must be {words}")
    whole = kind.startswith("int")
    largest = LARGEST if whole else float(LARGEST)
    if isinstance(value, bool) or not isinstance(value, int if whole else (int, float)):
        return problem(f"must be a {'whole ' if whole else ''}number")
    if isinstance(value, float) and not math.isfinite(value):
        return problem("must be finite")
    for bound, broken, words in (
        (rules["low"], operator.lt, "at least"),
        (largest if rules["high"] is None else rules["high"], operator.gt, "at most"),
        (rules["above"], operator.le, "greater than"),
    ):
        if bound is not None and broken(value, bound):
            return problem(f"must be {words} {bound}", rules["help"])
    return None
