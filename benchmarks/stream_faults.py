"""Kills at random moments over a stream: trainer, server and broker. No event may be lost or count twice.

    python -m benchmarks stream-faults --kills 200 --seed 0

- `file`: `pathdex stream` reads a file and is killed again and again, at random times and right at changes of its
  files; at its end, its state must equal that of an undisturbed run bit by bit.
- `broker`: events arrive in redis-server (`appendfsync always`) while `pathdex stream`, `pathdex serve` and
  redis-server are killed and started again; at the end every event must have counted once, and the server must answer
  like the published model.
- `outages`: a full disk, a broker that is gone, poison events, times that jump back, and two trainers
  (`benchmarks/stream_outages.py`).
"""

from __future__ import annotations

import random
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

from rich.table import Table

from benchmarks import stream_outages
from benchmarks.killable import Command, random_death, wait_until
from benchmarks.report import Report, arguments_parser, chosen, open_report
from benchmarks.server_process import free_port
from benchmarks.stream_checks import (
    accounting_errors,
    answers,
    differing_states,
    distinct_times,
    published_answers,
    stored_histories,
)
from benchmarks.stream_outages import HISTORY, OPTIONS
from benchmarks.stream_processes import STREAM, RedisServer, encode_event, events_in_time_order, write_lines
from pathdex.data.events import Event
from pathdex.errors import PathdexError
from pathdex.experiments.stream_folder import read_stream_state

PARTS = ("file", "broker", "outages")
LIVES = 3.0
"""Seconds after which a process is killed, at most."""


def kill_file_stream(events: list[Event], kills: int, draws: random.Random, folder: Path) -> dict[str, Any]:
    """Kill `pathdex stream` on a file until it has died so often, over as many streams as that takes."""
    file = write_lines(folder / "events.jsonl", events)
    whole = folder / "whole"
    if (code := _file_stream(file, whole, folder).wait(600)) != 0:
        raise SystemExit(f"the undisturbed stream exited with code {code}:\n{(folder / 'file.log').read_text()}")
    histories = [[event.item] for event in events[:: max(1, len(events) // 20)]]
    expected, users = published_answers(whole, histories), sorted({event.user for event in events}, key=str)
    expected_histories = stored_histories(whole, read_stream_state(whole), users, HISTORY)
    done: Counter[str] = Counter()
    errors: list[str] = []
    streams = 0
    while done.total() < kills:
        streams += 1
        live = folder / f"killed-{streams}"
        while True:
            marked = draws.random() < 0.5
            death = random_death(draws, live) if marked else None
            run = _file_stream(file, live, folder, death if done.total() < kills else None)
            if done.total() < kills and not marked:
                run.process.join(draws.uniform(0.0, LIVES))
                if run.is_running:
                    run.kill()
            code = run.wait(600)
            if code == 0:
                break
            if code != -9:
                errors.append(f"stream {streams} exited with code {code} after {done.total()} kills")
                break
            done["at a change of a file" if marked else "at a random time"] += 1
        if code == 0:
            errors += [f"stream {streams}: {name} differs" for name in differing_states(whole, live)]
            errors += [f"stream {streams}: {one}" for one in accounting_errors(live, events, HISTORY)]
            if stored_histories(live, read_stream_state(live), users, HISTORY) != expected_histories:
                errors.append(f"stream {streams}: histories differ")
            if published_answers(live, histories) != expected:
                errors.append(f"stream {streams}: the published model answers differently")
    return {"kills": dict(done), "streams": streams, "events": len(events), "errors": errors}


def _file_stream(file: Path, live: Path, folder: Path, death: Any = None) -> Command:
    return Command(["stream", str(file), "--out", str(live), *OPTIONS], folder / "file.log", death)


class DurableFeeder(threading.Thread):
    """Adds events to Redis at a rate, each exactly once whatever happens to it: entry ids are the events' numbers."""

    def __init__(self, redis: RedisServer, events: list[Event], rate: float, *, begin: int = 0) -> None:
        """`begin` is the number of events that were added before."""
        super().__init__(daemon=True)
        self._redis, self._events, self._rate, self._begin = redis, events, rate, begin
        self.retries = 0

    def run(self) -> None:
        import redis
        from redis.backoff import NoBackoff
        from redis.retry import Retry

        client = self._redis.client(socket_timeout=5.0, retry=Retry(NoBackoff(), 0))
        began = time.monotonic()
        for place, event in enumerate(self._events):
            time.sleep(max(0.0, began + place / self._rate - time.monotonic()))
            while True:
                try:
                    client.xadd(STREAM, {"event": encode_event(event)}, id=f"{self._begin + place + 1}-0")
                    break
                except redis.ResponseError as error:
                    if "equal or smaller" in str(error):  # Stored, but the answer was lost.
                        break
                    time.sleep(0.05)
                except redis.RedisError:
                    time.sleep(0.05)
                self.retries += 1


class Asker(threading.Thread):
    """Asks a server all the time, and notes how long it was unreachable."""

    def __init__(self, url: str, histories: list[list[Any]]) -> None:
        super().__init__(daemon=True)
        self.url, self.histories = url, histories
        self.asked = self.refused = 0
        self.wrong: list[str] = []
        self.longest_outage = 0.0
        self._ending = threading.Event()

    def run(self) -> None:
        import pathdex

        client, reached = pathdex.Client(self.url, timeout=5.0), time.monotonic()
        while not self._ending.wait(0.02):
            history = self.histories[self.asked % len(self.histories)]
            try:
                found = client.recommend(history, 5)
            except PathdexError:
                self.refused += 1
                continue
            self.asked += 1
            if len(found) != 5:
                self.wrong.append(f"{len(found)} items for {history}")
            self.longest_outage = max(self.longest_outage, time.monotonic() - reached)
            reached = time.monotonic()

    def stop(self) -> None:
        self._ending.set()
        self.join()


def kill_broker_stream(
    events: list[Event], kills: int, draws: random.Random, folder: Path, *, rate: float = 120.0
) -> dict[str, Any]:
    """Kill trainer, server and broker in a random order while events arrive; then compare."""
    live, done = folder / "live", Counter()  # type: ignore[var-annotated]
    first = 200
    histories = [[event.item] for event in events[:first:10]]
    with RedisServer(folder / "redis") as redis:
        feeder = DurableFeeder(redis, events, rate)
        port = free_port()
        train = ["stream", redis.source, "--out", str(live), *OPTIONS]
        serve = ["serve", str(live), "--port", str(port)]
        trainer, log = Command(train, folder / "stream.log"), folder / "server.log"
        feeder.start()
        server: Command | None = None
        asker = Asker(f"http://127.0.0.1:{port}", histories)
        try:
            wait_until(lambda: (live / "CURRENT").exists(), 120, "the first publish")
            wait_until(lambda: stream_outages.events_of(live) >= first, 120, "the first checkpoint")
            server = Command(serve, log)
            wait_until(lambda: _answers(asker.url), 120, "the first answer")
            asker.start()
            while done.total() < kills:
                time.sleep(draws.uniform(0.1, LIVES))
                victim = draws.choices(["trainer", "server", "broker"], [5, 2, 2])[0]
                if victim == "trainer":
                    trainer.kill()
                    trainer = Command(train, trainer.log, random_death(draws, live) if draws.random() < 0.3 else None)
                elif victim == "server":
                    server.kill()
                    server = Command(serve, log)
                else:
                    redis.kill()
                    time.sleep(draws.choice([0.0, draws.uniform(0.0, 2.0)]))
                    redis.start()
                done[victim] += 1
                trainer = _restarted(trainer, train, done)
            feeder.join()
            if trainer.death is not None:  # It may still die at a change of a file, even in its orderly end.
                trainer.kill()
                done["trainer"] += 1
                trainer = Command(train, trainer.log)
            until = time.monotonic() + 300
            while stream_outages.events_of(live) < len(events) and time.monotonic() < until:
                trainer = _restarted(trainer, train, done)
                time.sleep(0.1)
            code = trainer.stop()
            errors = [] if code == 0 else [f"the stream exited with code {code}"]
            errors += accounting_errors(live, events, HISTORY)
            errors += _server_errors(asker, live, histories)
        finally:
            if asker.is_alive():
                asker.stop()
            trainer.kill()
            if server is not None:
                server.kill()
    return {
        "kills": dict(done),
        "events": len(events),
        "xadd_retries": feeder.retries,
        "answers": asker.asked,
        "refused_while_the_server_was_down": asker.refused,
        "longest_time_without_an_answer": round(asker.longest_outage, 2),
        "errors": errors,
    }


def _restarted(trainer: Command, arguments: list[str], done: Counter[str]) -> Command:
    """The trainer, started again if it died at a change of a file, or because the broker was down at its start."""
    if trainer.is_running:
        return trainer
    if trainer.process.exitcode == -9:
        done["trainer, at a change of a file"] += 1
    time.sleep(0.2)
    return Command(arguments, trainer.log)


def _server_errors(asker: Asker, live: Path, histories: list[list[Any]]) -> list[str]:
    """What is wrong with the server at the end."""
    import pathdex

    expected, found = published_answers(live, histories), None
    until = time.monotonic() + 60
    client = pathdex.Client(asker.url, timeout=5.0)
    while found != expected and time.monotonic() < until:
        try:
            found = answers(client, histories)
        except PathdexError:
            time.sleep(0.2)
    return asker.wrong + ([] if found == expected else ["the server answers differently from the published model"])


def _answers(url: str) -> bool:
    import pathdex

    try:
        with pathdex.Client(url, timeout=2.0) as client:
            return len(client.items) > 0
    except PathdexError:
        return False


def _table(parts: dict[str, dict[str, Any]]) -> Table:
    table = Table("part", "kills", "events", "errors", title="Kills")
    for name, part in parts.items():
        kills = ", ".join(f"{count} {where}" for where, count in part["kills"].items())
        table.add_row(name, kills, f"{part['events']:,}", "; ".join(part["errors"][:3]) or "none")
    return table


def run(kills: int, seed: int, folder: Path, report: Report, *, parts: list[str], seconds: float) -> list[str]:
    """The parts; returns the errors. Half of the kills go to each of the first two."""
    events, errors = distinct_times(events_in_time_order(most=30_000)), []
    for name in parts:
        place = folder / name
        place.mkdir()
        if name == "outages":
            outages = stream_outages.run(events, place, seconds=seconds)
            errors += [one for outage in outages.values() for one in outage["errors"]]
            report.add(name, {"outages": outages}, stream_outages.table(outages))
            continue
        draws = random.Random(seed)
        found = (
            kill_file_stream(events[:3000], kills - kills // 2, draws, place)
            if name == "file"
            else _kill_broker(events, kills // 2, draws, place)
        )
        errors += found["errors"]
        report.add(name, {"seed": seed, **found}, _table({name: found}))
    return errors


def _kill_broker(events: list[Event], kills: int, draws: random.Random, folder: Path) -> dict[str, Any]:
    """About as many events as arrive while the kills take place."""
    needed = max(600, int(kills * (LIVES / 2 + 1) * 120.0))
    return kill_broker_stream(events[:needed], kills, draws, folder)


def main(arguments: list[str]) -> None:
    parser = arguments_parser("stream-faults", __doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--parts", help="comma-separated: " + ", ".join(PARTS))
    parser.add_argument("--outage-seconds", type=float, default=60.0, help="how long the broker is gone")
    given = parser.parse_args(arguments)
    kills, seconds = (6, 3.0) if given.quick else (given.kills, given.outage_seconds)
    with tempfile.TemporaryDirectory(prefix="pathdex-faults-") as folder:
        report, parts = open_report("stream-faults", given), chosen(parser, given.parts, PARTS)
        errors = run(kills, given.seed, Path(folder), report, parts=parts, seconds=seconds)
    if errors:
        raise SystemExit("\n".join(errors[:20]))
