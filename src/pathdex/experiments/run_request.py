"""What `pathdex train` is to do: checked before any data is read, and compared when a run is resumed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pathdex.config import Config, RunOptions
from pathdex.data.item_details import ItemDetails
from pathdex.data.readers import read
from pathdex.data.reading import Reading
from pathdex.data.remote_files import is_url
from pathdex.data.splits import Split, split_like
from pathdex.errors import ConfigError, DataError, Problem, RunError
from pathdex.experiments.splitting import prepare_split, split_problems
from pathdex.experiments.starting_point import StartingPoint
from pathdex.system import check_device


@dataclass(frozen=True)
class TrainOptions:
    """Options as typed; None or absent if not given."""

    source: str | Path | None = None
    reading: Mapping[str, Any] = field(default_factory=dict)
    split: Mapping[str, Any] = field(default_factory=dict)
    config: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    items: Mapping[str, Any] = field(default_factory=dict)
    """The table of item details: `source`, and the options of `ItemDetails.read`."""
    start: str | Path | None = None
    """The run or bundle to start from."""
    recording: bool | None = None
    """Whether to record rounds and sample histories for the explorer."""
    sharded: bool = False
    """Whether each worker is to write a shard, instead of one of them a bundle."""

    def facts(self) -> dict[str, Any]:
        """What must be given to all workers, by name. Machines may have different numbers of threads."""
        given = {
            "DATA": self.source,
            **self.reading,
            **self.split,
            **self.config,
            **self.options,
            **{f"items.{name}": value for name, value in self.items.items()},
            "from": self.start,
            "recording": self.recording,
            "sharded_bundle": self.sharded,
        }
        given.pop("threads", None)
        facts: dict[str, Any] = json.loads(json.dumps(given, default=str))
        return facts


@dataclass(frozen=True)
class RunRequest:
    """The data source and how it is read and split, the hyper-parameters, and the run options."""

    source: str | Path
    reading: Mapping[str, Any]
    split: Mapping[str, Any]
    """`kind` and the options of that split."""
    config: Config
    options: RunOptions
    items: Mapping[str, Any] = field(default_factory=dict)
    start: StartingPoint | None = None
    recording: bool = True
    sharded: bool = False

    def details(self) -> ItemDetails | None:
        """Read the table of item details, if there is one; otherwise those of the model to start from."""
        if self.items:
            return ItemDetails.read(**self.items)
        return None if self.start is None else self.start.model.details

    def prepare(self) -> Split:
        """Read the data and split it."""
        data = read(self.source, **self.reading)
        if self.holds_out_again:
            assert self.start is not None
            assert self.start.split is not None
            return split_like(data, self.start.split)
        return prepare_split(data, self.split, seed=self.options.seed)

    @property
    def holds_out_again(self) -> bool:
        """Whether the users are held out whom the run to start from held out, since its model has not seen them."""
        return self.split == {"kind": "users"} and self.start is not None and self.start.split is not None

    @property
    def start_note(self) -> str | None:
        """What to say about figures if the earlier model may know the held-out users; None if it does not."""
        if self.start is None or self.holds_out_again:
            return None
        return (
            f"{self.start.path} may have been trained on users who are held out now, so figures of this run can be too "
            "good; start from a run folder, without options of the split, to hold out the users that it held out"
        )

    def to_dict(self) -> dict[str, Any]:
        """The request as a run stores it, without the parts that `Run.create` adds."""
        request: dict[str, Any] = {
            "source": _absolute(self.source),
            "reading": dict(self.reading),
            "held_out": dict(self.split),
        }
        if self.start is not None:
            request["from"] = _absolute(self.start.path)
        if not self.recording:
            request["recording"] = False
        if self.sharded:
            request["sharded"] = True
        return {**request, "items": _stored_items(self.items)} if self.items else request


def make_run_request(given: TrainOptions) -> RunRequest:
    """Fill in the defaults. Raises one `ConfigError` with every problem that is known without the data."""
    problems: list[Problem] = []
    config, options = Config(), RunOptions()
    start = None if given.start is None else StartingPoint.open(given.start)
    reading = {**({} if start is None else start.reading), **given.reading}
    with _collecting(problems):
        config = Config.from_dict({**({} if start is None else start.config), **given.config})
    with _collecting(problems):
        options = RunOptions(**given.options)
    with _collecting(problems):
        check_device(given.options.get("device", options.device))
    with _collecting(problems):
        Reading(**reading)
    source = Path() if given.source is None else given.source
    if given.source is None:
        problems.append(Problem("DATA is missing", remedy="pass the file to train on, or --resume to resume a run"))
    split = {"kind": "users", **given.split}
    problems += split_problems(split)
    if problems:
        raise ConfigError(problems)
    if given.items and "source" not in given.items:
        rule = f"{', '.join(given.items)}: there is no item table"
        raise ConfigError([Problem(rule, remedy="name the file with --items")])
    recording = given.recording is not False
    return RunRequest(source, reading, split, config, options, dict(given.items), start, recording, given.sharded)


def check_resume(request: Mapping[str, Any], given: TrainOptions) -> None:
    """Raise `RunError` if an option differs from the one that the run was started with."""
    typed = {
        "source": {"DATA": None if given.source is None else _absolute(given.source)},
        "reading": given.reading,
        "held_out": given.split,
        "config": given.config,
        "options": given.options,
        "items": _stored_items(given.items),
        "start": {"from": None if given.start is None else _absolute(given.start)},
        "recording": {"recording": given.recording},
        "sharded": {"sharded-bundle": given.sharded or None},
    }
    stored = {"items": {}, **request, "source": {"DATA": request["source"]}}
    stored["start"] = {"from": request.get("from")}
    stored["recording"] = {"recording": request.get("recording", True)}
    stored["sharded"] = {"sharded-bundle": request.get("sharded", False)}
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


def _stored_items(items: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _absolute(value) if name == "source" else value for name, value in items.items()}


def _absolute(source: str | Path) -> str:
    return str(source) if is_url(source) else str(Path(source).resolve())


@contextmanager
def _collecting(problems: list[Problem]) -> Iterator[None]:
    try:
        yield
    except (ConfigError, DataError) as error:
        problems.extend(error.problems)
