"""The current model of a router, and the watch over the shards that hold it."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import cached_property

from pathdex.config import Config
from pathdex.data.vocabulary import Id
from pathdex.errors import ServerError
from pathdex.recommenders.shard import ShardFacts
from pathdex.recommenders.whole_model import WholeModel
from pathdex.server.errors import RequestError
from pathdex.server.kept_shards import SECONDS, KeptShards
from pathdex.server.known_items import KnownItems
from pathdex.server.metrics import ServerMetrics
from pathdex.server.schemas import ModelInfo
from pathdex.server.shard_client import (
    AskedShards,
    NotYetError,
    Replica,
    ShardClient,
    ShardDownError,
    ShardPlace,
    VersionGoneError,
)
from pathdex.server.shard_messages import ShardCall, ShardStatus, SharedParts
from pathdex.server.shard_routes import shard_keep, shard_parts, shard_status

log = logging.getLogger("pathdex.server")

PARTS_SECONDS = 60.0
"""How long the network and the paths of a new model may take to arrive."""
MOST_WATCH = SECONDS / 5
"""Seconds between two looks at the shards, at most: shards keep a replaced version while a router uses it."""
START_ATTEMPTS = 3
REACH_SECONDS = 10.0
"""How long a router that starts waits for a URL at which nothing answers."""
LOADING_SECONDS = 600.0
"""How long it waits in all for servers that still load their models."""
START_PAUSE = 0.2


@dataclass(frozen=True)
class RoutedModel:
    """A sharded model as the router has it."""

    version: str
    whole: WholeModel
    kind: str
    """Of the ids: `int` or `str`."""
    columns: tuple[str, ...]
    loaded: float
    known: KnownItems
    """Items of histories, in this version."""
    example_ids: list[Id]
    example_path: list[int]

    @cached_property
    def info(self) -> ModelInfo:
        """What /v1/model returns."""
        whole = self.whole
        return ModelInfo(
            model=self.version,
            estimator="deep-retrieval",
            items=whole.facts.num_ids,
            ids=self.kind,
            history_length=whole.config.history_length,
            loaded=datetime.fromtimestamp(self.loaded, timezone.utc).isoformat(timespec="seconds"),
            attributes=list(self.columns),
            config=whole.config.to_dict(),
            health=whole.health,
        )

    @classmethod
    def from_parts(cls, parts: SharedParts, known_items: int = 0) -> RoutedModel:
        facts = ShardFacts.from_stored(parts.facts)
        weights = {name: tensor.unpack() for name, tensor in parts.weights.items()}
        config = Config.from_stored(parts.config)
        whole = WholeModel(facts, config, weights, parts.paths.unpack(), parts.sizes.unpack())
        whole.warmup()
        return cls(
            facts.version,
            whole,
            parts.ids,
            tuple(parts.columns),
            time.time(),
            KnownItems(known_items),
            parts.example_ids,
            parts.example_path,
        )


class RouterManager:
    """Holds the model that all shards have. When all have a newer one, requests that arrive use that.

    Requests in flight keep the old version, which shards keep for them: an answer never mixes two models.
    """

    def __init__(
        self,
        client: ShardClient,
        urls: Sequence[str],
        watch: float,
        metrics: ServerMetrics,
        *,
        partial: bool = False,
        on_swap: Callable[[str], object] = lambda _: None,
    ) -> None:
        self.client, self.urls, self.partial = client, urls, partial
        self.watch = min(watch, MOST_WATCH) if watch else MOST_WATCH
        self.current: RoutedModel | None = None
        self.previous: RoutedModel | None = None
        self.places: list[ShardPlace] = []
        self.kept = KeptShards()
        self._metrics, self._on_swap = metrics, on_swap
        self._task: asyncio.Task[None] | None = None
        self._refused: str | None = None
        self._warnings: dict[str, str] = {}
        self._turns = itertools.count()

    async def start(self) -> RoutedModel:
        """Find the places of all shards and load what they share; `ServerError` if they are not those of one model."""
        self.client.open()
        for attempt in range(START_ATTEMPTS):
            statuses = await self._first_statuses()
            self.places = _places(self.urls, statuses)
            version = _common_version(self.places, dict(zip(self.urls, statuses, strict=True)))
            try:
                model = await self._load(version)
                break
            except (VersionGoneError, ShardDownError, RequestError) as error:
                if attempt == START_ATTEMPTS - 1:
                    raise ServerError(f"the shards cannot be read: {error}; see their logs") from error
                await asyncio.sleep(0.5)
        self._show(model)
        self._task = asyncio.create_task(self._watch())
        return model

    def asked(self) -> AskedShards:
        """The shards for one request."""
        return AskedShards(self.client, self.places, partial=self.partial, turn=next(self._turns))

    def models(self) -> list[RoutedModel]:
        """The models to answer a request with, in turn, if a shard lacks the version of the first."""
        return [one for one in (self.current, self.previous) if one is not None]

    @property
    def missing(self) -> list[int]:
        """The numbers, from 1, of the shards that did not answer their last call."""
        return [place.index + 1 for place in self.places if not place.is_up]

    @property
    def is_ready(self) -> bool:
        """Whether queries can be answered."""
        missing = self.missing
        return self.current is not None and (not missing or (self.partial and len(missing) < len(self.places)))

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
        await self.client.close()

    async def _first_statuses(self) -> list[ShardStatus]:
        """The status of every URL. Waits for servers that start now; `ServerError` if it takes too long."""
        began = time.monotonic()
        reached, is_logged = dict.fromkeys(self.urls, began), False
        while True:
            calls = (self.client.ask_url(url, shard_status) for url in self.urls)
            found = await asyncio.gather(*calls, return_exceptions=True)
            failed = {url: error for url, error in zip(self.urls, found, strict=True) if isinstance(error, Exception)}
            if not failed:
                return [one for one in found if isinstance(one, ShardStatus)]
            now = time.monotonic()
            for url in self.urls:
                error = failed.get(url)
                if not isinstance(error, NotYetError) or error.is_reached:
                    reached[url] = now
            may_pass = all(isinstance(error, NotYetError) for error in failed.values())
            listed = "; ".join(map(str, failed.values()))
            if not may_pass or now - min(reached.values()) >= REACH_SECONDS or now - began >= LOADING_SECONDS:
                raise ServerError(f"{len(failed)} of {len(self.urls)} shards cannot be reached: {listed}")
            if not is_logged:
                log.info("waiting for %d of %d shards: %s", len(failed), len(self.urls), listed)
                is_logged = True
            await asyncio.sleep(START_PAUSE)

    async def _load(self, version: str) -> RoutedModel:
        parts = await self.client.ask(self.places[0], shard_parts, ShardCall(version), timeout=PARTS_SECONDS)
        return await asyncio.to_thread(RoutedModel.from_parts, parts, self.client.limits.known_items)

    def _show(self, model: RoutedModel) -> None:
        self.previous, self.current = self.current, model
        self._metrics.set_model(model.version, model.whole.facts.num_ids, model.loaded)

    async def check_for_update(self) -> bool:
        """Look at all replicas; returns whether the model was replaced by one that all of them have."""
        assert self.current is not None
        replicas = [(place, replica) for place in self.places for replica in place.replicas]
        calls = (self._look(place, replica) for place, replica in replicas)
        found = await asyncio.gather(*calls)
        statuses = [one for one in found if one is not None]
        # A replica that is down takes part again when it is back, with whatever version it has then.
        newest = {status.versions[0] for status in statuses}
        seen = {status.index for status in statuses}
        if newest == {self.current.version} or len(newest) != 1 or len(seen) < len(self.places):
            return False
        [version] = newest
        if version == self._refused:
            return False
        try:
            model = await self._load(version)
        except Exception as error:
            self._refused = version
            self._metrics.add("pathdex_model_reload_failures_total")
            log.warning("rejected model %s of the shards: %s; still serving %s", version, error, self.current.version)
            return False
        old = self.current.version
        self._show(model)
        self._metrics.add("pathdex_model_reloads_total")
        self._on_swap(version)
        log.info("replaced model %s with %s", old, version)
        return True

    async def _look(self, place: ShardPlace, replica: Replica) -> ShardStatus | None:
        """The status of a replica; keeps the version in use alive there."""
        assert self.current is not None
        try:
            try:
                call = place.call(ShardCall(self.current.version))
                status = await self.client.ask_url(replica.url, shard_keep, call)
            except VersionGoneError:
                status = await self.client.ask_url(replica.url, shard_status)
        except (RequestError, VersionGoneError) as error:
            replica.is_up = False
            self._warn(replica, str(error))
            return None
        replica.is_up = True
        if (status.index, status.count) == (place.index, place.count):
            self._warnings.pop(replica.url, None)
            return status
        # It still has the old split for this router, and may lose it.
        found, wanted = f"{status.index + 1} of {status.count}", f"{place.index + 1} of {place.count}"
        self._warn(replica, f"{replica.url} is now shard {found}, and keeps shard {wanted} for this router; restart it")
        return None

    def _warn(self, replica: Replica, message: str) -> None:
        """Log what is wrong with a replica, once."""
        if self._warnings.get(replica.url) != message:
            self._warnings[replica.url] = message
            log.warning("%s", message)

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(self.watch)
            try:
                await self.check_for_update()
            except Exception:
                log.exception("checking the shards failed")


def _places(urls: Sequence[str], statuses: Sequence[ShardStatus]) -> list[ShardPlace]:
    """The replicas of each shard; `ServerError` if a shard is missing."""
    counts = sorted({status.count for status in statuses})
    if len(counts) > 1:
        shown = "; ".join(f"{url} is one of {status.count}" for url, status in zip(urls, statuses, strict=True))
        raise ServerError(f"the shards are of models that were split differently ({shown}); pass those of one model")
    places = [ShardPlace(index, counts[0]) for index in range(counts[0])]
    for url, status in zip(urls, statuses, strict=True):
        places[status.index].replicas.append(Replica(url))
    missing = [str(place.index + 1) for place in places if not place.replicas]
    if missing:
        many = (
            f"shards {', '.join(missing)} of {counts[0]} are"
            if len(missing) > 1
            else f"shard {missing[0]} of {counts[0]} is"
        )
        raise ServerError(f"{many} missing among {', '.join(urls)}; add the URL to --shards")
    return places


def _common_version(places: Sequence[ShardPlace], statuses: dict[str, ShardStatus]) -> str:
    """The newest version that all replicas have; `ServerError` if there is none."""
    versions = [statuses[replica.url].versions for place in places for replica in place.replicas]
    for version in versions[0]:
        if all(version in others for others in versions):
            return version
    shown = "; ".join(f"{url} has {', '.join(status.versions)}" for url, status in statuses.items())
    raise ServerError(f"the shards are of different models ({shown}); serve the shards of one model")
