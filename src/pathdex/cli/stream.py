"""`pathdex stream`."""

from __future__ import annotations

import dataclasses
import json
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, BadParameter, Option

from pathdex.cli.command import gathers, option, split_list
from pathdex.cli.console import err, out
from pathdex.cli.options import (
    CatalogueLists,
    declared_lists,
    takes_columns,
    takes_items,
    takes_parameters,
    takes_run_options,
)
from pathdex.cli.progress import Log
from pathdex.errors import ConfigError, DataError, Problem, StorageError
from pathdex.training.stream.options import StreamOptions

if TYPE_CHECKING:
    from pathdex.data.item_details import ItemDetails
    from pathdex.recommenders.deep_retrieval import DeepRetrieval
    from pathdex.recommenders.stream_trainer import StreamProgress, StreamTrainer

WAIT_SECONDS = 0.2
BATCH_ONLY = ("epochs", "schedule", "rounds", "structure_epochs", "final_epochs")
"""Hyper-parameters of training in several passes."""
_KINDS = {"int": int, "float": float}
FLAGS = [
    option(
        spec.name,
        _KINDS[str(spec.type).split(" | ")[0]],
        spec.metadata["help"] + ("" if spec.default is None else f"; default {spec.default:,}"),
        panel="Stream",
    )
    for spec in dataclasses.fields(StreamOptions)
]


@takes_parameters
@takes_items
@takes_columns
@takes_run_options
@gathers("stream_options", FLAGS)
def stream(
    reading: dict[str, Any],
    items: dict[str, Any],
    run_options: dict[str, Any],
    parameters: dict[str, Any],
    stream_options: dict[str, Any],
    source: Annotated[
        str,
        Argument(
            help="A file (.jsonl, .csv, .parquet), a folder of Parquet files, - for standard input, or a broker: "
            "redis://, nats://, kafka://.",
            metavar="SOURCE",
        ),
    ],
    folder: Annotated[Path, Option("--out", help="The folder of the stream, new or to continue.", metavar="STREAM")],
    model: Annotated[
        Path | None, Option("--from", help="Continue from this run or model instead of from nothing.", metavar="RUN")
    ] = None,
    follow: Annotated[
        bool,
        Option("--follow", help="Wait for more where a file or folder ends, and for a file that does not exist yet."),
    ] = False,
    catalogue: Annotated[
        Path | None,
        Option(help="Catalogue table: new items start near those with the same attributes.", metavar="FILE"),
    ] = None,
    catalogue_item: Annotated[
        str | None, Option(help="Item column of the catalogue table, if it has an unusual name.", metavar="NAME")
    ] = None,
    lists: CatalogueLists = None,
    max_events: Annotated[
        int | None,
        Option(
            help="Stop after so many events since the stream began, earlier runs included, without malformed ones.",
            min=1,
        ),
    ] = None,
    publish_seconds: Annotated[float, Option(help="Seconds between publishes.", min=0.0)] = 0.5,
    checkpoint_seconds: Annotated[float, Option(help="Seconds between checkpoints.", min=0.0)] = 10.0,
    metrics_port: Annotated[
        int | None,
        Option(help="Serve Prometheus metrics on this port of localhost; 0: any free port.", min=0, max=65535),
    ] = None,
    format: Annotated[str | None, Option(hidden=True)] = None,
) -> None:
    """Learn from a stream of events and publish the model; `pathdex serve STREAM` follows it.

    Each event is learned from once, in order. Stop with Ctrl-C or SIGTERM and run the same command to continue: no
    event is lost and none counts twice.

    Examples:

        pathdex stream events.jsonl --out live/

        pathdex stream 'redis://localhost:6379/0?stream=events' --from runs/first --out live/
    """
    with _Signals() as signals:  # Before the imports, which take a second.
        from pathdex.data.attributes import Attributes
        from pathdex.data.event_sources import open_source
        from pathdex.data.event_sources.broker_url import without_password
        from pathdex.experiments.stream_folder import StreamFolder
        from pathdex.recommenders.deep_retrieval import DeepRetrieval
        from pathdex.recommenders.stream_trainer import StreamCallback, StreamTrainer
        from pathdex.storage.live_folder import CURRENT

        if format is not None:
            raise BadParameter("a stream has no --format; name the file .jsonl, .csv or .parquet")
        if model is not None and parameters:
            raise BadParameter(f"--{next(iter(parameters)).replace('_', '-')} cannot change with --from")
        if given := [name for name in BATCH_ONLY if name in parameters]:
            raise BadParameter(f"a stream has no --{given[0].replace('_', '-')}: it learns from each event once")
        if run_options.get("device", "cpu") != "cpu":
            raise BadParameter("a stream learns on the CPU; leave --device out")
        shown, columns = without_password(source), declared_lists(lists)
        with _usage_errors():
            unfitted = DeepRetrieval(**parameters, **run_options)
            options = StreamOptions(**stream_options)
        request = {
            "source": shown,
            "columns": reading,
            "from": None if model is None else str(model),
            "parameters": parameters,
            "options": dataclasses.asdict(options),
            "seed": unfitted.options.seed,
            "catalogue": None if catalogue is None else str(catalogue),
            "catalogue_item": catalogue_item,
            **({"lists": columns} if columns else {}),
        }
        table = None if catalogue is None else Attributes.read(catalogue, item=catalogue_item, lists=columns)
        log, details = Log(err()), _read_details(items)
        if details is not None:
            log.print(f"items: {details!r}")
        with StreamFolder.open(folder, request) as keeper:
            if follow and not _wait_for_file(source, log, signals):
                return
            events = open_source(source, follow=follow, dead_letters=keeper.dead_letters, **reading)
            begin = unfitted if model is None else keeper.first_model(model)
            if details is not None:
                begin.describe_items(details)
            keeper.record_request()
            callbacks: list[StreamCallback] = [_Progress(log)]
            exporter = None
            if metrics_port is not None:
                from pathdex.server.stream_metrics import StreamMetrics

                exporter = StreamMetrics(metrics_port)
                callbacks.append(exporter)
                log.print(f"metrics: http://127.0.0.1:{exporter.port}/metrics")
            try:
                trainer = StreamTrainer(
                    events,
                    begin,
                    options=options,
                    keeper=keeper,
                    callbacks=callbacks,
                    publish_seconds=publish_seconds,
                    checkpoint_seconds=checkpoint_seconds,
                )
                trainer.online.use_table(table)
                log.print(f"{'continuing' if keeper.has_checkpoint else 'streaming'} from {shown} into {folder}")
                if keeper.live.damage is not None:
                    log.print(f"{folder / CURRENT} was damaged; the model is published again from the checkpoint")
                signals.stop(trainer)
                trainer.run(max_events)
            finally:
                events.close()
                if exporter is not None:
                    exporter.close()
        _print_result(trainer, folder, keeper.dead_letters)
        _check_any_event(trainer, keeper.dead_letters)


def _read_details(items: dict[str, Any]) -> ItemDetails | None:
    """Titles and other columns of `--items`. They are no part of the request, since a table may grow."""
    from pathdex.data.item_details import ItemDetails

    if "columns" in items:
        items["columns"] = split_list(items["columns"], "--item-columns")
    if "source" in items:
        return ItemDetails.read(**items)
    if items:
        raise BadParameter("--items-id, --title and --item-columns need --items FILE")
    return None


def _print_result(trainer: StreamTrainer, folder: Path, dead_letters: Path) -> None:
    state, recall = trainer.online.state, trainer.prequential.overall
    counted = f"{state.counters.events:,} events, {len(state.catalogue):,} items, {len(state.learner.sizes):,} paths"
    out().print(f"{folder}: {counted}" + ("" if recall is None else f", prequential recall@10 {100 * recall:.2f}%"))
    if state.counters.malformed:
        what = (
            "1 malformed event is"
            if state.counters.malformed == 1
            else f"{state.counters.malformed:,} malformed events are"
        )
        out().print(f"{what} in {dead_letters}")
    if state.counters.lost:
        out().print(f"{state.counters.lost:,} events were dropped by the broker before they were read")


def _check_any_event(trainer: StreamTrainer, dead_letters: Path) -> None:
    """`DataError` if everything that the stream has read was malformed."""
    counters = trainer.online.state.counters
    if counters.malformed and not (counters.events or counters.item_changes):
        rule = f"no event could be read: malformed {counters.malformed:,} of {counters.malformed:,}"
        with suppress(OSError, ValueError, KeyError), dead_letters.open() as file:  # It may be empty on a full disk.
            rule += f"; the first: {json.loads(file.readline())['reason']}"
        remedy = "name the columns with --user, --item and --time, check the format, and stream into a new folder"
        raise DataError(Problem(rule, remedy=remedy))


def _wait_for_file(source: str, log: Log, signals: _Signals) -> bool:
    """Wait until a file that is to be followed exists; False if a signal came first."""
    from pathdex.data.event_sources.opening import LINE_FORMATS

    path = Path(source)
    if "://" in source or path.suffix.lower() not in LINE_FORMATS:
        return True
    if not path.exists():
        log.print(f"waiting for {path}, which does not exist yet")
    while not path.exists():
        if signals.received:
            return False
        log.progress(f"still waiting for {path}, which does not exist yet")
        time.sleep(WAIT_SECONDS)
    return True


@contextmanager
def _usage_errors() -> Iterator[None]:
    """A wrong value of an option is a usage error."""
    try:
        yield
    except ConfigError as error:
        told = [
            str(one) if one.argument is None else str(dataclasses.replace(one, argument=_flag(one.argument)))
            for one in error.problems
        ]
        raise BadParameter("; ".join(told)) from None


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


class _Signals:
    """SIGTERM and Ctrl-C end the stream after its step, or before the first one; a second signal ends it at once."""

    def __init__(self) -> None:
        self._received, self._trainer = False, None  # type: tuple[bool, StreamTrainer | None]

    @property
    def received(self) -> bool:
        return self._received

    def stop(self, trainer: StreamTrainer) -> None:
        """Stop this trainer, now if a signal has come already."""
        self._trainer = trainer
        if self._received:
            trainer.stop()

    def __enter__(self) -> _Signals:
        self._before = {one: signal.getsignal(one) for one in (signal.SIGTERM, signal.SIGINT)}
        for one in self._before:
            signal.signal(one, self._handle)
        return self

    def __exit__(self, *_: object) -> None:
        for one, handler in self._before.items():
            signal.signal(one, handler)

    def _handle(self, number: int, _: object) -> None:
        self._received = True
        if self._trainer is not None:
            self._trainer.stop()
        signal.signal(number, self._before[signal.Signals(number)])


class _Progress:
    """A line now and then."""

    def __init__(self, log: Log) -> None:
        self.log = log

    def on_step_end(self, progress: StreamProgress) -> None:
        self.log.progress(self._line(progress))

    def on_idle(self, progress: StreamProgress) -> None:
        self.log.progress(f"{self._line(progress)}  waiting for events")

    def _line(self, progress: StreamProgress) -> str:
        parts = [
            f"{progress.events:,} events",
            f"{progress.events_per_second:,.0f}/s",
            *([] if progress.lag is None else [f"lag {progress.lag:,}"]),
            *([] if progress.recall is None else [f"recall {100 * progress.recall:.2f}%"]),
            f"{progress.items:,} items",
            f"{progress.used_paths:,} paths",
            f"M-step in {_time_to(progress)}",
            *(
                f"{count:,} {what}"
                for count, what in (
                    (progress.item_changes, "item changes"),
                    (progress.blocked, "of removed items"),
                    (progress.malformed, "malformed"),
                    (progress.lost, "lost"),
                )
                if count
            ),
        ]
        return "  ".join(parts)

    def on_publish(self, model: DeepRetrieval) -> None:
        """Servers log it."""

    def on_write_failure(self, error: StorageError) -> None:
        self.log.print(f"{error}; learning goes on, and writing is tried again")


def _time_to(progress: StreamProgress) -> str:
    """The time to the next M-step at the present rate."""
    if progress.events_per_second < 1:
        return f"{progress.events_to_m_step:,} events"
    return f"{progress.events_to_m_step / progress.events_per_second:,.0f} s"
