"""Fit the weights of the final score, and the share of candidates from neighbours, on held-out queries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from pathdex.config import Config
from pathdex.recommenders.score_pools import Pools
from pathdex.retrieval.score_weights import ScoreWeights, set_weights

GRID: dict[str, tuple[float, ...]] = {
    "neighbour": (0.0, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0),
    "recency": (0.0, 0.25, 0.5, 1.0),
    "share": (0.0, 0.2, 0.4, 0.6, 0.8, 1.0),
    "smoothing": (0.1, 0.02, 0.005, 0.001, 0.0002),
    "path": (0.0, 0.15, 0.3, 0.6, 1.0, 1.5),
    "popularity": (0.0, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0),
}
"""Values to try, in the order in which they are tried."""
POPULARITY = "popularity"
NEIGHBOURS_ONLY = ("neighbour", "recency", "share", "smoothing")
SWEEPS = 2
SURE = 0.5
"""A change must gain this many standard errors of its paired differences."""
WORTH = 0.005
"""Neighbours must gain at least this share to be kept, since they cost time and memory."""


@dataclass(frozen=True)
class Fitted:
    """Weights, and F at each size with these and other weights."""

    weights: ScoreWeights
    neighbours: bool
    """Whether neighbours are worth their cost."""
    figures: Mapping[str, list[float]]


def fit_weights(pools: Mapping[float, Pools], start: ScoreWeights, free: set[str], *, neighbours_fixed: bool) -> Fitted:
    """The weights that maximize F on the pools, by coordinate ascent from several starts; `free` names may change.

    `pools` holds those of each `recencies`.

    The figure is the mean of F over the sizes, each relative to that of `start`. If `neighbours_fixed`, neighbours are
    kept even if they do not help.
    """
    search = _Search(pools, start, free)
    encoder = _allowed(ScoreWeights(path=0.0, neighbour=0.0, share=0.0), start, free)
    # The popularity weight becomes part of the item bias, so it has to suit the encoder alone.
    popularity = search.ascend([encoder], tuple(name for name in GRID if name != POPULARITY)).popularity
    encoder, first = replace(encoder, popularity=popularity), replace(start, popularity=popularity)
    rest = free - {POPULARITY}
    similar = _allowed(ScoreWeights(path=0.0, neighbour=8.0, smoothing=0.001, share=0.8), first, rest)
    plain = _allowed(replace(first, neighbour=0.0, share=0.0), first, rest)
    alone = search.ascend([encoder, plain], (POPULARITY, *NEIGHBOURS_ONLY))
    best = search.ascend([first, alone, similar], (POPULARITY,))
    gain = search.figure(best).mean() / max(search.figure(alone).mean(), 1e-9) - 1
    keep = neighbours_fixed or gain > WORTH
    weights = best if keep else alone
    return Fitted(
        weights,
        keep,
        {
            "fitted": search.means(weights),
            "encoder alone": search.means(encoder),
            "without neighbours": search.means(alone),
            "default weights": search.means(start),
        },
    )


def _allowed(wanted: ScoreWeights, start: ScoreWeights, free: set[str]) -> ScoreWeights:
    """`wanted`, but only the free weights differ from `start`."""
    return replace(start, **{name: getattr(wanted, name) for name in free})


class _Search:
    def __init__(self, pools: Mapping[float, Pools], start: ScoreWeights, free: set[str]) -> None:
        self.pools, self.free = pools, free
        self.known: dict[ScoreWeights, NDArray[np.float64]] = {}
        self.scale = np.maximum(self.f(start).mean(axis=0), 1e-9)

    def f(self, weights: ScoreWeights) -> NDArray[np.float64]:
        if weights not in self.known:
            self.known[weights] = self.pools[weights.recency].f_measures(weights)
        return self.known[weights]

    def figure(self, weights: ScoreWeights) -> NDArray[np.float64]:
        """(query,): what is maximized on average."""
        scaled: NDArray[np.float64] = (self.f(weights) / self.scale).mean(axis=1)
        return scaled

    def means(self, weights: ScoreWeights) -> list[float]:
        means: list[float] = self.f(weights).mean(axis=0).tolist()
        return means

    def ascend(self, starts: list[ScoreWeights], fixed: tuple[str, ...] = ()) -> ScoreWeights:
        """Change one weight at a time, while that gains enough, from the best of the starts."""
        best = max(starts, key=lambda weights: float(self.figure(weights).mean()))
        for _ in range(SWEEPS):
            before = best
            for name, values in GRID.items():
                if name not in self.free or name in fixed:
                    continue
                tried = max(
                    (replace(best, **{name: value}) for value in values),
                    key=lambda weights: float(self.figure(weights).mean()),
                )
                if self._surely_better(tried, best):
                    best = tried
            if best == before:
                break
        return best

    def _surely_better(self, tried: ScoreWeights, best: ScoreWeights) -> bool:
        gain = self.figure(tried) - self.figure(best)
        return bool(gain.mean() > SURE * gain.std() / np.sqrt(len(gain)) > 0.0)


def recencies(start: ScoreWeights, free: set[str]) -> tuple[float, ...]:
    """The values of `recency` that are tried."""
    return GRID["recency"] if "recency" in free else (start.recency,)


def free_weights(config: Config) -> set[str]:
    """The weights that a configuration leaves open."""
    none = set(NEIGHBOURS_ONLY) if config.neighbours == 0 else set()
    return {name for name, value in set_weights(config).items() if value is None} - none
