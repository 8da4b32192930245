"""Publishes to a subject of NATS JetStream and waits for its acknowledgements."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from typing import Any

from pathdex.data.event_sinks.base import CHUNK
from pathdex.data.event_sources import nats_source
from pathdex.data.event_sources.broker_url import parse_url
from pathdex.data.events import StreamRecord, encode_record
from pathdex.errors import ServerError
from pathdex.system import NATS


class NatsSink:
    """The asyncio client runs in a thread, as that of the source does."""

    def __init__(self, place: str) -> None:
        NATS.require()
        example = f"{nats_source.EXAMPLE}&subject=events"
        url = parse_url(place, example, nats_source.OPTIONS, required=("subject",))
        self.name, self._server = url.shown, url.server.partition("?")[0]
        self._subject, self._stream = url.options["subject"], url.options.get("stream")
        self._loop: asyncio.AbstractEventLoop | None = None
        self._client: Any = None

    def append(self, records: Sequence[StreamRecord]) -> None:
        from nats.errors import Error

        try:
            for start in range(0, len(records), CHUNK):
                self._run(self._publish([encode_record(one) for one in records[start : start + CHUNK]]))
        except (Error, OSError, asyncio.TimeoutError) as error:
            self.close()  # What the client still holds must not be sent later.
            reason = str(error) or "no answer"
            raise ServerError(f"{self.name}: {reason}; check that NATS is running and has the subject") from error

    def close(self) -> None:
        loop, self._loop = self._loop, None
        if loop is None:
            return
        if self._client is not None:
            with suppress(Exception):
                asyncio.run_coroutine_threadsafe(self._client.close(), loop).result(nats_source.SECONDS)
            self._client = None
        loop.call_soon_threadsafe(loop.stop)
        self._thread.join(nats_source.SECONDS)
        if not self._thread.is_alive():
            loop.close()

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            self._thread = threading.Thread(target=self._loop.run_forever, name="pathdex-nats-sink", daemon=True)
            self._thread.start()
        asyncio.run_coroutine_threadsafe(asyncio.wait_for(work, 3 * nats_source.SECONDS), self._loop).result()

    async def _publish(self, messages: list[bytes]) -> None:
        """Send all in order, then wait for the acknowledgement of each."""
        if self._client is None or not self._client.is_connected:
            await self._connect()
            # Alone: with its first request the client subscribes to answers, and others would overtake it.
            await self._jetstream.publish(self._subject, messages.pop(0), stream=self._stream)
        sent = [self._jetstream.publish(self._subject, one, stream=self._stream) for one in messages]
        for one in await asyncio.gather(*sent, return_exceptions=True):
            if isinstance(one, BaseException):
                raise one

    async def _connect(self) -> None:
        import nats

        async def ignore(_: Exception) -> None:
            """`append` raises what matters."""

        seconds = nats_source.SECONDS
        connecting = nats.connect(
            self._server, allow_reconnect=False, connect_timeout=max(1, int(seconds)), error_cb=ignore
        )
        self._client = await asyncio.wait_for(connecting, seconds)
        self._jetstream: Any = self._client.jetstream(timeout=seconds)
