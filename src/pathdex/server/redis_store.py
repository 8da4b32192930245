"""The user store in Redis: one list per user, shared by any number of machines.

Durability is a setting of the Redis server: with `appendfsync always`, acknowledged events survive power loss.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from pathdex.data.vocabulary import Id
from pathdex.errors import ConfigError, Problem, StorageError
from pathdex.system import REDIS

PREFIX = "pathdex:history:"
SECONDS = 5.0
"""Timeout of a call."""
CONNECTIONS = 16
"""Connections per worker; further calls wait."""


class RedisStore:
    """Items are stored as JSON, which keeps strings and integers apart."""

    def __init__(self, address: str, keep: int) -> None:
        REDIS.require()
        from redis.asyncio import BlockingConnectionPool, Redis
        from redis.asyncio.retry import Retry
        from redis.backoff import NoBackoff

        self.keep = keep
        try:
            pool = BlockingConnectionPool.from_url(
                address,
                max_connections=CONNECTIONS,
                timeout=SECONDS,
                socket_timeout=SECONDS,
                socket_connect_timeout=SECONDS,
                # A repeated append could be stored twice.
                retry=Retry(NoBackoff(), 0),
            )
        except ValueError as error:
            problem = Problem(f"is not a Redis URL ({error})", "user_store", address, "write it as redis://host:6379/0")
            raise ConfigError([problem]) from error
        self._redis: Any = Redis.from_pool(pool)

    async def append(self, events: Sequence[tuple[str, Sequence[Id]]]) -> None:
        pipeline = self._redis.pipeline(transaction=True)
        for user, items in events:
            if items:
                pipeline.rpush(PREFIX + user, *(json.dumps(item) for item in items))
                pipeline.ltrim(PREFIX + user, -self.keep, -1)
        await self._run(pipeline)

    async def forget(self, user: str) -> None:
        pipeline = self._redis.pipeline(transaction=True)
        pipeline.delete(PREFIX + user)
        await self._run(pipeline)

    async def histories(self, users: Sequence[str]) -> list[list[Id]]:
        pipeline = self._redis.pipeline(transaction=False)
        for user in users:
            pipeline.lrange(PREFIX + user, -self.keep, -1)
        return [[json.loads(item) for item in history] for history in await self._run(pipeline)]

    async def close(self) -> None:
        await self._redis.aclose()

    async def _run(self, pipeline: Any) -> list[Any]:
        from redis.exceptions import RedisError

        try:
            found: list[Any] = await pipeline.execute()
        except (RedisError, OSError) as error:
            raise StorageError(f"user store in Redis: {error}; check that Redis is running and reachable") from error
        return found
