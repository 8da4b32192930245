"""What a run is asked for: checked as a whole before any data is read, and compared when a run goes on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pathdex.config import Config, RunOptions
from pathdex.data.interactions import Interactions
from pathdex.data.readers import RowFilters, read
from pathdex.data.splits import Split, make_split, users_to_hold_out
from pathdex.errors import ConfigError, DataError, Problem, RunError
from pathdex.system import check_device

SPLIT_OPTIONS: dict[str, tuple[str, ...]] = {
    "users": ("valid_users", "test_users"),
    "temporal": ("valid_share", "test_share"),
    "leave-last": ("k",),
}
"""The options that each kind of split takes."""
HELD_OUT_SHARE = 20
MOST_HELD_OUT = 1000


@dataclass(frozen=True)
class Request:
    """A source and how it is read and split, a configuration, and how it is run."""

    source: Path
    reading: Mapping[str, Any]
    split: Mapping[str, Any]
    """`kind` and the options of that split."""
    config: Config
    options: RunOptions

    def prepare(self) -> Split:
        """Read the data and hold out what was asked for."""
        data = read(self.source, **self.reading)
        options = dict(self.split)
        kind = options.pop("kind")
        if kind == "users":
            options = {**default_held_out(data), **options, "seed": self.options.seed}
        return make_split(data, kind, **options)

    def to_dict(self) -> dict[str, Any]:
        """The request as a run keeps it, without what `Run.create` stores itself."""
        return {"source": str(self.source.resolve()), "reading": dict(self.reading), "held_out": dict(self.split)}


@dataclass
class Given:
    """What somebody typed; None or absent where nothing was said."""

    source: Path | None = None
    reading: Mapping[str, Any] = field(default_factory=dict)
    split: Mapping[str, Any] = field(default_factory=dict)
    config: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)


def check_request(given: Given) -> Request:
    """Everything that can be known to be wrong without the data, in one `ConfigError`."""
    problems: list[Problem | str] = []
    config, options = Config(), RunOptions()
    with _collecting(problems):
        config = Config.from_dict(given.config)
    with _collecting(problems):
        options = RunOptions(**given.options)
    with _collecting(problems):
        check_device(given.options.get("device", options.device))
    with _collecting(problems):
        RowFilters(**{name: value for name, value in given.reading.items() if name.startswith("min_")})
    source = given.source or Path()
    if given.source is None:
        problems.append("DATA is missing; pass the file to train on, or --resume to go on with a run")
    split = {"kind": "users", **given.split}
    problems += _split_problems(split)
    if problems:
        raise ConfigError(problems)
    return Request(source, dict(given.reading), split, config, options)


def check_resume(request: Mapping[str, Any], given: Given) -> None:
    """Raise `RunError` where what is typed differs from what the run was started with."""
    asked = {
        "source": {"DATA": None if given.source is None else str(given.source.resolve())},
        "reading": given.reading,
        "held_out": given.split,
        "config": given.config,
        "options": given.options,
    }
    kept = {**request, "source": {"DATA": request["source"]}}
    differing = [
        f"{name}={value!r}, but the run has {kept[part].get(name)!r}"
        for part, values in asked.items()
        for name, value in values.items()
        if value is not None and kept[part].get(name) != value
    ]
    if differing:
        raise RunError(
            f"a run goes on as it was started: {'; '.join(differing)}; leave these out, or train into a new folder"
        )


def default_held_out(data: Interactions) -> dict[str, int]:
    """A twentieth of the users who can be held out for each set, at least one where there are enough, 1000 at most."""
    able = len(users_to_hold_out(data))
    count = min(MOST_HELD_OUT, max(able // HELD_OUT_SHARE, 1 if able > 2 else 0))
    return {"valid_users": count, "test_users": count}


def _split_problems(split: Mapping[str, Any]) -> list[str]:
    kind = split["kind"]
    if kind not in SPLIT_OPTIONS:
        return [f"split={kind!r}: must be one of {', '.join(SPLIT_OPTIONS)}"]
    problems = []
    for name, value in split.items():
        if name != "kind" and name not in SPLIT_OPTIONS[kind]:
            owner = next(other for other, names in SPLIT_OPTIONS.items() if name in names)
            problems.append(f"{name}={value!r}: belongs to split={owner!r}, not {kind!r}; leave it out")
        elif name.endswith("_users") and value < 0:
            problems.append(f"{name}={value!r}: must be a whole number of at least 0")
    return problems


@contextmanager
def _collecting(problems: list[Problem | str]) -> Iterator[None]:
    try:
        yield
    except (ConfigError, DataError) as error:
        problems.extend(error.problems)
