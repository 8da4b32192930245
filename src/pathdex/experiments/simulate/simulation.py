"""The loop: in every tick users ask, arms answer, users respond, and what they finish is logged and learned from.

Simulated time moves in lockstep with learning, so the result depends on the seed and not on the machine's speed.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pathdex.data.events import Event
from pathdex.errors import AccuracyWarning, IndexHealthWarning
from pathdex.experiments.simulate.arms import Arm
from pathdex.experiments.simulate.behaviour import finish_probability, respond
from pathdex.experiments.simulate.broker import SHARED, EventLog, LogReader
from pathdex.experiments.simulate.creators import Integers
from pathdex.experiments.simulate.impressions import ImpressionRecorder, Impressions
from pathdex.experiments.simulate.options import SimulationOptions
from pathdex.experiments.simulate.platform import Platform
from pathdex.experiments.simulate.traffic import (
    ARRIVALS,
    BROWSE,
    DRIFT,
    NEW_UPLOADS,
    NOTHING,
    RESPONSES,
    Requests,
    arrivals,
    browse,
    buckets,
    draw,
    fill_new_slot,
    new_uploads,
)

SimulationProgress = Callable[[float, float, str], None]
"""Called with the simulated seconds so far, their total, and what happens now."""
_HISTORY = 200
"""Finished videos that are kept per user; models use fewer."""


@dataclass(frozen=True)
class Outcome:
    """A finished simulation."""

    options: SimulationOptions
    platform: Platform
    arms: Mapping[str, Arm]
    impressions: Impressions
    events: int
    """Finished views in the log."""


def streams_of(arms: Sequence[str], options: SimulationOptions) -> list[str]:
    """The streams that a log needs: one for all arms, or one each."""
    return list(arms) if options.isolated else [SHARED]


def simulate(
    options: SimulationOptions,
    platform: Platform,
    arms: Mapping[str, Arm],
    log: EventLog,
    *,
    progress: SimulationProgress = lambda done, total, what: None,
) -> Outcome:
    """Run the warm-up and the experiment."""
    run = _Run(options, platform, arms, log)
    try:
        with warnings.catch_warnings():
            # Models of the warm-up have little data; the report compares them with popularity anyway.
            warnings.simplefilter("ignore", AccuracyWarning)
            warnings.simplefilter("ignore", IndexHealthWarning)
            ticks = int(options.end_seconds / options.tick_seconds)
            for tick in range(ticks):
                run.tick(tick, progress)
            progress(options.end_seconds, options.end_seconds, "the report")
    finally:
        for reader in run.readers.values():
            reader.close()
    return Outcome(options, platform, arms, run.recorder.collect(), run.events)


class _Run:
    """The state of a simulation between two ticks."""

    def __init__(self, options: SimulationOptions, platform: Platform, arms: Mapping[str, Arm], log: EventLog) -> None:
        self.options, self.platform, self.arms, self.log = options, platform, arms, log
        self.names = list(arms)
        self.bucket = buckets(options.users, len(arms), options.seed)
        self.histories: list[list[int]] = [[] for _ in range(options.users)]
        self.shown: list[list[int]] = [[] for _ in range(options.users)]
        self.recorder = ImpressionRecorder()
        self.pages_so_far = self.events = 0
        self.readers: dict[str, LogReader] = {
            name: log.reader(name, name if options.isolated else SHARED) for name in arms
        }
        self.started = False

    def tick(self, number: int, progress: SimulationProgress) -> None:
        options = self.options
        now = float(number * options.tick_seconds)
        total = options.end_seconds
        warming = now < options.warmup_seconds
        progress(now, total, "warm-up" if warming else f"{self.pages_so_far:,} pages")
        self.platform.audience.advance(options.tick_seconds, draw(options, DRIFT, number))
        if not warming:
            self._learn(now, lambda what: progress(now, total, what))
        users = arrivals(draw(options, ARRIVALS, number), self.platform.audience.activity, options.requests_per_tick)
        requests = Requests(
            users, [self.histories[user] for user in users.tolist()], [self.shown[user] for user in users.tolist()], now
        )
        if warming:
            pages = browse(draw(options, BROWSE, number), self.platform, requests, options.page_size)
            chosen = np.zeros(pages.shape, np.bool_)
        else:
            pages, chosen = self._serve(requests, number)
        self._respond(requests, pages, chosen, number)

    def _learn(self, now: float, say: Callable[[str], None]) -> None:
        """Every arm reads the log from its position to the present."""
        for name, arm in self.arms.items():
            if not self.started:
                say(f"training {name}")
                arm.start(self.readers[name].read(), now)
            elif arm.learns:
                arm.learn(self.readers[name].read(), now)
        self.started = True

    def _serve(self, requests: Requests, number: int) -> tuple[Integers, NDArray[np.bool_]]:
        """The pages of all requests, and which places their arms chose."""
        options = self.options
        pages = np.full((len(requests.users), options.page_size), NOTHING)
        for place, arm in enumerate(self.arms.values()):
            rows = np.flatnonzero(self.bucket[requests.users] == place)
            if len(rows):
                pages[rows] = arm.pages(requests.take(rows), options.page_size)
        generator = draw(options, NEW_UPLOADS, number)
        open_slot = generator.random(len(pages)) < options.new_slot
        uploads = new_uploads(generator, self.platform, requests)
        pages, filled = fill_new_slot(pages, requests, uploads, open_slot)
        return pages, ~filled

    def _respond(self, requests: Requests, pages: Integers, chosen: NDArray[np.bool_], number: int) -> None:
        """Let the users watch, and log what they finish."""
        options, now = self.options, requests.now
        position = np.broadcast_to(np.arange(pages.shape[1]), pages.shape)
        appeal = self.platform.appeal(requests.users, np.maximum(pages, 0), now)
        uniforms = draw(options, RESPONSES, number).random((*pages.shape, 3))
        responses = respond(appeal, position, self.platform.videos.seconds[np.maximum(pages, 0)], uniforms)
        there = pages != NOTHING
        rows = np.nonzero(there)[0]
        self.recorder.add(
            time=np.full(len(rows), now),
            page=self.pages_so_far + rows,
            user=requests.users[rows],
            arm=self.bucket[requests.users[rows]],
            video=pages[there],
            position=position[there],
            chosen=chosen[there],
            finished=responses.finished[there],
            seconds=responses.seconds[there],
            expected=finish_probability(appeal, position)[there],
        )
        self.pages_so_far += len(pages)
        self._log(requests, pages, there & responses.finished, there)

    def _log(self, requests: Requests, pages: Integers, finished: NDArray[np.bool_], there: NDArray[np.bool_]) -> None:
        events: list[tuple[int, Event]] = []
        for row, user in enumerate(requests.users.tolist()):
            self.shown[user] += pages[row][there[row]].tolist()
            for video in pages[row][finished[row]].tolist():
                events.append((int(self.bucket[user]), Event(user, video, requests.now)))
                self.histories[user].append(video)
            del self.histories[user][:-_HISTORY]
        self.events += len(events)
        if not self.options.isolated:
            self.log.append([event for _, event in events])
            return
        for place, name in enumerate(self.names):
            # Everything before the experiment belongs to all arms.
            own = [event for bucket, event in events if bucket == place or not self.started]
            self.log.append(own, name)
