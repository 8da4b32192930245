"""What `pathdex train` is to do: checked before any data is read, and compared when a run is resumed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pathdex.config import Config, RunOptions
from pathdex.data.readers import RowFilters, read
from pathdex.data.splits import Split
from pathdex.errors import ConfigError, DataError, Problem, RunError
from pathdex.experiments.splitting import prepare_split, split_problems
from pathdex.system import check_device


@dataclass(frozen=True)
class TrainOptions:
    """Options as typed; None or absent if not given."""

    source: Path | None = None
    reading: Mapping[str, Any] = field(default_factory=dict)
    split: Mapping[str, Any] = field(default_factory=dict)
    config: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class RunRequest:
    """The data source and how it is read and split, the hyper-parameters, and the run options."""

    source: Path
    reading: Mapping[str, Any]
    split: Mapping[str, Any]
    """`kind` and the options of that split."""
    config: Config
    options: RunOptions

    def prepare(self) -> Split:
        """Read the data and split it."""
        return prepare_split(read(self.source, **self.reading), self.split, seed=self.options.seed)

    def to_dict(self) -> dict[str, Any]:
        """The request as a run stores it, without the parts that `Run.create` adds."""
        return {"source": str(self.source.resolve()), "reading": dict(self.reading), "held_out": dict(self.split)}


def make_run_request(given: TrainOptions) -> RunRequest:
    """Fill in the defaults. Raises one `ConfigError` with every problem that is known without the data."""
    problems: list[Problem] = []
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
        problems.append(Problem("DATA is missing", remedy="pass the file to train on, or --resume to resume a run"))
    split = {"kind": "users", **given.split}
    problems += split_problems(split)
    if problems:
        raise ConfigError(problems)
    return RunRequest(source, dict(given.reading), split, config, options)


def check_resume(request: Mapping[str, Any], given: TrainOptions) -> None:
    """Raise `RunError` if an option differs from the one that the run was started with."""
    typed = {
        "source": {"DATA": None if given.source is None else str(given.source.resolve())},
        "reading": given.reading,
        "held_out": given.split,
        "config": given.config,
        "options": given.options,
    }
    stored = {**request, "source": {"DATA": request["source"]}}
    differing = [
        f"{name}={value!r}, but the run has {stored[part].get(name)!r}"
        for part, values in typed.items()
        for name, value in values.items()
        if value is not None and stored[part].get(name) != value
    ]
    if differing:
        raise RunError(
            f"a run is resumed with its own options: {'; '.join(differing)}; "
            "leave these out, or train into a new folder"
        )


@contextmanager
def _collecting(problems: list[Problem]) -> Iterator[None]:
    try:
        yield
    except (ConfigError, DataError) as error:
        problems.extend(error.problems)
