"""What a training run does, in order."""

from __future__ import annotations

import math
from dataclasses import dataclass

from pathdex.config import Config


@dataclass(frozen=True)
class Phase:
    """A number of epochs of one kind."""

    kind: str
    """`encoder`: reranker loss. `joint`: reranker and structure loss. `structure`: structure loss, the rest frozen."""
    epochs: int
    m_steps: range
    """The epochs that end with an M-step."""
    anneal: bool = False
    """Whether the learning rate falls to zero over the phase."""


def phases(config: Config) -> list[Phase]:
    """The program of a schedule.

    `warm`: the encoder and the reranker first, then EM on the structure over frozen user vectors. Training both at once
    from random paths slows the encoder down. `paper`: two joint epochs, then the softmax frozen and two epochs more
    (Section 4).

    Differs from the paper: after the last M-step the structure model goes over the final paths for `final_epochs` more.
    """
    each = config.structure_epochs
    epochs = config.rounds * each
    m_steps = range(each - 1, epochs, each)
    rounds = Phase("structure", epochs + (config.final_epochs if config.rounds else 0), m_steps)
    if config.schedule == "paper":
        return [Phase("joint", config.epochs, range(config.epochs)), rounds]
    return [Phase("encoder", config.epochs, range(0), anneal=True), rounds]


def cosine_rate(done: float) -> float:
    """The share of the learning rate left after `done` of 1: from 1 down to 2 percent along half a cosine."""
    return 0.02 + 0.49 * (1 + math.cos(math.pi * min(max(done, 0.0), 1.0)))
