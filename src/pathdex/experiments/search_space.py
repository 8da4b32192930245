"""What tuning searches: hyper-parameters with ranges or choices, by default those that `Config` declares."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from pathdex.config import Config
from pathdex.errors import ConfigError, Problem, did_you_mean
from pathdex.parameters import SearchChoices, SearchRange, SearchValues

if TYPE_CHECKING:
    import optuna

SearchSpace: TypeAlias = Mapping[str, SearchValues]
FIELDS = {spec.name: spec for spec in dataclasses.fields(Config)}
FORMS = "write NAME, NAME=LOW..HIGH, NAME=LOW..HIGH:log or NAME=A,B,C"


def default_space() -> SearchSpace:
    """The hyper-parameters that are worth tuning on any data."""
    return {name: spec.metadata["search"] for name, spec in FIELDS.items() if spec.metadata["search"] is not None}


def make_space(asked: Sequence[str] | Mapping[str, Any] | None, fixed: Mapping[str, Any]) -> SearchSpace:
    """The search space; raises one `ConfigError` with every problem.

    `asked` holds texts such as `dropout`, `dropout=0.1..0.6`, `learning_rate=1e-4..1e-2:log` and `encoder=gru,pooled`,
    or a mapping from names to a `SearchRange`, `SearchChoices`, a pair of bounds or a list of choices. None is
    `default_space()` without the `fixed` hyper-parameters.
    """
    if asked is None:
        return {name: values for name, values in default_space().items() if name not in fixed}
    if isinstance(asked, str) or not asked:
        raise ConfigError([Problem("must name hyper-parameters", "search", asked, FORMS)])
    space: dict[str, SearchValues] = {}
    problems: list[Problem | str] = []
    pairs = asked.items() if isinstance(asked, Mapping) else [_parts(text) for text in asked]
    for name, given in pairs:
        try:
            space[name] = _checked(name, given, fixed)
        except ConfigError as error:
            problems += error.problems
    if problems:
        raise ConfigError(problems)
    return space


def suggest(trial: optuna.trial.BaseTrial, space: SearchSpace) -> dict[str, Any]:
    """The values of a trial."""
    values: dict[str, Any] = {}
    for name, axis in space.items():
        if isinstance(axis, SearchChoices):
            values[name] = trial.suggest_categorical(name, axis.values)
        elif _is_whole(name):
            values[name] = trial.suggest_int(name, int(axis.low), int(axis.high), log=axis.log)
        else:
            values[name] = trial.suggest_float(name, axis.low, axis.high, log=axis.log)
    return values


def holds(axis: SearchValues, value: Any) -> bool:
    """Whether a value lies in the range or is one of the choices."""
    if isinstance(axis, SearchChoices):
        return value in axis.values
    return isinstance(value, int | float) and axis.low <= value <= axis.high


def describe_axis(axis: SearchValues) -> str:
    """As it is typed."""
    if isinstance(axis, SearchChoices):
        return ",".join(_typed(one) for one in axis.values)
    return f"{axis.low}..{axis.high}{':log' if axis.log else ''}"


def _parts(text: str) -> tuple[str, str | None]:
    name, sign, values = text.partition("=")
    return name.strip().replace("-", "_"), values.strip() if sign else None


def _checked(name: str, given: Any, fixed: Mapping[str, Any]) -> SearchValues:
    if name not in FIELDS:
        raise _problem("is not a hyper-parameter" + did_you_mean(name, FIELDS), name)
    if name in fixed:
        raise _problem(f"{name} is fixed to {fixed[name]!r}", name, "search it or fix it, not both")
    axis = _axis(name, given)
    ends = axis.values if isinstance(axis, SearchChoices) else (axis.low, axis.high)
    if isinstance(axis, SearchRange) and axis.log and axis.low <= 0:
        raise _problem("a logarithmic range must begin above 0", f"{name}={describe_axis(axis)}")
    if isinstance(axis, SearchRange) and axis.low >= axis.high:
        raise _problem("the range must end above its begin", f"{name}={describe_axis(axis)}")
    problems: list[Problem | str] = []
    for value in ends:
        try:
            Config.from_dict({name: int(value) if _is_whole(name) and isinstance(axis, SearchRange) else value})
        except ConfigError as error:
            problems += error.problems
    if problems:
        raise ConfigError(problems)
    return axis


def _axis(name: str, given: Any) -> SearchValues:
    if isinstance(given, SearchRange | SearchChoices):
        return given
    if isinstance(given, tuple) and len(given) == 2 and _is_number(name):
        return SearchRange(*given)
    if isinstance(given, list | tuple) and given:
        return SearchChoices(tuple(given))
    if isinstance(given, str):
        return _parsed(name, given)
    if given is not None:
        raise _problem("must be a pair of bounds or a list of choices", given)
    rules = FIELDS[name].metadata
    if rules["search"] is not None:
        found: SearchValues = rules["search"]
        return found
    if rules["choices"] is not None or _kind(name) == "bool":
        return SearchChoices(rules["choices"] or (False, True))
    if rules["low"] is not None and rules["high"] is not None and rules["high"] <= 1:
        return SearchRange(rules["low"], rules["high"])
    raise _problem("has no range of its own", name, f"give one, as in {name}=LOW..HIGH")


def _parsed(name: str, text: str) -> SearchValues:
    if _is_number(name) and ".." in text:
        bounds, _, scale = text.partition(":")
        low, _, high = bounds.partition("..")
        if scale not in ("", "log"):
            raise _problem("the only scale is log", text, FORMS)
        return SearchRange(_number(name, low), _number(name, high), scale == "log")
    values = [part.strip() for part in text.split(",") if part.strip()]
    if not values:
        raise _problem("must name values", f"{name}={text}", FORMS)
    return SearchChoices(tuple(_value(name, one) for one in values))


def _value(name: str, text: str) -> Any:
    if _is_number(name):
        return _number(name, text)
    return text.lower() == "true" if _kind(name) == "bool" and text.lower() in ("true", "false") else text


def _number(name: str, text: str) -> float:
    try:
        return int(text) if _is_whole(name) else float(text)
    except ValueError:
        kind = "whole number" if _is_whole(name) else "number"
        raise _problem(f"{text.strip()!r} is not a {kind}", name, FORMS) from None


def _kind(name: str) -> str:
    return str(FIELDS[name].type).split(" | ")[0]


def _is_whole(name: str) -> bool:
    return _kind(name) == "int"


def _is_number(name: str) -> bool:
    return _kind(name) in ("int", "float")


def _typed(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _problem(rule: str, value: Any, remedy: str | None = None) -> ConfigError:
    return ConfigError([Problem(rule, "search", value, remedy)])
