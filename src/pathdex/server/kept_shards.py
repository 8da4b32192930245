"""Versions of a shard that were replaced and that a router still uses, since other shards have no newer one yet."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from pathdex.errors import Problem
from pathdex.recommenders.shard import DeepRetrievalShard, ShardKey
from pathdex.server.errors import SERVER, RequestError
from pathdex.server.model_loader import ServedModel

SECONDS = 30.0
"""How long a replaced version is kept after its last use; a router uses it at least every few seconds."""
MOST = 2
"""Replaced versions kept at a time; each has its own memory."""
GONE = 409
"""The status of a call for a version that the shard does not have."""
MISPLACED = 421
"""The status of a call for another shard, or for another split of the model."""


@dataclass
class _KeptShard:
    served: ServedModel
    used: float


class KeptShards:
    """Finds a shard by its key. Used in the event loop only."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._kept = clock, dict[ShardKey, _KeptShard]()

    def keep(self, served: ServedModel) -> None:
        """Keep a model that was replaced, if it is a shard."""
        if isinstance(served.recommender, DeepRetrievalShard):
            key = served.recommender.facts.key
            self._kept.pop(key, None)
            self._kept[key] = _KeptShard(served, self._clock())
            while len(self._kept) > MOST:
                del self._kept[next(iter(self._kept))]

    def forget(self) -> None:
        """Free the versions that no router has used for a while."""
        now = self._clock()
        for key in [key for key, one in self._kept.items() if now - one.used > SECONDS]:
            del self._kept[key]

    def versions(self, current: ServedModel) -> list[str]:
        """The versions of the whole model that the current place can answer for, the newest first."""
        newest = shard_of(current).facts.key
        kept = (key for key in reversed(self._kept) if key != newest and key[1:] == newest[1:])
        return [newest.version, *(key.version for key in kept)]

    def find(self, current: ServedModel, wanted: ShardKey) -> ServedModel:
        """The shard with this key; status 409 if its version is not here, 421 if this is another shard."""
        own = shard_of(current).facts.key
        if wanted == own:
            return current
        kept = self._kept.get(wanted)
        if kept is None:
            if wanted[1:] == own[1:]:
                problem = Problem(
                    f"this shard has version {own.version}", "version", wanted.version, "ask for its status"
                )
                raise RequestError(GONE, problem, type=SERVER)
            remedy = "serve that shard here, or restart the router with the URLs of all shards"
            raise RequestError(MISPLACED, Problem(f"this is {own}, not {wanted}", remedy=remedy), type=SERVER)
        kept.used = self._clock()
        return kept.served


def shard_of(served: ServedModel) -> DeepRetrievalShard:
    """The model as a shard; status 404 if it is none."""
    if not isinstance(served.recommender, DeepRetrievalShard):
        problem = Problem("the model is not a shard", remedy="serve a folder that pathdex shard wrote")
        raise RequestError(404, problem, type=SERVER)
    return served.recommender
