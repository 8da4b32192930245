"""What a report is asked for: checked before anything is read, and compared when a report goes on."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pathdex.errors import ConfigError, RunError
from pathdex.experiments.method_specs import METHOD_SPECS, choose_methods
from pathdex.experiments.presets import FULL, QUICK, Budget, find_preset
from pathdex.experiments.run_request import Given, check_request
from pathdex.recommenders.base import check_n
from pathdex.recommenders.brute_force import BruteForce
from pathdex.recommenders.deep_retrieval import DeepRetrieval
from pathdex.recommenders.registry import make_estimator

GROWING = ("methods", "missing", "seeds", "parameters", "tuned", "sensitivity")
"""What may change between two calls, since it only adds steps; a step that it would change refuses."""


@dataclass(frozen=True)
class Asked:
    """What somebody typed; None or empty where nothing was said."""

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
    device: str | None = None
    threads: int | None = None


@dataclass(frozen=True)
class Request:
    """A comparison, with everything that was not said filled in."""

    source: Path
    preset: str
    reading: dict[str, Any]
    split: dict[str, Any]
    """`kind` and the options of that split."""
    methods: tuple[str, ...]
    missing: dict[str, str]
    """Methods that are left out, and why."""
    seeds: tuple[int, ...]
    n: int
    parameters: dict[str, dict[str, Any]]
    """By method, those that are fixed; tuning does not touch them."""
    tuned: tuple[str, ...]
    quick: bool
    sensitivity: bool
    device: str
    threads: int | None

    @property
    def effort(self) -> Budget:
        return QUICK if self.quick else FULL

    def fixed(self, checksum: str) -> dict[str, Any]:
        """What must stay as it is while a report goes on."""
        values = {**vars(self), "source": self.source.name, "checksum": checksum, "first_seed": self.seeds[0]}
        return {name: value for name, value in values.items() if name not in GROWING}


def check_asked(asked: Asked) -> Request:
    """Fill in presets and defaults, and raise for whatever is known to be wrong without the data."""
    preset = find_preset(asked.preset, asked.source)
    reading = {**preset.reading, **asked.reading}
    own_split = {**({} if asked.split.get("kind", "users") != "users" else preset.split), **asked.split}
    running = {
        name: value for name, value in (("device", asked.device), ("threads", asked.threads)) if value is not None
    }
    checked = check_request(Given(asked.source, reading, own_split, {}, running))
    n = preset.n if asked.n is None else asked.n
    check_n(n)
    seeds = tuple(asked.seeds or (preset.seeds[:1] if asked.quick else preset.seeds))
    if len(set(seeds)) < len(seeds):
        raise ConfigError([f"seeds={','.join(map(str, seeds))}: must differ; a seed twice is one measurement"])
    methods, missing = choose_methods(asked.methods)
    if BruteForce.name in asked.parameters and DeepRetrieval.name in methods:
        raise ConfigError(
            [f"parameters of {BruteForce.name}: it searches the vectors of {DeepRetrieval.name}; set those"]
        )
    unknown = [name for name in asked.parameters if name not in methods]
    if unknown:
        raise ConfigError([f"parameters of {', '.join(unknown)}: is not among the methods, {', '.join(methods)}"])
    parameters: dict[str, dict[str, Any]] = {}
    for name in methods:
        own = dict(preset.model) if name == DeepRetrieval.name else {}
        own |= METHOD_SPECS[name].quick if asked.quick else {}
        parameters[name] = {**own, **asked.parameters.get(name, {})}
        make_estimator(name, parameters[name], device=checked.options.device)
    tuned = tuple(
        name for name in methods if METHOD_SPECS[name].trials and not (name == DeepRetrieval.name and preset.model)
    )
    return Request(
        source=asked.source,
        preset=preset.name,
        reading=reading,
        split=dict(checked.split),
        methods=tuple(methods),
        missing=missing,
        seeds=seeds,
        n=n,
        parameters=parameters,
        tuned=tuned if asked.tune and not asked.quick else (),
        quick=asked.quick,
        sensitivity=asked.sensitivity and DeepRetrieval.name in methods,
        device=checked.options.device,
        threads=checked.options.threads,
    )


def command_line(asked: Asked, folder: Path) -> str:
    """The command that asks for the same, with the bare name of the data file."""
    words = ["pathdex", "reproduce", asked.source.name, "--out", str(folder)]
    lists = {"methods": asked.methods, "seeds": asked.seeds}
    given = {**asked.reading, **{"split" if name == "kind" else name: value for name, value in asked.split.items()}}
    given |= {name: ",".join(map(str, values)) for name, values in lists.items() if values}
    given |= {"preset": asked.preset, "n": asked.n, "device": asked.device, "threads": asked.threads}
    for name, value in given.items():
        if value is not None:
            words += [f"--{name.replace('_', '-')}", str(value)]
    words += ["--quick"] if asked.quick else []
    words += [] if asked.tune else ["--no-tune"]
    words += [] if asked.sensitivity else ["--no-sensitivity"]
    for method, values in asked.parameters.items():
        for name, value in values.items():
            words += ["--set", f"{method}.{name}={json.dumps(value)}"]
    return shlex.join(words)


def check_same(path: Path, before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Raise where a report would go on with something else than it was begun with."""
    differing = [
        f"{name}={now.get(name)!r}, but the report has {before.get(name)!r}"
        for name in sorted({*before, *now})
        if before.get(name) != now.get(name)
    ]
    if differing:
        raise RunError(
            f"{path} goes on as it was begun: {'; '.join(differing)}; ask for the same, or write to a new folder "
            "(methods and seeds may be added)"
        )
