"""Event to retrievable: from the first event of a brand-new item to the first served answer that contains it.

    python -m benchmarks stream-freshness

redis-server, `pathdex stream` and `pathdex serve` run as processes. A data set is fed in time order: the first events
at full speed, then at a constant rate. For sampled items whose first event belongs to a user with a history, three
times are measured from XADD: until the server knows the item, until the item is among the best n for the user's items
before the event, and until it is for one of five matching users: this one, and the last four others who had that
user's last item. Seen items are removed. All are asked for every 50 ms, while other queries come at a constant rate.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
import threading
import time
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table

from benchmarks.load import Load, RunningLoad
from benchmarks.report import Report, arguments_parser, open_report
from benchmarks.server_process import ServerProcess
from benchmarks.stream_processes import (
    STREAM,
    RedisServer,
    StreamProcess,
    cpu_seconds,
    encode_event,
    events_in_time_order,
)
from pathdex.data.events import Event

POLL_SECONDS = 0.05
MATCHING = 4
"""Other users who are asked for."""
WANTED_P99 = 3.0
TICK_SECONDS = 0.02
"""Between two XADDs of the feeder."""


@dataclass(frozen=True)
class Plan:
    """What is fed and asked."""

    warmup: int = 40_000
    rate: int = 500
    seconds: float = 60.0
    n: int = 50
    queries_per_second: int = 200
    connections: int = 8
    samples_per_second: float = 5.0
    give_up: float = 10.0


@dataclass
class Sample:
    """A new item, and when it was first seen where; times in seconds after XADD."""

    item: Any
    history: list[Any]
    matching: list[list[Any]]
    """The histories of other users who had the last item of `history`."""
    added: float = 0.0
    known: float | None = None
    answered: float | None = None
    """In the answer for `history`."""
    matched: float | None = None
    """In the answer for `history` or one of `matching`."""
    reason: str | None = None
    """Why it was not in the first answer after the server knew it: `beam` or `rerank`; None if it was."""
    rank: int | None = None
    """Its rank among the candidates then."""


class Feeder(threading.Thread):
    """Adds events at a constant rate; calls `on_added` with the place of the event and the time of its XADD."""

    def __init__(self, redis: RedisServer, events: list[Event], rate: int, on_added: Any) -> None:
        super().__init__()
        self._client, self._events, self._rate, self._on_added = redis.client(), events, rate, on_added
        self.behind = 0.0
        """The longest delay of the feeder itself."""

    def run(self) -> None:
        began, done = time.monotonic(), 0
        while done < len(self._events):
            due = min(len(self._events), int((time.monotonic() - began) * self._rate) + 1)
            if due > done:
                pipeline, added = self._client.pipeline(transaction=False), time.monotonic()
                for event in self._events[done:due]:
                    pipeline.xadd(STREAM, {"event": encode_event(event)})
                pipeline.execute()
                for place in range(done, due):
                    self._on_added(place, added)
                done = due
            self.behind = max(self.behind, time.monotonic() - began - done / self._rate)
            time.sleep(TICK_SECONDS)


class Probe:
    """Asks a server for new items until it knows them and answers with them."""

    def __init__(self, url: str, plan: Plan) -> None:
        self._host, _, port = url.removeprefix("http://").partition(":")
        self._port, self._plan = int(port), plan
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._tasks: list[Any] = []
        self._thread.start()

    def follow(self, sample: Sample, added: float) -> None:
        """Start to ask for an item. May be called from any thread."""
        sample.added = added
        self._tasks.append(asyncio.run_coroutine_threadsafe(self._follow(sample), self._loop))

    def close(self) -> None:
        """Wait for all items, then stop."""
        for task in self._tasks:
            task.result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    async def _follow(self, sample: Sample) -> None:
        head = f"Host: {self._host}\r\nContent-Type: application/json\r\nContent-Length: "
        look = f"GET /v1/items/{sample.item} HTTP/1.1\r\n{head}0\r\n\r\n".encode()
        ask, *others = (
            f"POST /v1/recommend HTTP/1.1\r\n{head}{len(body)}\r\n\r\n".encode() + body
            for history in (sample.history, *sample.matching)
            for body in [json.dumps({"history": history, "n": self._plan.n}).encode()]
        )
        why = json.dumps({"history": sample.history, "item": sample.item, "n": self._plan.n}).encode()
        explain = f"POST /v1/why-not HTTP/1.1\r\n{head}{len(why)}\r\n\r\n".encode() + why
        reader, writer = await asyncio.open_connection(self._host, self._port)
        while sample.answered is None and time.monotonic() - sample.added < self._plan.give_up:
            if sample.known is None:
                status, _ = await _exchange(reader, writer, look)
                if status == 200:
                    sample.known = time.monotonic() - sample.added
            if sample.known is not None:
                if await _finds(reader, writer, ask, sample.item):
                    sample.answered = time.monotonic() - sample.added
                    sample.matched = sample.answered if sample.matched is None else sample.matched
                    break
                for other in others if sample.matched is None else ():
                    if await _finds(reader, writer, other, sample.item):
                        sample.matched = time.monotonic() - sample.added
                        break
                if sample.reason is None:
                    _, answer = await _exchange(reader, writer, explain)
                    sample.reason, sample.rank = answer["why_not"]["reason"], answer["why_not"]["rank"]
            await asyncio.sleep(POLL_SECONDS)
        writer.close()


async def _finds(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, ask: bytes, item: Any) -> bool:
    _, answer = await _exchange(reader, writer, ask)
    return any(one["id"] == item for one in answer["items"])


async def _exchange(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, request: bytes) -> tuple[int, Any]:
    writer.write(request)
    head = await reader.readuntil(b"\r\n\r\n")
    length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
    body = await reader.readexactly(int(length.split(b":")[1]))
    return int(head.split(b" ", 2)[1]), json.loads(body)


def choose_samples(events: list[Event], warmup: int, per_second: float, rate: int) -> dict[int, Sample]:
    """By place after the warm-up: events of new items by users with a history, at most so many per second."""
    histories: dict[Any, list[Any]] = defaultdict(list)
    users: dict[Any, list[Any]] = defaultdict(list)
    chosen: dict[int, Sample] = {}
    due = 0.0
    for place, event in enumerate(events):
        after, history = place - warmup, histories[event.user]
        if after >= due and event.item not in users and history:
            others = [one for one in users[history[-1]] if one != event.user][-MATCHING:]
            chosen[after] = Sample(event.item, list(history), [list(histories[one]) for one in others])
            due = after + rate / per_second
        users[event.item].append(event.user)
        history.append(event.item)
    return chosen


def measure(plan: Plan, options: list[str], folder: Path, report: Report) -> None:
    """One run."""
    events = events_in_time_order(most=plan.warmup + int(plan.rate * plan.seconds))
    samples = choose_samples(events, plan.warmup, plan.samples_per_second, plan.rate)
    bodies = folder / "queries.jsonl"
    bodies.write_bytes(b"".join(json.dumps(one).encode() + b"\n" for one in _queries(events[: plan.warmup], plan.n)))
    with RedisServer(folder / "redis", durable=False) as redis:
        _add_all(redis, events[: plan.warmup])
        with StreamProcess(redis.source, folder / "live", *options, log=folder / "stream.log") as stream:
            warm = stream.wait_for_events(plan.warmup, 1200)
            report.say(f"learned from {plan.warmup:,} events in {warm:.0f} s")
            with ServerProcess(folder / "live", workers=1, log=folder / "server.log") as server:
                pids = {"stream": stream.process.pid, "server": server.process.pid, "redis": redis.process.pid}
                probe = Probe(server.url, plan)
                load = RunningLoad(server.url, bodies, plan.seconds + 5, plan.connections, rate=plan.queries_per_second)
                before, began = {name: cpu_seconds(pid) for name, pid in pids.items()}, time.monotonic()
                feeder = Feeder(
                    redis,
                    events[plan.warmup :],
                    plan.rate,
                    lambda place, added: probe.follow(samples[place], added) if place in samples else None,
                )
                feeder.start()
                lags = []
                while feeder.is_alive():
                    time.sleep(0.5)
                    lags.append(stream.metrics().get("lag_events", float("nan")))
                spent = time.monotonic() - began
                used = {name: (cpu_seconds(pid) - before[name]) / spent for name, pid in pids.items()}
                result = load.result()
                probe.close()
                deltas = server.counter("pathdex_model_deltas_total")
                applied = server.counter("pathdex_model_delta_seconds")
    figures = _figures(plan, options, list(samples.values()), lags, used, result, feeder.behind)
    figures["server"] = {"deltas": deltas, "last_apply_ms": 1e3 * applied}
    report.add("freshness", figures, _table(figures))


def _add_all(redis: RedisServer, events: list[Event]) -> None:
    client = redis.client()
    for first in range(0, len(events), 1000):
        pipeline = client.pipeline(transaction=False)
        for event in events[first : first + 1000]:
            pipeline.xadd(STREAM, {"event": encode_event(event)})
        pipeline.execute()


def _queries(events: list[Event], n: int) -> list[dict[str, Any]]:
    """The histories of the last users."""
    histories: dict[Any, list[Any]] = defaultdict(list)
    for event in events:
        histories[event.user].append(event.item)
    users = list(dict.fromkeys(event.user for event in reversed(events)))[:1000]
    return [{"history": histories[user], "n": n} for user in users]


def _figures(
    plan: Plan,
    options: list[str],
    samples: list[Sample],
    lags: list[float],
    used: dict[str, float],
    load: Load,
    behind: float,
) -> dict[str, Any]:
    return {
        "plan": vars(plan),
        "options": options,
        "samples": len(samples),
        "known": _times([one.known for one in samples], plan.give_up),
        "answered": _times([one.answered for one in samples], plan.give_up),
        "matched": _times([one.matched for one in samples], plan.give_up),
        "first_answer": _first_answers(samples),
        "late": [_describe(one) for one in samples if one.answered is None or one.answered > WANTED_P99],
        "lag_events": {"median": float(np.nanmedian(lags)), "most": float(np.nanmax(lags)), "last": lags[-1]},
        "cores_used": used,
        "load": load.to_dict(),
        "feeder_behind_seconds": behind,
        "wanted": "p50 at most 1 s, p99 at most 3 s",
    }


def _first_answers(samples: list[Sample]) -> dict[str, Any]:
    """Whether the first answer after the server knew an item contained it, and why not."""
    known = [one for one in samples if one.known is not None]
    ranks = [one.rank for one in known if one.reason == "rerank" and one.rank is not None]
    reasons = {name: sum(one.reason == name for one in known) / len(known) for name in ("beam", "rerank")}
    return {
        "with_the_item": sum(one.reason is None for one in known) / len(known),
        **reasons,
        "median_rank_of_rerank": float(np.median(ranks)) if ranks else None,
    }


def _describe(sample: Sample) -> dict[str, Any]:
    """An item that its first user was not answered with in time."""
    return {
        "history_length": len(sample.history),
        "matching_users": len(sample.matching),
        "known": sample.known,
        "answered": sample.answered,
        "matched": sample.matched,
        "reason": sample.reason,
        "rank": sample.rank,
        "history": sample.history[-3:],
        "item": sample.item,
    }


def _times(seconds: list[float | None], give_up: float) -> dict[str, float]:
    """The share of the items that were found, and percentiles over all: others count as found at the very end."""
    found = [one for one in seconds if one is not None]
    p50, p90, p99 = np.percentile([give_up if one is None else one for one in seconds], (50, 90, 99))
    share, within = len(found) / len(seconds), sum(one <= WANTED_P99 for one in found) / len(seconds)
    return {"share": share, "share_within_3_s": within, "p50": float(p50), "p90": float(p90), "p99": float(p99)}


def _table(figures: dict[str, Any]) -> Table:
    plan = figures["plan"]
    title = f"{plan['rate']} events/s, {plan['queries_per_second']} queries/s, {figures['samples']} new items"
    table = Table("from XADD until", "share", "within 3 s", "p50, s", "p90, s", "p99, s", title=title)
    labels = {
        "known": "the server knows the item",
        "answered": f"it is among the best {plan['n']} for its first user",
        "matched": f"it is among the best {plan['n']} for a matching user",
    }
    for name, label in labels.items():
        one = figures[name]
        shares = [f"{100 * one[key]:.1f}%" for key in ("share", "share_within_3_s")]
        table.add_row(label, *shares, *(f"{one[key]:.2f}" for key in ("p50", "p90", "p99")))
    lag, used, load = figures["lag_events"], figures["cores_used"], figures["load"]
    table.add_section()
    first = figures["first_answer"]
    table.add_row(
        f"first answer: with the item {100 * first['with_the_item']:.0f}%, its paths not found "
        f"{100 * first['beam']:.0f}%, others score higher {100 * first['rerank']:.0f}% "
        f"(median rank {first['median_rank_of_rerank']})"
    )
    table.add_row(f"lag, events: median {lag['median']:.0f}, most {lag['most']:.0f}")
    table.add_row("cores used: " + ", ".join(f"{name} {value:.2f}" for name, value in used.items()))
    table.add_row(
        f"{load['requests_per_second']:.0f} queries/s: p50 {load['p50'] / 1e3:.1f} ms, p99 {load['p99'] / 1e3:.1f} ms, "
        f"{load['failures']} failed"
    )
    return table


def main(arguments: list[str]) -> None:
    parser = arguments_parser("stream-freshness", __doc__)
    parser.add_argument("--warmup", type=int, default=Plan.warmup, help="events before the measurement")
    parser.add_argument("--rate", type=int, default=Plan.rate, help="events per second")
    parser.add_argument("--seconds", type=float, default=Plan.seconds, help="length of the measurement")
    parser.add_argument("--queries", type=int, default=Plan.queries_per_second, help="queries per second besides")
    parser.add_argument("--stream", default="", help="more options for `pathdex stream`, as one text")
    given = parser.parse_args(arguments)
    plan = Plan(given.warmup, given.rate, given.seconds, queries_per_second=given.queries)
    if given.quick:
        plan = Plan(warmup=3000, seconds=8.0)
    with tempfile.TemporaryDirectory(prefix="pathdex-bench-") as folder:
        measure(plan, given.stream.split(), Path(folder), open_report("stream-freshness", given))
