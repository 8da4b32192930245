"""Sustained events per second of a stream, and the processor time of each stage.

    python -m benchmarks stream-throughput

The loop of `pathdex stream` runs in this process with the default model (64 dimensions) over a data set in time order,
from a file and from redis-server. The methods of each stage are wrapped with clocks: processor seconds of the thread
that runs the loop, and seconds of the wall clock. Work of other threads (the full M-step, merging of checkpoints)
counts as *background*. What a stage waits for, such as a disk that syncs, is in the wall clock only. Publishes and
checkpoints come after a time, not after a number of events: on a busy machine there are more of them per event.
"""

from __future__ import annotations

import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from rich.table import Table
from threadpoolctl import threadpool_limits

from benchmarks.report import Report, arguments_parser, chosen, open_report
from benchmarks.stream_processes import STREAM, RedisServer, encode_event, events_in_time_order, write_lines
from benchmarks.training_runs import compile_kernels
from pathdex.data.event_sources import open_source
from pathdex.data.event_sources.base import EventSource
from pathdex.data.events import Event
from pathdex.experiments.stream_folder import StreamFolder
from pathdex.recommenders.deep_retrieval import DeepRetrieval
from pathdex.recommenders.live_publisher import LivePublisher
from pathdex.recommenders.stream_trainer import StreamTrainer
from pathdex.training.stream import learner
from pathdex.training.stream.state import StreamState

SOURCES = ("file", "redis")
STAGES = {
    "read and parse": "the source",
    "prequential": "predictions before learning",
    "take": "catalogue and histories",
    "encoder": "softmax loss, item rows",
    "structure": "path loss",
    "scores": "beam and score table",
    "assignment": "items to paths",
    "M-step, waiting": "for the full M-step in the background",
    "learn, rest": "the rest of a step",
    "delta": "a publish without its files",
    "publish": "files of a publish",
    "checkpoint": "state and histories",
    "rest": "lag, progress and the loop",
}


class StageClock:
    """Processor and wall-clock seconds by stage. A stage inside another is not counted in the outer one."""

    def __init__(self) -> None:
        self.cpu: dict[str, float] = defaultdict(float)
        self.wall: dict[str, float] = defaultdict(float)
        self.calls: dict[str, int] = defaultdict(int)
        self._open: list[str] = []
        self._last = (0.0, 0.0)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        self._book()
        self._open.append(name)
        self.calls[name] += 1
        try:
            yield
        finally:
            self._book()
            self._open.pop()

    def _book(self) -> None:
        now = (time.thread_time(), time.perf_counter())
        if self._open:
            self.cpu[self._open[-1]] += now[0] - self._last[0]
            self.wall[self._open[-1]] += now[1] - self._last[1]
        self._last = now

    def wrap(self, owner: Any, method: str, name: str) -> Any:
        """A patch that counts a method as a stage."""
        original: Callable[..., Any] = getattr(owner, method)

        def timed(*given: Any, **options: Any) -> Any:
            with self.stage(name):
                return original(*given, **options)

        return patch.object(owner, method, timed)


def run_stream(source: EventSource, folder: Path, events: int, clock: StageClock) -> StreamTrainer:
    """Learn from so many events, as `pathdex stream` does."""
    with StreamFolder.open(folder, {"source": "benchmark"}) as keeper:
        trainer = StreamTrainer(source, DeepRetrieval(threads=1), keeper=keeper)
        state = trainer.online.state
        places = [
            (source, "read", "read and parse"),
            (trainer.prequential, "predict", "prequential"),
            (StreamState, "_take", "take"),
            (state.learner, "learn", "learn, rest"),
            (learner.RerankerStep, "__call__", "encoder"),
            (learner.StructureStep, "__call__", "structure"),
            (state.learner, "_update_scores", "scores"),
            (learner, "reassign_items", "assignment"),
            (state.learner, "finish_m_step", "M-step, waiting"),
            (LivePublisher, "publish", "publish"),
            (LivePublisher, "publish_base", "publish"),
            (trainer.publisher, "publish", "delta"),
            (keeper, "checkpoint", "checkpoint"),
        ]
        with ExitStack() as patches:
            for owner, method, name in places:
                patches.enter_context(clock.wrap(owner, method, name))
            with clock.stage("rest"):
                trainer.run(events)
    return trainer


def measure(name: str, events: list[Event], warmup: int, folder: Path) -> dict[str, Any]:
    """One source: the first events are not counted, since they load compiled code."""
    with ExitStack() as opened:
        if name == "redis":
            redis = opened.enter_context(RedisServer(folder / "redis", durable=False))
            client = redis.client()
            for first in range(0, len(events), 1000):
                pipeline = client.pipeline(transaction=False)
                for event in events[first : first + 1000]:
                    pipeline.xadd(STREAM, {"event": encode_event(event)})
                pipeline.execute()
            place = redis.source
        else:
            place = str(write_lines(folder / "events.jsonl", events))
        for last, clock in ((warmup, StageClock()), (len(events), StageClock())):
            source = open_source(place, dead_letters=folder / "dead.jsonl")
            began, used = time.perf_counter(), time.process_time()
            trainer = run_stream(source, folder / "live", last, clock)
            spent, used = time.perf_counter() - began, time.process_time() - used
            source.close()
    counted = len(events) - warmup
    loop, background = sum(clock.cpu.values()), used - sum(clock.cpu.values())
    return {
        "events": counted,
        "items": len(trainer.online.state.catalogue),
        "cpu_ms_per_1000_events": {one: 1e6 * clock.cpu[one] / counted for one in STAGES},
        "wall_ms_per_1000_events": {one: 1e6 * clock.wall[one] / counted for one in STAGES},
        "publishes": clock.calls["delta"],
        "checkpoints": clock.calls["checkpoint"],
        "cpu_ms_per_publish": 1e3 * (clock.cpu["delta"] + clock.cpu["publish"]) / max(1, clock.calls["delta"]),
        "background_cpu_ms_per_1000_events": 1e6 * background / counted,
        "events_per_second": counted / spent,
        "events_per_loop_cpu_second": counted / loop,
        "events_per_cpu_second": counted / used,
        "wanted": "at least 2,000 events/s on 2 cores",
    }


def table_of(found: dict[str, dict[str, Any]]) -> Table:
    shown = Table("ms per 1,000 events", *(f"{name}: {what}" for name in found for what in ("CPU", "wall")))
    rows = {
        stage: [f"{one[f'{what}_ms_per_1000_events'][stage]:.1f}" for one in found.values() for what in ("cpu", "wall")]
        for stage in STAGES
    }
    for stage, cells in rows.items():
        shown.add_row(stage, *cells)
    shown.add_row(
        "background", *(c for one in found.values() for c in (f"{one['background_cpu_ms_per_1000_events']:.1f}", ""))
    )
    shown.add_section()
    shown.add_row("publishes", *(cell for one in found.values() for cell in (str(one["publishes"]), "")))
    cells = (cell for one in found.values() for cell in (f"{one['cpu_ms_per_publish']:.1f}", ""))
    shown.add_row("ms per publish", *cells)
    for name, label in (
        ("events_per_second", "events/s, as measured"),
        ("events_per_loop_cpu_second", "events/s with a core for the loop"),
        ("events_per_cpu_second", "events per CPU second, all threads"),
    ):
        shown.add_row(label, *(cell for one in found.values() for cell in (f"{one[name]:,.0f}", "")))
    return shown


def main(arguments: list[str]) -> None:
    parser = arguments_parser("stream-throughput", __doc__)
    parser.add_argument("--sources", help="comma-separated: " + ", ".join(SOURCES))
    parser.add_argument("--events", type=int, default=60_000)
    parser.add_argument("--warmup", type=int, default=20_000, help="events before the measurement")
    given = parser.parse_args(arguments)
    warmup, most = (1000, 3000) if given.quick else (given.warmup, given.warmup + given.events)
    report: Report = open_report("stream-throughput", given)
    events, found = events_in_time_order(most=most), {}
    compile_kernels()
    with threadpool_limits(1):
        for name in chosen(parser, given.sources, SOURCES):
            with tempfile.TemporaryDirectory(prefix="pathdex-bench-") as folder:
                found[name] = measure(name, events, warmup, Path(folder))
    report.add("throughput", {"warmup": warmup, "sources": found}, table_of(found))
