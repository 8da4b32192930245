"""Versions of a shard that were replaced and that a router still uses, since other shards have no newer one yet."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from pathdex.errors import Problem
from pathdex.recommenders.shard import DeepRetrievalShard
from pathdex.server.errors import SERVER, RequestError
from pathdex.server.model_loader import ServedModel

SECONDS = 30.0
"""How long a replaced version is kept after its last use; a router uses it at least every few seconds."""
MOST = 2
"""Replaced versions kept at a time; each has its own memory."""
GONE = 409
"""The status of a call for a version that the shard does not have."""


@dataclass
class _KeptShard:
    served: ServedModel
    used: float


class KeptShards:
    """Finds the shard of a version. Used in the event loop only."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._kept = clock, dict[str, _KeptShard]()

    def keep(self, served: ServedModel) -> None:
        """Keep a model that was replaced, if it is a shard."""
        if isinstance(served.recommender, DeepRetrievalShard):
            version = served.recommender.facts.version
            self._kept.pop(version, None)
            self._kept[version] = _KeptShard(served, self._clock())
            while len(self._kept) > MOST:
                del self._kept[next(iter(self._kept))]

    def forget(self) -> None:
        """Free the versions that no router has used for a while."""
        now = self._clock()
        for version in [version for version, one in self._kept.items() if now - one.used > SECONDS]:
            del self._kept[version]

    def versions(self, current: ServedModel) -> list[str]:
        """The versions of the whole model that can be answered for, the newest first."""
        newest = shard_of(current).facts.version
        return [newest, *(version for version in reversed(self._kept) if version != newest)]

    def find(self, current: ServedModel, version: str) -> ServedModel:
        """The shard of this version; status 409 if it is not here."""
        own = shard_of(current).facts.version
        if version == own:
            return current
        kept = self._kept.get(version)
        if kept is None:
            problem = Problem(f"this shard has version {own}", "version", version, "ask for its status")
            raise RequestError(GONE, problem, type=SERVER)
        kept.used = self._clock()
        return kept.served


def shard_of(served: ServedModel) -> DeepRetrievalShard:
    """The model as a shard; status 404 if it is none."""
    if not isinstance(served.recommender, DeepRetrievalShard):
        problem = Problem("the model is not a shard", remedy="serve a folder that pathdex shard wrote")
        raise RequestError(404, problem, type=SERVER)
    return served.recommender
