"""Limits of one request and of a worker process."""

from __future__ import annotations

from dataclasses import dataclass

from pathdex.parameters import check_fields, parameter


@dataclass(frozen=True, kw_only=True)
class ServerLimits:
    """What exceeds a limit is rejected, never truncated. Limits of load and time apply to each worker."""

    max_bytes: int = parameter(1 << 20, "bytes of a request body", low=64)
    max_history: int = parameter(1000, "items of a history, in a request or in the user store", low=1)
    max_n: int = parameter(1000, "items recommended per query", low=1)
    max_beam: int = parameter(10_000, "beam of a query", low=1)
    max_candidates: int = parameter(100_000, "candidates of a query", low=1)
    max_filter: int = parameter(20_000, "ids in an allow or deny list", low=1)
    max_results: int = parameter(20_000, "items recommended per request, over all its queries", low=1)
    max_batch: int = parameter(256, "queries, events or items per request", low=1)
    max_id_length: int = parameter(256, "characters of an id", low=1)
    max_explained: int = parameter(100, "explanations per request", low=1)

    queue: int = parameter(512, "requests in flight; further ones get status 429", low=1)
    connections: int = parameter(8192, "open connections; further ones get status 503", low=1)
    threads: int = parameter(4, "threads for batches and slow queries", low=1, high=256)

    timeout: float = parameter(10.0, "seconds to answer a request; then status 504", above=0.0)
    read_timeout: float = parameter(10.0, "seconds for a client to send a request, and to read the response", above=0.0)
    keep_alive: float = parameter(30.0, "seconds that an idle connection stays open", above=0.0)
    drain: float = parameter(0.0, "seconds to keep accepting connections after SIGTERM", low=0.0)
    grace: float = parameter(30.0, "seconds to finish requests in flight on shutdown", above=0.0)

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True, kw_only=True)
class RouterLimits:
    """How long a router waits for its shards, and what it remembers of them."""

    shard_timeout: float = parameter(2.0, "seconds for one call of a shard", above=0.0)
    shard_retries: int = parameter(2, "further calls after one that failed, on other replicas if there are any", low=0)
    hedge_after: float = parameter(0.1, "seconds until a second replica is asked as well; 0: never", low=0.0)
    known_items: int = parameter(20_000, "items of histories that a router remembers; 0: none", low=0)

    def __post_init__(self) -> None:
        check_fields(self)
