"""Creators and their videos: a few creators have large audiences, most have small ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

TAIL = 1.16
"""Exponent of the Pareto law of audiences: a fifth of the creators has four fifths of them."""
SMALL_SHARE = 0.8
"""The creators with the smallest audiences, up to this share, are small."""
STYLE_DIM = 4
SECOND_TOPIC = 0.3
"""Weight of a video's second topic."""
MEDIAN_SECONDS = 20.0
"""Duration of a video."""


@dataclass(frozen=True)
class Creators:
    """All creators; row c is creator c."""

    audience: Floats
    """Its size, at least 1."""
    topics: Integers
    """(creator, 2) the topics that it makes videos about."""
    style: Floats
    """(creator, STYLE_DIM) what some users like about it, whatever the topic."""
    quality: Floats
    """What all users like about it. It does not depend on the audience."""

    @property
    def small(self) -> NDArray[np.bool_]:
        """Which creators are small."""
        order = np.argsort(self.audience, kind="stable")
        small = np.zeros(len(order), np.bool_)
        small[order[: int(SMALL_SHARE * len(order))]] = True
        return small


@dataclass(frozen=True)
class Videos:
    """All videos that there will ever be, by time of upload; row v is video v."""

    creator: Integers
    topics: Integers
    """(video, 2) the main and the second topic."""
    quality: Floats
    seconds: Floats
    """Duration."""
    uploaded: Floats
    """Seconds since the simulation began; negative for videos that were there before."""
    reach: Floats
    """How many see it without a recommendation, relative to others: the square root of the creator's audience."""

    def __len__(self) -> int:
        return len(self.creator)

    def count(self, now: float) -> int:
        """How many videos there are; they are the first ones."""
        return int(np.searchsorted(self.uploaded, now, side="right"))


def plant_creators(generator: Generator, count: int, topic_shares: Floats) -> Creators:
    """Creators with two topics each, popular topics more often."""
    topics = np.column_stack([generator.choice(len(topic_shares), count, p=topic_shares) for _ in range(2)])
    return Creators(
        audience=generator.pareto(TAIL, count) + 1,
        topics=topics,
        style=generator.normal(0, STYLE_DIM**-0.5, (count, STYLE_DIM)),
        quality=generator.normal(0, 0.3, count),
    )


def plant_videos(generator: Generator, creators: Creators, uploaded: Floats) -> Videos:
    """A video per time of upload, which must be sorted. Creators with larger audiences upload more often."""
    reach = np.sqrt(creators.audience)
    count = len(uploaded)
    creator = generator.choice(len(reach), count, p=reach / reach.sum())
    topics = creators.topics[creator]
    # Each of the creator's topics is the main one of half of its videos.
    swapped = generator.random(count) < 0.5
    topics = np.where(swapped[:, None], topics[:, ::-1], topics)
    return Videos(
        creator=creator,
        topics=topics,
        quality=creators.quality[creator] + generator.normal(0, 0.7, count),
        seconds=MEDIAN_SECONDS * np.exp(generator.normal(0, 0.5, count)),
        uploaded=uploaded,
        reach=reach[creator],
    )
