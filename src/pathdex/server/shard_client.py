"""Calls from a router to its shards: time-outs, retries on other replicas, hedged requests.

Every place (shard k of N) has one replica or more. A call goes to one of them. If it fails, the next one is tried; if
it takes longer than most, a second one is asked as well, and the first answer counts.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from pathdex.errors import Problem
from pathdex.server.errors import SERVER, RequestError, error_of, unavailable
from pathdex.server.kept_shards import GONE, MISPLACED
from pathdex.server.limits import RouterLimits
from pathdex.server.parsing import make_decoder
from pathdex.server.route import Route
from pathdex.server.schemas import ErrorResponse
from pathdex.server.shard_messages import ShardCall

if TYPE_CHECKING:
    import aiohttp

    from pathdex.server.metrics import ServerMetrics

AnswerT = TypeVar("AnswerT")
CallT = TypeVar("CallT", bound=ShardCall)

PAUSE = 0.02
"""Seconds before a failed call is repeated."""
IDLE_SECONDS = 15.0
"""How long an idle connection is kept: less than a shard does, so that it is not closed while it is used."""
_ERRORS = make_decoder(ErrorResponse)
_encode = msgspec.json.Encoder().encode


class ShardDownError(Exception):
    """No replica of a shard answered."""

    def __init__(self, index: int, count: int, reason: str) -> None:
        super().__init__(f"shard {index + 1} of {count} does not answer ({reason})")
        self.index = index


class VersionGoneError(Exception):
    """A shard does not have the version of the model that a call is about."""


class NotYetError(RequestError):
    """A server does not answer, but may do so soon."""

    def __init__(self, reason: str, *, is_reached: bool) -> None:
        """`is_reached` says whether something listens there, such as a server that loads its model."""
        error = unavailable(reason, "check the URL and that the shard is running")
        super().__init__(error.status, error.problem, type=error.type, headers=error.headers)
        self.is_reached = is_reached


class _AttemptError(Exception):
    """One call failed, and another replica may do better."""

    def __init__(self, reason: str, *, may_pass: bool = False, is_reached: bool = True) -> None:
        """`may_pass` says whether the same server may answer soon."""
        super().__init__(reason)
        self.may_pass, self.is_reached = may_pass, is_reached


@dataclass
class Replica:
    """One server of a shard."""

    url: str
    is_up: bool = True
    """Whether its last call succeeded."""


@dataclass
class ShardPlace:
    """All replicas of shard `index` of `count`."""

    index: int
    count: int
    replicas: list[Replica] = field(default_factory=list)

    @property
    def is_up(self) -> bool:
        return any(replica.is_up for replica in self.replicas)

    def call(self, request: CallT) -> CallT:
        """The request as one for this shard."""
        return msgspec.structs.replace(request, index=self.index, count=self.count)

    def order(self, turn: int) -> list[Replica]:
        """The replicas in the order in which to ask them; turns begin with different ones, and those that are down
        come last."""
        first = turn % len(self.replicas)
        turned = self.replicas[first:] + self.replicas[:first]
        return sorted(turned, key=lambda replica: not replica.is_up)


class ShardClient:
    """HTTP connections to shards. Used in one event loop."""

    def __init__(self, limits: RouterLimits, token: str | None, metrics: ServerMetrics | None = None) -> None:
        self.limits, self._metrics = limits, metrics
        self._headers = {"Content-Type": "application/json"}
        if token is not None:
            self._headers["Authorization"] = f"Bearer {token}"
        self._session: aiohttp.ClientSession | None = None

    def open(self) -> None:
        """Must be called in the event loop."""
        import aiohttp

        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=IDLE_SECONDS),
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=self.limits.shard_timeout),
            auto_decompress=False,
            headers=self._headers,
        )

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()

    async def ask(
        self,
        place: ShardPlace,
        route: Route[Any, AnswerT],
        request: ShardCall,
        *,
        turn: int = 0,
        timeout: float | None = None,
    ) -> AnswerT:
        """The answer of one shard. Raises `ShardDownError`, `VersionGoneError`, or what the shard reports.

        A server that holds another shard, or another split of the model, does not count as this shard.
        """
        body, started = _encode(place.call(request)), time.perf_counter_ns()
        order = itertools.cycle(place.order(turn))
        self._count("requests", place)
        try:
            return await self._race(place, lambda: self._attempt(next(order), route, body, timeout))
        except _AttemptError as error:
            self._count("failures", place)
            raise ShardDownError(place.index, place.count, str(error)) from error
        finally:
            if self._metrics is not None:
                self._metrics.observe_shard(place.index, time.perf_counter_ns() - started)

    async def ask_url(self, url: str, route: Route[Any, AnswerT], request: Any = None) -> AnswerT:
        """The answer of one server, asked once; `ShardDownError` is not raised, but `RequestError`, or `NotYetError` if
        it may answer soon."""
        body = None if route.request is None else _encode(request)
        try:
            return await self._attempt(Replica(url), route, body, None)
        except _AttemptError as error:
            if error.may_pass:
                raise NotYetError(str(error), is_reached=error.is_reached) from None
            raise unavailable(str(error), "check the URL and that the shard is running") from None

    async def _race(self, place: ShardPlace, start: Callable[[], Awaitable[AnswerT]]) -> AnswerT:
        """The first success of calls that start one after the other, when one failed or takes long."""
        running: set[asyncio.Task[AnswerT]] = set()
        left, hedged, failure = self.limits.shard_retries, False, _AttemptError("no attempt")
        hedge = self.limits.hedge_after or None
        try:
            running.add(asyncio.ensure_future(start()))
            while True:
                wait = hedge if not hedged and left else None
                done, running = await asyncio.wait(running, timeout=wait, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    error = task.exception()
                    if error is None:
                        return task.result()
                    if not isinstance(error, _AttemptError):
                        raise error
                    failure = error
                if not done:
                    hedged, left = True, left - 1
                    self._count("hedges", place)
                    running.add(asyncio.ensure_future(start()))
                elif not running:
                    if not left:
                        raise failure
                    left -= 1
                    self._count("retries", place)
                    await asyncio.sleep(PAUSE)
                    running.add(asyncio.ensure_future(start()))
        finally:
            for task in running:
                task.cancel()

    async def _attempt(
        self, replica: Replica, route: Route[Any, AnswerT], body: bytes | None, timeout: float | None
    ) -> AnswerT:
        import aiohttp

        assert self._session is not None
        seconds = self.limits.shard_timeout if timeout is None else timeout
        try:
            async with self._session.request(
                route.method,
                replica.url + route.path,
                data=body,
                allow_redirects=False,
                timeout=aiohttp.ClientTimeout(total=seconds, sock_connect=seconds / 2),
            ) as response:
                status, content = response.status, await response.read()
        except aiohttp.ConnectionTimeoutError:
            replica.is_up = False
            reason = f"{replica.url}: no connection within {seconds / 2:g} s"
            raise _AttemptError(reason, may_pass=True, is_reached=False) from None
        except asyncio.TimeoutError:
            # Several workers of one server accept connections only when they have loaded the model.
            replica.is_up = False
            raise _AttemptError(f"{replica.url}: no response within {seconds:g} s", may_pass=True) from None
        except (aiohttp.ClientError, OSError) as error:
            replica.is_up = False
            raise _AttemptError(f"{replica.url}: {_reason(error)}", may_pass=True, is_reached=False) from None
        if status == 200:
            try:
                answer = route.parse_response(content)
            except ValueError:
                raise _AttemptError(f"{replica.url}: not the answer of a shard; is it one?") from None
            replica.is_up = True
            return answer
        raise self._refusal(replica, status, content)

    def _refusal(self, replica: Replica, status: int, content: bytes) -> Exception:
        if status == GONE:
            return VersionGoneError()
        try:
            detail = _ERRORS.decode(content).error
        except ValueError:
            replica.is_up = False
            reason = f"{replica.url}: status {status} without an error; is it a shard?"
            return _AttemptError(reason, may_pass=status in (502, 503, 504), is_reached=False)
        if status in (MISPLACED, 429, 500, 503, 504):
            replica.is_up = status == 429
            return _AttemptError(f"{replica.url}: {detail.message}", may_pass=status in (429, 503, 504))
        if status in (401, 404):
            # The clients of the router are not to blame.
            return _AttemptError(f"{replica.url}: {detail.message}")
        return error_of(detail, status)

    def _count(self, name: str, place: ShardPlace) -> None:
        if self._metrics is not None:
            self._metrics.add_shard(name, place.index)


class AskedShards:
    """All shards, for the calls of one request. A shard that is down is left out from then on, if that is allowed."""

    def __init__(self, client: ShardClient, places: Sequence[ShardPlace], *, partial: bool, turn: int = 0) -> None:
        """All calls of a request begin with the same replicas, those of its `turn`."""
        self.client, self.places, self.partial, self.turn = client, places, partial, turn
        self.missing: set[int] = set()

    async def ask(
        self, route: Route[Any, AnswerT], requests: Mapping[int, Any], *, partial: bool | None = None
    ) -> dict[int, AnswerT]:
        """The answers by the index of the shard, without those of missing ones; status 503 if one is missing and must
        not be."""
        wanted = [place for place in self.places if place.index in requests and place.index not in self.missing]
        allowed = self.partial if partial is None else partial
        if not allowed and self.missing & requests.keys():
            raise down(f"shard {min(self.missing) + 1} of {len(self.places)} does not answer")
        calls = (self.client.ask(place, route, requests[place.index], turn=self.turn) for place in wanted)
        found: dict[int, AnswerT] = {}
        errors: list[BaseException] = []
        for place, answer in zip(wanted, await asyncio.gather(*calls, return_exceptions=True), strict=True):
            if isinstance(answer, ShardDownError) and allowed:
                self.missing.add(place.index)
            elif isinstance(answer, BaseException):
                errors.append(answer)
            else:
                found[place.index] = answer
        # What the client did wrong says more than what is down.
        for error in sorted(errors, key=lambda one: not isinstance(one, RequestError)):
            raise down(str(error)) if isinstance(error, ShardDownError) else error
        if len(self.missing) == len(self.places):
            raise down("no shard answers")
        return found

    async def ask_all(
        self, route: Route[Any, AnswerT], request: Any, *, partial: bool | None = None
    ) -> dict[int, AnswerT]:
        """The same request to all."""
        return await self.ask(route, {place.index: request for place in self.places}, partial=partial)


def down(reason: str) -> RequestError:
    """The error of a query that needs a shard that is down."""
    return unavailable(reason, "try again, or start the router with --partial for answers without it")


def _reason(error: Exception) -> str:
    cause = getattr(error, "os_error", error)
    return getattr(cause, "strerror", None) or str(error) or type(error).__name__


def not_shards(rule: str, remedy: str | None = None) -> RequestError:
    """The URLs are not those of all shards of one model."""
    return RequestError(503, Problem(rule, "shards", remedy=remedy), type=SERVER)
