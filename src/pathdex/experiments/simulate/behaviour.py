"""What a user does with a page: watch or skip each video, and finish it or not."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pathdex.experiments.simulate.creators import Floats, Integers

EXAMINED = 0.9
"""Of those who look at a position, this share looks at the next one."""
EASY_TO_START = 1.0
"""Starting a video takes less interest than finishing it, by so much of a logit."""


@dataclass(frozen=True)
class Responses:
    """What happened to each video of some pages."""

    watched: NDArray[np.bool_]
    finished: NDArray[np.bool_]
    seconds: Floats
    """View time; 0 if skipped."""


def watch_probability(appeal: Floats, position: Integers) -> Floats:
    """A user starts to watch: less often further down the page."""
    started: Floats = EXAMINED**position * _sigmoid(appeal + EASY_TO_START)
    return started


def finish_probability(appeal: Floats, position: Integers) -> Floats:
    """A user watches to the end, which needs the start."""
    return watch_probability(appeal, position) * _sigmoid(appeal)


def respond(appeal: Floats, position: Integers, duration: Floats, uniforms: Floats) -> Responses:
    """The responses to videos, from three uniform numbers each (last axis).

    View time is the duration if the video is finished, and otherwise a share of it that grows with the appeal.
    """
    watched = uniforms[..., 0] < watch_probability(appeal, position)
    liking = _sigmoid(appeal)
    finished = watched & (uniforms[..., 1] < liking)
    part = uniforms[..., 2] ** (1 / (0.5 + liking))
    return Responses(watched, finished, np.where(finished, duration, np.where(watched, part * duration, 0.0)))


def _sigmoid(values: Floats) -> Floats:
    shares: Floats = 1 / (1 + np.exp(-values))
    return shares
