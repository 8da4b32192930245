"""YouTube DNN (Covington et al. 2016): a pooled history, a small network, a softmax over items."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from pathdex.config import EncoderConfig, RunOptions
from pathdex.errors import ConfigError, Problem
from pathdex.recommenders.base import EstimatorState
from pathdex.recommenders.vector_model import VectorRecommender

PARAMETERS = tuple(spec.name for spec in dataclasses.fields(EncoderConfig) if spec.name not in ("encoder", "reranker"))
"""Hyper-parameters: those of Deep Retrieval's encoder, except its kind and the reranker."""


class YouTubeDNN(VectorRecommender):
    """Two dense layers map the mean and the last item vector to the user vector; a softmax predicts the next item.

    Retrieval is exhaustive. Every field of `EncoderConfig` except `encoder` and `reranker` is a keyword.
    """

    name = "youtube-dnn"

    def __init__(self, *, seed: int = 0, device: str = "cpu", threads: int | None = None, **parameters: Any) -> None:
        fixed = {name: value for name, value in parameters.items() if name in ("encoder", "reranker")}
        if fixed:
            raise ConfigError(Problem("is fixed for this model", name, value) for name, value in fixed.items())
        config = EncoderConfig.from_dict({"encoder": "pooled", **parameters})
        super().__init__(config, RunOptions(seed=seed, device=device, threads=threads))

    def get_params(self) -> dict[str, Any]:
        return {name: getattr(self.config, name) for name in PARAMETERS}

    @classmethod
    def bundle_config(cls, settings: Mapping[str, Any]) -> EncoderConfig:
        # Bundles of earlier versions name the encoder.
        if settings.get("encoder", "pooled") != "pooled":
            raise ConfigError([Problem("is 'pooled' for this model", "encoder", settings["encoder"])])
        return EncoderConfig.from_stored({**settings, "encoder": "pooled"})

    def set_state(self, state: EstimatorState) -> None:
        stored = self.bundle_config(state.settings)
        YouTubeDNN.__init__(self, **{name: getattr(stored, name) for name in PARAMETERS})
        super().set_state(state)
