"""Traffic: who asks when, which arm answers, and what users see that no arm chose."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from pathdex.experiments.simulate.creators import Floats, Integers
from pathdex.experiments.simulate.options import SimulationOptions
from pathdex.experiments.simulate.platform import Platform

NOTHING = -1
"""An empty place on a page."""
NEW_SECONDS = 600.0
"""A new upload may fill the new-uploads slot for so long."""
BROWSING = 1.0
"""How much a user's interest decides what it finds by itself, relative to chance."""
ARRIVALS, RESPONSES, NEW_UPLOADS, DRIFT, BROWSE, RANDOM_ARM = range(1, 7)
"""Streams of random numbers. Each depends on the seed and the tick alone, so all arms get the same traffic."""


@dataclass(frozen=True)
class Requests:
    """Users who ask for a page now, with what the service knows of them."""

    users: Integers
    histories: Sequence[Sequence[int]]
    """Videos that the user finished, oldest first."""
    shown: Sequence[Sequence[int]]
    """Videos that the user was shown; they are not shown again."""
    now: float
    """Seconds since the simulation began."""

    def take(self, rows: Integers) -> Requests:
        """Some of the requests, in the given order."""
        kept = rows.tolist()
        return Requests(
            self.users[rows], [self.histories[row] for row in kept], [self.shown[row] for row in kept], self.now
        )


def draw(options: SimulationOptions, stream: int, tick: int) -> Generator:
    """The random numbers of one stream in one tick."""
    return np.random.default_rng([options.seed, stream, tick])


def arrivals(generator: Generator, activity: Floats, count: int) -> Integers:
    """Different users, active ones more often."""
    return generator.choice(len(activity), count, replace=False, p=activity / activity.sum())


def buckets(users: int, arms: int, seed: int) -> Integers:
    """The arm of each user, by a hash of its id: it does not depend on the other users."""

    def bucket(user: int) -> int:
        digest = hashlib.blake2b(f"{seed}:{user}".encode(), digest_size=8).digest()
        return int.from_bytes(digest, "little") % arms

    return np.array([bucket(user) for user in range(users)], np.int64)


def new_uploads(generator: Generator, platform: Platform, requests: Requests) -> Integers:
    """(request,) the recent upload that each user finds by itself; `NOTHING` if there is none that is new to it."""
    videos = platform.videos
    first, end = int(np.searchsorted(videos.uploaded, requests.now - NEW_SECONDS)), videos.count(requests.now)
    if first == end:
        return np.full(len(requests.users), NOTHING)
    return _found(generator, platform, requests, first, end, 1)[:, 0]


def browse(generator: Generator, platform: Platform, requests: Requests, n: int) -> Integers:
    """(request, n) what users find by themselves among all videos. The best comes first."""
    return _found(generator, platform, requests, 0, platform.videos.count(requests.now), n)


def _found(generator: Generator, platform: Platform, requests: Requests, first: int, end: int, n: int) -> Integers:
    """Videos of a range, drawn by reach, freshness and appeal to the user.

    Drawn without replacement with probabilities proportional to the weights (the Gumbel trick).
    """
    some = np.arange(first, end)
    everything = np.broadcast_to(some, (len(requests.users), end - first))
    appeal = platform.appeal(requests.users, everything, requests.now)
    weights = np.log(platform.videos.reach[some] * platform.freshness(some, requests.now))
    keys = weights + BROWSING * appeal + generator.gumbel(size=appeal.shape)
    return best_of(keys, requests, n, first)


def best_of(keys: Floats, requests: Requests, n: int, first: int = 0) -> Integers:
    """(request, n) the videos with the highest keys that the user was not shown; keys are (request, video).

    Column 0 is the video `first`.
    """
    for row, shown in enumerate(requests.shown):
        keys[row, [one - first for one in shown if 0 <= one - first < keys.shape[1]]] = -np.inf
    n_there = min(n, keys.shape[1])
    best = np.argpartition(-keys, n_there - 1, axis=1)[:, :n_there]
    chosen = np.take_along_axis(keys, best, axis=1)
    order = np.argsort(-chosen, axis=1, kind="stable")
    ids = first + np.take_along_axis(best, order, axis=1)
    pages = np.full((len(keys), n), NOTHING)
    pages[:, :n_there] = np.where(np.isneginf(np.take_along_axis(chosen, order, axis=1)), NOTHING, ids)
    return pages


def fill_new_slot(
    pages: Integers, requests: Requests, uploads: Integers, open_slot: NDArray[np.bool_]
) -> tuple[Integers, NDArray[np.bool_]]:
    """Put the new upload at the end of the pages with an open slot, unless the user knows it or the page has it.

    Returns the pages and which places were filled.
    """
    pages, filled = pages.copy(), np.zeros(pages.shape, np.bool_)
    for row in np.flatnonzero(open_slot & (uploads != NOTHING)).tolist():
        upload = int(uploads[row])
        if upload not in requests.shown[row] and upload not in pages[row]:
            pages[row, -1], filled[row, -1] = upload, True
    return pages, filled
