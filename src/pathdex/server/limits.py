"""How much one request may ask for, and how much the server holds at a time."""

from __future__ import annotations

from dataclasses import dataclass

from pathdex.parameters import check_fields, parameter


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Bounds of a request and of a worker process. What is over them is refused, never cut."""

    max_bytes: int = parameter(1 << 20, "bytes of a request's body", low=64)
    max_history: int = parameter(1000, "items of a history, sent or kept in the user store", low=1)
    max_n: int = parameter(1000, "items of one answer", low=1)
    max_beam: int = parameter(10_000, "paths that one query follows", low=1)
    max_candidates: int = parameter(100_000, "candidates of one query", low=1)
    max_filter: int = parameter(20_000, "ids in one allow or deny list", low=1)
    max_results: int = parameter(20_000, "items of all answers to one request", low=1)
    max_batch: int = parameter(256, "queries or events of one request", low=1)
    max_id_length: int = parameter(256, "characters of an id", low=1)
    max_explained: int = parameter(100, "explanations of one request", low=1)

    queue: int = parameter(512, "requests that a worker holds at a time; more get status 429", low=1)
    connections: int = parameter(8192, "connections that a worker holds at a time; more are turned away", low=1)
    threads: int = parameter(4, "threads of a worker for work that would hold up the others", low=1, high=256)

    timeout: float = parameter(10.0, "seconds for one answer; then status 504", above=0.0)
    read_timeout: float = parameter(
        10.0, "seconds in which a client must send a request and take its answer", above=0.0
    )
    keep_alive: float = parameter(30.0, "seconds that an idle connection stays open", above=0.0)
    drain: float = parameter(0.0, "seconds between the signal to stop and the last new connection", low=0.0)
    grace: float = parameter(30.0, "seconds in which requests in flight may end before a stop", above=0.0)

    def __post_init__(self) -> None:
        check_fields(self)
