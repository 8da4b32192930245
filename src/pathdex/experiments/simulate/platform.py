"""The platform: users, creators and videos, and how much a video appeals to a user at a moment."""

from __future__ import annotations

import numpy as np

from pathdex.experiments.simulate.audience import Audience
from pathdex.experiments.simulate.creators import SECOND_TOPIC, Floats, Integers, plant_creators, plant_videos
from pathdex.experiments.simulate.options import SimulationOptions

OFFSET = -2.8
INTEREST = 6.0
"""The appeal of a video is OFFSET + INTEREST times the root of the user's interest in its topics + ..."""
STYLE = 0.6
AGE = 2.0
"""... and falls by up to so much as the video gets older."""


class Platform:
    """Everything that exists, and what users want. Recommenders do not see it."""

    def __init__(self, options: SimulationOptions) -> None:
        generator = np.random.default_rng([options.seed, 0])
        shares = generator.dirichlet(np.full(options.topics, 2.0))
        self.creators = plant_creators(generator, options.creators, shares)
        self.videos = plant_videos(generator, self.creators, upload_times(options))
        self.audience = Audience(
            generator,
            options.users,
            shares,
            drift=options.drift,
            half_life=60 * options.drift_half_life,
        )
        self._appeal_half_life = 60 * options.appeal_half_life

    def appeal(self, users: Integers, videos: Integers, now: float) -> Floats:
        """(user, video) how much each of a user's videos appeals to it now, as a logit; `videos` is (user, video)."""
        own, rows = self.videos, np.arange(len(users))[:, None]
        shares = self.audience.interests(users)
        main, second = own.topics[videos, 0], own.topics[videos, 1]
        interest = (1 - SECOND_TOPIC) * shares[rows, main] + SECOND_TOPIC * shares[rows, second]
        style = np.einsum("ud,uvd->uv", self.audience.taste[users], self.creators.style[own.creator[videos]])
        lost = AGE * (1 - self.freshness(videos, now))
        appeal: Floats = OFFSET + INTEREST * np.sqrt(interest) + STYLE * style + own.quality[videos] - lost
        return appeal

    def freshness(self, videos: Integers, now: float) -> Floats:
        """1 for a video that is new now, halved with each half-life."""
        fresh: Floats = 2.0 ** (-(now - self.videos.uploaded[videos]) / self._appeal_half_life)
        return fresh


def upload_times(options: SimulationOptions) -> Floats:
    """Sorted times of upload in seconds: `videos` before the simulation begins, then one at regular intervals.

    The first ones are spread over two half-lives of appeal.
    """
    before = -120 * options.appeal_half_life * (1 - np.arange(options.videos) / options.videos)
    if not options.uploads_per_minute:
        return before
    count = int(options.end_seconds * options.uploads_per_minute / 60)
    return np.concatenate([before, np.arange(1, count + 1) * 60 / options.uploads_per_minute])
