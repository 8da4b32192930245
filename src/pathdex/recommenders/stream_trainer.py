"""Training on an event source: batches in, checkpoints and published models out."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from pathdex.data.event_sources.base import EventSource
from pathdex.data.events import EventBatch, Position, StreamRecord
from pathdex.errors import IndexHealthWarning, StorageError
from pathdex.index.checks import check_number
from pathdex.recommenders.deep_retrieval import DeepRetrieval
from pathdex.recommenders.live_publisher import LivePublisher
from pathdex.recommenders.online import OnlineLearning
from pathdex.recommenders.prequential import PrequentialRecall
from pathdex.recommenders.stream_publisher import StreamPublisher

if TYPE_CHECKING:
    from pathdex.training.stream.options import StreamOptions
    from pathdex.training.stream.state import StreamStep

POLL_SECONDS = 0.2
"""The longest wait for events before the trainer looks whether it has to stop."""
PAUSE_SECONDS = 0.05
"""Between two reads of a source that had no more: a read of a broker costs about as much for one event as for fifty."""
GIVE_UP_SECONDS = 600.0
"""How long to go on learning while nothing can be written, as on a full disk."""


@dataclass(frozen=True)
class StreamProgress:
    """The state of a stream after a step."""

    events: int
    """Events since the stream began."""
    events_per_second: float
    lag: int | None
    """Events that wait in the source."""
    recall: float | None
    """Prequential recall of the last events."""
    items: int
    used_paths: int
    events_to_m_step: int
    losses: dict[str, float]
    m_step: dict[str, Any] | None
    malformed: int
    """Malformed records since the stream began."""
    lost: int
    """Events that the broker dropped before they were read, since the stream began."""
    item_changes: int = 0
    """Records that add or remove an item, since the stream began."""
    blocked: int = 0
    """Events of removed items, since the stream began."""


class StreamCallback(Protocol):
    """Called by a `StreamTrainer`. Exceptions stop the stream."""

    def on_step_end(self, progress: StreamProgress) -> None:
        """After each batch."""

    def on_idle(self, progress: StreamProgress) -> None:
        """After each wait in which nothing arrived."""

    def on_publish(self, model: DeepRetrieval) -> None:
        """After a model is published. It changes with the next publish."""

    def on_write_failure(self, error: StorageError) -> None:
        """After a checkpoint or a publish failed. It is tried again, and nothing is lost meanwhile."""


class StreamKeeper(Protocol):
    """Keeps what a stream must not lose."""

    def restore(self, online: OnlineLearning) -> bool:
        """Return to the last checkpoint; False if there is none."""

    def checkpoint(self, online: OnlineLearning) -> None:
        """Make the state durable, position included."""

    @property
    def live(self) -> LivePublisher | None:
        """Where servers find the model."""

    @property
    def histories(self) -> Path | None:
        """A file for histories that outgrow memory."""


class StreamTrainer:
    """Reads events, learns from each once, and keeps a published model up to date.

    Batches have `batch_events` events. A source without an end that has no more after `batch_seconds` gives smaller
    ones, so no event waits longer. A file that ends is always cut into the same batches, and training on it can be
    repeated to the bit, whatever interrupted it.
    """

    def __init__(
        self,
        source: EventSource,
        model: DeepRetrieval | None = None,
        *,
        options: StreamOptions | None = None,
        keeper: StreamKeeper | None = None,
        callbacks: Sequence[StreamCallback] = (),
        prequential: PrequentialRecall | None = None,
        batch_seconds: float = 0.2,
        publish_seconds: float = 0.5,
        checkpoint_seconds: float = 10.0,
    ) -> None:
        """`model` is the one to continue from, or an unfitted one whose parameters are used; it is changed in place."""
        self.source, self.model = source, DeepRetrieval() if model is None else model
        self.online = self.model.begin_stream(options, None if keeper is None else keeper.histories)
        records = self.model.model_state.records if self.model.is_fitted else []
        live = None if keeper is None else keeper.live
        self.publisher = StreamPublisher(self.online, live, records, self.model.details)
        self.keeper, self.callbacks = keeper, callbacks
        self.prequential = PrequentialRecall() if prequential is None else prequential
        self.batch_seconds, self.publish_seconds = batch_seconds, publish_seconds
        self.checkpoint_seconds = checkpoint_seconds
        for name in ("batch_seconds", "publish_seconds", "checkpoint_seconds"):
            check_number(name, getattr(self, name), low=0.0)
        self._stopping = self._ended = self._outgrown = False
        self._failing_since: dict[str, float] = {}
        self._rate = _Rate()

    def stop(self) -> None:
        """Finish the current step, then checkpoint, publish and return from `run`. May be called from anywhere."""
        self._stopping = True

    def run(self, max_events: int | None = None) -> DeepRetrieval:
        """Learn until the source ends, `stop` is called or `max_events` are read; returns the model.

        If nothing can be written, such as on a full disk, learning goes on for ten minutes and writing is tried again.
        """
        if self.keeper is not None:
            if self.keeper.restore(self.online):
                self._publish()
            else:
                # Before anything is published: a model without a checkpoint has lost it.
                self._checkpoint()
        self.source.seek(self.online.state.position)
        published = saved = time.monotonic()
        unpublished = unsaved = False
        while not (self._stopping or self._ended) and (
            max_events is None or self.online.state.counters.events < max_events
        ):
            batch = self._next_batch(max_events)
            if batch.events or batch.position != self.online.state.position:
                self._learn(batch)
                unpublished = unsaved = True
            elif not (self._stopping or self._ended):
                self._report_idle()
            # Also while nothing arrives: the last events must not wait for the next ones.
            now = time.monotonic()
            if unsaved and now - saved >= self.checkpoint_seconds:
                unsaved = not self._succeeds(self._checkpoint)
                saved = time.monotonic()
            if unpublished and now - published >= self.publish_seconds:
                unpublished = not self._succeeds(self._publish)
                published = time.monotonic()
        if unsaved:
            self._checkpoint()
        # Even if the last events were published: the neighbours of the end may not have been.
        self._publish(final=True)
        if len(self.online.state.catalogue):
            self.model.take_snapshot(self.online)
        return self.model

    def _succeeds(self, write: Callable[[], None]) -> bool:
        """Write; a failure is reported, and raised only if the same write has failed for a long time."""
        try:
            write()
        except StorageError as error:
            since = self._failing_since.setdefault(write.__name__, time.monotonic())
            if time.monotonic() - since > GIVE_UP_SECONDS:
                raise
            for callback in self.callbacks:
                callback.on_write_failure(error)
            return False
        self._failing_since.pop(write.__name__, None)
        return True

    def _next_batch(self, max_events: int | None) -> _Batch:
        """The next events, and the position after them.

        They are fewer than a full batch at the end of the source, or if it has no more when the time is over.
        """
        state = self.online.state
        wanted = state.options.batch_events
        if max_events is not None:
            wanted = min(wanted, max_events - state.counters.events)
        batch = _Batch(state.position)
        deadline = time.monotonic() + self.batch_seconds
        while len(batch.events) < wanted and not self._stopping:
            remaining = deadline - time.monotonic()
            found = self.source.read(wanted - len(batch.events), max(0.0, min(POLL_SECONDS, remaining)))
            if found is None:
                self._ended = True
                break
            batch.add(found)
            if found.drained or not (found.events or found.malformed or found.lost):
                remaining = deadline - time.monotonic()
                if remaining <= 0:
                    break
                if found.events:
                    time.sleep(min(PAUSE_SECONDS, remaining))
        return batch

    def _learn(self, batch: _Batch) -> None:
        state = self.online.state
        if batch.events and self.publisher.model is not None:
            self.prequential.predict(self.publisher.model, state, batch.events)
        step = state.apply(batch.events, batch.position, malformed=batch.malformed, lost=batch.lost)
        self._rate.add(len(batch.events))
        if step.m_step is not None:
            self._warn_if_outgrown()
        progress = self._progress(step)
        for callback in self.callbacks:
            callback.on_step_end(progress)

    def _report_idle(self) -> None:
        progress = self._progress(None)
        for callback in self.callbacks:
            callback.on_idle(progress)

    def _warn_if_outgrown(self) -> None:
        from pathdex.training.health_checks import outgrown_warning

        text = outgrown_warning(len(self.online.state.catalogue), self.online.state.config)
        if text is not None and not self._outgrown:
            self._outgrown = True
            warnings.warn(text, IndexHealthWarning, stacklevel=2)

    def _progress(self, step: StreamStep | None) -> StreamProgress:
        state = self.online.state
        return StreamProgress(
            state.counters.events,
            self._rate.per_second(),
            self.source.lag(),
            self.prequential.recent,
            len(state.catalogue),
            len(state.learner.sizes),
            state.events_to_m_step,
            {} if step is None else dict(step.losses),
            None if step is None or step.m_step is None else dict(step.m_step),
            state.counters.malformed,
            state.counters.lost,
            state.counters.item_changes,
            state.counters.blocked,
        )

    def _checkpoint(self) -> None:
        if self.keeper is not None:
            self.keeper.checkpoint(self.online)
        if self.online.state.position is not None:
            self.source.acknowledge(self.online.state.position)

    def _publish(self, *, final: bool = False) -> None:
        model = self.publisher.publish(final=final)
        if model is not None:
            for callback in self.callbacks:
                callback.on_publish(model)


@dataclass
class _Batch:
    """What was read for one step."""

    position: Position | None
    events: list[StreamRecord] = field(default_factory=list)
    malformed: int = 0
    lost: int = 0

    def add(self, found: EventBatch) -> None:
        self.events += found.events
        self.position = found.position
        self.malformed, self.lost = self.malformed + found.malformed, self.lost + found.lost


class _Rate:
    """Events per second over the last seconds."""

    SECONDS = 5.0

    def __init__(self) -> None:
        self._times: list[tuple[float, int]] = [(time.monotonic(), 0)]

    def add(self, events: int) -> None:
        now = time.monotonic()
        self._times.append((now, events))
        while len(self._times) > 2 and now - self._times[0][0] > self.SECONDS:
            self._times.pop(0)

    def per_second(self) -> float:
        now = time.monotonic()
        elapsed = now - self._times[0][0]
        recent = sum(events for moment, events in self._times[1:] if now - moment <= self.SECONDS)
        return recent / elapsed if elapsed > 0 else 0.0
