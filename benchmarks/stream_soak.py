"""Minutes of stream, server and load with a kill every 20 seconds: no failed request, no lost event, flat memory.

    python -m benchmarks stream-soak --minutes 30
    python -m benchmarks stream-soak --minutes 10 --kill-seconds 0 --repeat 2000     # nothing that may grow

redis-server, `pathdex stream` and `pathdex serve --workers 2` run as processes. The trainer, a server worker and
redis-server are killed in turn; trainer and redis-server are started again here, the worker by its supervisor. Events
arrive at a constant rate, each exactly once, and `pathdex.Client` asks all the time. A request counts as failed if the
client raises, that is, if its own retries did not help.

Catalogue and histories grow with new items and users. `--repeat` sends the same events again and again, at later times:
once every history is full, what still grows is a leak. Its figures are kept beside those of the soak.
"""

from __future__ import annotations

import itertools
import os
import random
import signal
import tempfile
import threading
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table

import pathdex
from benchmarks.plots import new_axes, write
from benchmarks.report import Report, arguments_parser, open_report
from benchmarks.server_process import ServerProcess, children
from benchmarks.stream_checks import accounting_errors, answers, distinct_times, published_answers
from benchmarks.stream_faults import DurableFeeder
from benchmarks.stream_processes import RedisServer, StreamProcess, events_in_time_order, mapped_mb, resident_mb
from pathdex.data.events import Event
from pathdex.errors import PathdexError
from pathdex.evaluation.labels import label_ends
from pathdex.evaluation.visual import series_colour
from pathdex.training.stream.options import StreamOptions

SAMPLE_SECONDS = 2.0
VICTIMS = ("trainer", "server worker", "broker")


@dataclass(frozen=True)
class Plan:
    """What happens how often."""

    minutes: float = 30.0
    kill_seconds: float = 20.0
    rate: int = 200
    clients: int = 4
    queries_per_second: int = 100
    first: int = 5000
    """Events before the server starts."""
    seed: int = 0
    repeat: int | None = None
    """Only so many different events."""


class ClientLoad:
    """Threads that ask through `pathdex.Client` at a constant rate."""

    def __init__(self, url: str, histories: list[list[Any]], clients: int, per_second: int) -> None:
        self._url, self._histories, self._pause = url, histories, clients / per_second
        self._ending = threading.Event()
        self.answered = 0
        self.failed: list[str] = []
        self.seconds: list[float] = []
        self._threads = [threading.Thread(target=self._ask, args=(number,)) for number in range(clients)]
        for thread in self._threads:
            thread.start()

    def _ask(self, number: int) -> None:
        with pathdex.Client(self._url) as client:
            for turn in itertools.count(number):
                if self._ending.wait(self._pause):
                    return
                began = time.monotonic()
                try:
                    found = client.recommend(self._histories[turn % len(self._histories)], 10)
                except PathdexError as error:
                    self.failed.append(f"{time.strftime('%H:%M:%S')} {error}")
                    continue
                self.seconds.append(time.monotonic() - began)
                self.answered += 1
                if len(found) != 10:
                    self.failed.append(f"{len(found)} items")

    def stop(self) -> None:
        self._ending.set()
        for thread in self._threads:
            thread.join()


def endless(events: list[Event], number: int) -> list[Event]:
    """So many events: the data set again and again, at later and later times."""
    return distinct_times(list(itertools.islice(itertools.cycle(events), number)))


def run(plan: Plan, folder: Path, report: Report) -> list[str]:
    """The soak; returns what went wrong."""
    events = endless(events_in_time_order(most=plan.repeat), plan.first + int(60 * plan.minutes * plan.rate))
    live, draws, kills = folder / "live", random.Random(plan.seed), Counter[str]()
    histories = [[event.item] for event in events[: plan.first : 25]]
    samples: list[dict[str, float]] = []
    with RedisServer(folder / "redis") as redis:
        head = DurableFeeder(redis, events[: plan.first], rate=1e9)
        head.start()
        head.join()
        feeder = DurableFeeder(redis, events[plan.first :], plan.rate, begin=plan.first)
        with StreamProcess(redis.source, live, log=folder / "stream.log") as stream:
            stream.wait_for_events(plan.first, 600)
            with ServerProcess(live, workers=2, log=folder / "server.log") as server:
                load = ClientLoad(server.url, histories, plan.clients, plan.queries_per_second)
                feeder.start()
                try:
                    _watch(plan, redis, stream, server, feeder, draws, kills, samples, report)
                    _restart_if_ended(stream)
                    stream.wait_for_events(len(events), 600)
                finally:
                    load.stop()
                code = stream.stop()
                errors = accounting_errors(live, events, StreamOptions().replay_history)
                errors += [] if code == 0 else [f"the stream exited with code {code}"]
                errors += load.failed + _final_answers(server.url, live, histories[:50])
    figures = _figures(plan, len(events), load, kills, samples, errors, feeder.retries)
    report.add("soak" if plan.repeat is None else "repeated", figures, _table(figures))
    if plan.repeat is None:
        _draw(report.plot_file(), samples, plan.minutes)
    return errors


def _watch(
    plan: Plan,
    redis: RedisServer,
    stream: StreamProcess,
    server: ServerProcess,
    feeder: DurableFeeder,
    draws: random.Random,
    kills: Counter[str],
    samples: list[dict[str, float]],
    report: Report,
) -> None:
    """Kill in turn and sample the memory, until all events are added."""
    began = time.monotonic()
    due = plan.kill_seconds
    while feeder.is_alive():
        time.sleep(SAMPLE_SECONDS)
        spent = time.monotonic() - began
        samples.append(
            {
                "seconds": spent,
                "trainer_mb": resident_mb(stream.process.pid),
                "server_mb": resident_mb(*server.processes()),
                "trainer_mapped_mb": mapped_mb(stream.process.pid),
                "server_mapped_mb": mapped_mb(*server.processes()),
                "lag": stream.metrics().get("lag_events", float("nan")),
                "kills": kills.total(),
            }
        )
        _restart_if_ended(stream)
        if plan.kill_seconds and spent >= due:
            due += plan.kill_seconds
            victim = VICTIMS[kills.total() % len(VICTIMS)]
            kills[victim] += 1
            _kill(victim, redis, stream, server, draws)
            report.say(f"killed the {victim} ({kills.total()} kills, {60 * plan.minutes - spent:.0f} s left)")


def _kill(victim: str, redis: RedisServer, stream: StreamProcess, server: ServerProcess, draws: random.Random) -> None:
    if victim == "trainer":
        stream.kill()
        stream.start()
    elif victim == "broker":
        redis.kill()
        time.sleep(draws.uniform(0.0, 2.0))
        redis.start()
    elif workers := children(server.process.pid):
        os.kill(draws.choice(workers), signal.SIGKILL)


def _restart_if_ended(stream: StreamProcess) -> None:
    """Start the trainer again if the broker was down when it started."""
    if stream.process.poll() is not None:
        stream.start()


def _final_answers(url: str, live: Path, histories: list[list[Any]]) -> list[str]:
    expected, found = published_answers(live, histories), None
    until = time.monotonic() + 60
    with pathdex.Client(url) as client:
        while found != expected and time.monotonic() < until:
            found = answers(client, histories)
            time.sleep(0.2)
    return [] if found == expected else ["the server answers differently from the published model"]


def memory_slope(samples: list[dict[str, float]], name: str) -> dict[str, float]:
    """MB per minute after the first third, by the median of every two minutes: kills make single samples small."""
    seconds, values = (np.array([one[key] for one in samples]) for key in ("seconds", name))
    late = seconds > seconds[-1] / 3
    windows = seconds[late] // 120
    medians = [
        (np.mean(seconds[late][windows == one]) / 60, np.median(values[late][windows == one]))
        for one in np.unique(windows)
    ]
    slope = np.polyfit(*zip(*medians, strict=True), 1)[0] if len(medians) > 1 else float("nan")
    return {"median": float(np.median(values)), "peak": float(values.max()), "mb_per_minute": float(slope)}


def _figures(
    plan: Plan,
    events: int,
    load: ClientLoad,
    kills: Counter[str],
    samples: list[dict[str, float]],
    errors: list[str],
    retries: int,
) -> dict[str, Any]:
    p50, p99 = (1e3 * np.percentile(load.seconds, part) for part in (50, 99))
    return {
        "plan": vars(plan),
        "events": events,
        "xadd_retries": retries,
        "kills": dict(kills),
        "requests": load.answered + len(load.failed),
        "failed_requests": len(load.failed),
        "request_ms": {"p50": float(p50), "p99": float(p99), "most": 1e3 * max(load.seconds)},
        "memory": {name: memory_slope(samples, name) for name in samples[0] if name.endswith("_mb")},
        "errors": errors[:50],
        "samples": samples[:: max(1, len(samples) // 450)],
        "wanted": "no failed request, no lost event, flat memory",
    }


def _table(figures: dict[str, Any]) -> Table:
    plan, times = figures["plan"], figures["request_ms"]
    killing = f"a kill every {plan['kill_seconds']:g} s" if plan["kill_seconds"] else "no kills"
    title = f"{plan['minutes']:g} minutes, {killing}, {plan['rate']} events/s"
    table = Table("", "", title=title)
    table.add_row("kills", ", ".join(f"{count} {name}" for name, count in figures["kills"].items()))
    table.add_row("events", f"{figures['events']:,}")
    table.add_row("requests", f"{figures['requests']:,}, {figures['failed_requests']} failed")
    table.add_row("request, ms", f"p50 {times['p50']:.1f}, p99 {times['p99']:.1f}, most {times['most']:.0f}")
    for name, label in (("trainer_mb", "memory of the trainer"), ("server_mb", "memory of the server")):
        one = figures["memory"][name]
        text = (
            f"median {one['median']:,.0f} MB, peak {one['peak']:,.0f}, {one['mb_per_minute']:+.1f} MB/min after a third"
        )
        table.add_row(label, text)
    table.add_row("errors", "; ".join(figures["errors"][:3]) or "none")
    return table


def _draw(file: Path, samples: list[dict[str, float]], minutes: float) -> None:
    kills = f"{samples[-1]['kills']:,.0f} kills" if samples else "no kill"
    title = f"{minutes:g} minutes of stream, server and load, with {kills}"
    caption = "Resident memory. It drops when a process is killed, and grows again in the one that follows."
    figure, axes = new_axes(title, "minutes", "MB", caption)
    times = [one["seconds"] / 60 for one in samples]
    for number, (key, label) in enumerate({"trainer_mb": "trainer", "server_mb": "server, 2 workers"}.items()):
        values = [one[key] for one in samples]
        axes.plot(times, values, color=series_colour(number), linewidth=1.2, linestyle=("-", "--")[number], label=label)
    axes.set_ylim(bottom=0)
    label_ends(axes)
    write(figure, file)


def redraw(report: Report) -> None:
    """Draw the plot of the stored results again."""
    if soak := report.parts.get("soak"):
        _draw(report.plot_file(), soak["samples"], soak["plan"]["minutes"])


def main(arguments: list[str]) -> None:
    parser = arguments_parser("stream-soak", __doc__)
    parser.add_argument("--minutes", type=float, default=Plan.minutes)
    parser.add_argument("--kill-seconds", type=float, default=Plan.kill_seconds, help="0: no kills")
    parser.add_argument("--rate", type=int, default=Plan.rate, help="events per second")
    parser.add_argument("--repeat", type=int, metavar="EVENTS", help="send the same events again and again")
    parser.add_argument("--queries", type=int, default=Plan.queries_per_second, help="queries per second")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(arguments)
    plan = Plan(
        given.minutes,
        given.kill_seconds,
        given.rate,
        queries_per_second=given.queries,
        seed=given.seed,
        repeat=given.repeat,
    )
    if given.quick:
        plan = Plan(minutes=0.7, kill_seconds=8.0, rate=100, first=1000)
    with tempfile.TemporaryDirectory(prefix="pathdex-bench-") as folder:
        errors = run(plan, Path(folder), open_report("stream-soak", given))
    if errors:
        raise SystemExit("\n".join(errors[:20]))
