"""The weights of the final score, and the share of the candidates that neighbours provide."""

from __future__ import annotations

from dataclasses import dataclass

from pathdex.config import Config

PARAMETERS = {
    "path": "path_weight",
    "neighbour": "neighbour_weight",
    "smoothing": "neighbour_smoothing",
    "share": "neighbour_share",
    "recency": "neighbour_recency",
    "popularity": "popularity_weight",
}
"""The hyper-parameter of each weight."""


@dataclass(frozen=True)
class ScoreWeights:
    """s(x, v) + path log p(v | x) + neighbour log(smoothing + similarity of v to the history).

    The defaults are for models that had no held-out data to fit weights on.
    """

    path: float = 0.6
    neighbour: float = 1.0
    smoothing: float = 0.02
    """The similarity of an item that is similar to nothing."""
    share: float = 0.2
    """The share of the candidates that neighbours provide."""
    recency: float = 0.25
    """The similarity to an item that a others follow in the history counts (1 + a)^-recency."""
    popularity: float = 0.0
    """The weight of the centred log item count, which is part of the item bias of a trained model."""

    @classmethod
    def from_config(cls, config: Config) -> ScoreWeights:
        """The weights of a configuration; the default for those that are not set."""
        return cls(**{name: value for name, value in set_weights(config).items() if value is not None})

    def to_config(self) -> dict[str, float]:
        """The weights by their names in the configuration."""
        return {parameter: getattr(self, name) for name, parameter in PARAMETERS.items()}


def set_weights(config: Config) -> dict[str, float | None]:
    """The weights of a configuration by their names in `ScoreWeights`; None for those that are not set."""
    return {name: getattr(config, parameter) for name, parameter in PARAMETERS.items()}
