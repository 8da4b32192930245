"""What `pathdex reproduce` is to do: checked before any data is read, and compared when a report is resumed."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pathdex.errors import ConfigError, Problem, RunError
from pathdex.experiments.method_specs import METHOD_SPECS, choose_methods
from pathdex.experiments.presets import FULL, QUICK, QUICK_METHODS, Budget, find_preset
from pathdex.experiments.run_request import TrainOptions, make_run_request
from pathdex.recommenders.arguments import check_positive
from pathdex.recommenders.brute_force import BruteForce
from pathdex.recommenders.deep_retrieval import DeepRetrieval
from pathdex.recommenders.registry import make_estimator

GROWING = ("methods", "missing", "seeds", "parameters", "tuned", "sensitivity")
"""Fields that may change when a report is resumed, since they only add steps; a step they would change raises."""


@dataclass(frozen=True)
class ReproduceOptions:
    """Options as typed; None or empty if not given."""

    source: Path
    reading: Mapping[str, Any] = field(default_factory=dict)
    split: Mapping[str, Any] = field(default_factory=dict)
    preset: str | None = None
    methods: Sequence[str] = ()
    seeds: Sequence[int] = ()
    n: int | None = None
    parameters: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Hyper-parameters by method."""
    quick: bool = False
    tune: bool = True
    sensitivity: bool = True
    options: Mapping[str, Any] = field(default_factory=dict)
    """`device` and `threads`."""


@dataclass(frozen=True)
class ReportRequest:
    """A comparison with all defaults filled in."""

    source: Path
    preset: str
    reading: dict[str, Any]
    split: dict[str, Any]
    """`kind` and the options of that split."""
    methods: tuple[str, ...]
    missing: dict[str, str]
    """Methods left out, and why."""
    seeds: tuple[int, ...]
    n: int
    parameters: dict[str, dict[str, Any]]
    """Fixed hyper-parameters by method; tuning does not change them."""
    tuned: tuple[str, ...]
    quick: bool
    sensitivity: bool
    device: str
    threads: int | None

    @property
    def budget(self) -> Budget:
        return QUICK if self.quick else FULL

    def fixed(self, checksum: str) -> dict[str, Any]:
        """The values that must not change when a report is resumed."""
        values = {**vars(self), "source": self.source.name, "checksum": checksum, "first_seed": self.seeds[0]}
        return {name: value for name, value in values.items() if name not in GROWING}


def make_report_request(given: ReproduceOptions) -> ReportRequest:
    """Fill in presets and defaults. Raises for every problem that is known without the data."""
    preset = find_preset(given.preset, given.source)
    reading = {**preset.reading, **given.reading}
    split = {**({} if given.split.get("kind", "users") != "users" else preset.split), **given.split}
    checked = make_run_request(TrainOptions(given.source, reading, split, {}, given.options))
    n = preset.n if given.n is None else given.n
    check_positive("n", n, "ask for one item or more")
    seeds = tuple(given.seeds or (preset.seeds[:1] if given.quick else preset.seeds))
    if len(set(seeds)) < len(seeds):
        raise ConfigError([Problem("must differ", "seeds", list(seeds), "leave repeated seeds out")])
    methods, missing = choose_methods(given.methods or (QUICK_METHODS if given.quick else ()))
    _check_parameters(given.parameters, methods)
    parameters: dict[str, dict[str, Any]] = {}
    for name in methods:
        preset_values = preset.model if name == DeepRetrieval.name else {}
        quick_values = METHOD_SPECS[name].quick if given.quick else {}
        parameters[name] = {**preset_values, **quick_values, **given.parameters.get(name, {})}
        make_estimator(name, parameters[name], device=checked.options.device)
    tuned = tuple(
        name for name in methods if METHOD_SPECS[name].trials and not (name == DeepRetrieval.name and preset.model)
    )
    return ReportRequest(
        source=given.source,
        preset=preset.name,
        reading=reading,
        split=dict(checked.split),
        methods=tuple(methods),
        missing=missing,
        seeds=seeds,
        n=n,
        parameters=parameters,
        tuned=tuned if given.tune and not given.quick else (),
        quick=given.quick,
        sensitivity=given.sensitivity and DeepRetrieval.name in methods,
        device=checked.options.device,
        threads=checked.options.threads,
    )


def _check_parameters(parameters: Mapping[str, Mapping[str, Any]], methods: Sequence[str]) -> None:
    problems = [
        Problem(f"{name} is not among the methods, {', '.join(methods)}", "parameters", {name: dict(values)})
        for name, values in parameters.items()
        if name not in methods
    ]
    if BruteForce.name in parameters and DeepRetrieval.name in methods:
        rule = f"{BruteForce.name} searches the vectors of {DeepRetrieval.name}"
        values = {BruteForce.name: dict(parameters[BruteForce.name])}
        problems.append(Problem(rule, "parameters", values, f"set those of {DeepRetrieval.name}"))
    if problems:
        raise ConfigError(problems)


def command_line(given: ReproduceOptions, folder: Path) -> str:
    """The equivalent command, with the bare name of the data file."""
    words = ["pathdex", "reproduce", given.source.name, "--out", str(folder)]
    lists = {"methods": given.methods, "seeds": given.seeds}
    flags = {**given.reading, **{"split" if name == "kind" else name: value for name, value in given.split.items()}}
    flags |= {name: ",".join(map(str, values)) for name, values in lists.items() if values}
    flags |= {"preset": given.preset, "n": given.n, **given.options}
    for name, value in flags.items():
        if value is not None:
            words += [f"--{name.replace('_', '-')}", str(value)]
    words += ["--quick"] if given.quick else []
    words += [] if given.tune else ["--no-tune"]
    words += [] if given.sensitivity else ["--no-sensitivity"]
    for method, values in given.parameters.items():
        for name, value in values.items():
            words += ["--set", f"{method}.{name}={json.dumps(value)}"]
    return shlex.join(words)


def check_same(path: Path, before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Raise `RunError` if a resumed report would mix two requests."""
    differing = [
        f"{name}={now.get(name)!r}, but the report has {before.get(name)!r}"
        for name in sorted({*before, *now})
        if before.get(name) != now.get(name)
    ]
    if differing:
        raise RunError(
            f"{path} cannot be resumed with other options: {'; '.join(differing)}; "
            "use the same options or a new folder (methods and seeds can be added)"
        )
