"""One flag per hyper-parameter, generated from the fields of `Config`."""

from __future__ import annotations

import dataclasses
import inspect
from typing import Any

from pathdex.cli.command import gathers, option
from pathdex.config import Config

PANEL = "Hyper-parameters"
SWITCHES = "Hyper-parameters (on or off)"
"""A separate panel, since the `--no-` names would squeeze the columns of the others."""
_KINDS = {"int": int, "float": float, "str": str, "bool": bool}


def flags() -> list[inspect.Parameter]:
    """One option per field of `Config`, None if not given."""
    return [_flag(spec) for spec in dataclasses.fields(Config)]


def _flag(spec: dataclasses.Field[Any]) -> inspect.Parameter:
    kind = _KINDS[str(spec.type).split(" | ")[0]]
    choices = spec.metadata["choices"]
    words = [spec.metadata["help"]]
    if choices is not None:
        words.append(f"one of {', '.join(choices)}")
    if spec.default is not None:
        words.append(f"default {str(spec.default).lower() if kind is bool else spec.default}")
    switch = kind is bool
    return option(spec.name, kind, "; ".join(words), panel=SWITCHES if switch else PANEL, switch=switch)


takes_parameters = gathers("parameters", flags())
"""The function gets the given hyper-parameters as `parameters`."""
