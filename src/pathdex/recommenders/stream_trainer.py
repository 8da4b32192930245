"""Training on an event source: batches in, checkpoints and published models out."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from pathdex.data.event_sources.base import EventSource
from pathdex.data.events import Event, Position
from pathdex.index.checks import check_number
from pathdex.recommenders.deep_retrieval import DeepRetrieval
from pathdex.recommenders.online import OnlineLearning
from pathdex.recommenders.prequential import PrequentialRecall

if TYPE_CHECKING:
    from pathdex.training.stream.options import StreamOptions
    from pathdex.training.stream.state import StreamStep

POLL_SECONDS = 0.2
"""The longest wait for events before the trainer looks whether it has to stop."""


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
    lost: int


class StreamCallback(Protocol):
    """Called by a `StreamTrainer`. Exceptions stop the stream."""

    def on_step_end(self, progress: StreamProgress) -> None:
        """After each batch."""

    def on_publish(self, model: DeepRetrieval) -> None:
        """After a model is published."""


class StreamKeeper(Protocol):
    """Keeps what a stream must not lose."""

    def restore(self, online: OnlineLearning) -> bool:
        """Return to the last checkpoint; False if there is none."""

    def checkpoint(self, online: OnlineLearning) -> None:
        """Make the state durable, position included."""

    def publish(self, model: DeepRetrieval) -> None:
        """Make a model available to servers."""

    @property
    def histories(self) -> Path | None:
        """A file for histories that outgrow memory."""


class StreamTrainer:
    """Reads events, learns from each once, and keeps a published model up to date.

    Batches have `batch_events` events; only where a source has no more for `batch_seconds` they are smaller. So a file
    is always cut into the same batches, and training on it can be repeated to the bit, whatever interrupted it.
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
        publish_seconds: float = 1.0,
        checkpoint_seconds: float = 10.0,
    ) -> None:
        """`model` is the one to continue from, or an unfitted one whose parameters are used; it is changed in place."""
        self.source, self.model = source, DeepRetrieval() if model is None else model
        self.online = self.model.begin_stream(options, None if keeper is None else keeper.histories)
        self.keeper, self.callbacks = keeper, callbacks
        self.prequential = PrequentialRecall() if prequential is None else prequential
        self.batch_seconds, self.publish_seconds = batch_seconds, publish_seconds
        self.checkpoint_seconds = checkpoint_seconds
        for name in ("batch_seconds", "publish_seconds", "checkpoint_seconds"):
            check_number(name, getattr(self, name), low=0.0)
        self.malformed = self.lost = 0
        self._stopping = self._ended = False
        self._rate = _Rate()

    def stop(self) -> None:
        """Finish the current step, then checkpoint, publish and return from `run`. May be called from anywhere."""
        self._stopping = True

    def run(self, max_events: int | None = None) -> DeepRetrieval:
        """Learn until the source ends, `stop` is called or `max_events` are read; returns the model."""
        if self.keeper is not None and self.keeper.restore(self.online):
            self._publish()
        self.source.seek(self.online.state.position)
        published = saved = time.monotonic()
        unpublished = unsaved = False
        while not (self._stopping or self._ended) and (
            max_events is None or self.online.state.counters.events < max_events
        ):
            events, position = self._next_batch(max_events)
            if events or position != self.online.state.position:
                self._learn(events, position)
                unpublished = unsaved = True
            # Also while nothing arrives: the last events must not wait for the next ones.
            now = time.monotonic()
            if unsaved and now - saved >= self.checkpoint_seconds:
                self._checkpoint()
                saved, unsaved = time.monotonic(), False
            if unpublished and now - published >= self.publish_seconds:
                self._publish()
                published, unpublished = time.monotonic(), False
        if unsaved:
            self._checkpoint()
        if unpublished:
            self._publish()
        return self.model

    def _next_batch(self, max_events: int | None) -> tuple[list[Event], Position | None]:
        """The next events and the position after them.

        They are fewer than a full batch at the end of the source, or if no more come for a while.
        """
        state = self.online.state
        wanted = state.options.batch_events
        if max_events is not None:
            wanted = min(wanted, max_events - state.counters.events)
        events: list[Event] = []
        position = state.position
        deadline = time.monotonic() + self.batch_seconds
        while len(events) < wanted and not self._stopping:
            found = self.source.read(wanted - len(events), min(POLL_SECONDS, self.batch_seconds))
            if found is None:
                self._ended = True
                break
            events += found.events
            position = found.position
            self.malformed, self.lost = self.malformed + found.malformed, self.lost + found.lost
            if not found.events and time.monotonic() >= deadline:
                break
        return events, position

    def _learn(self, events: list[Event], position: Position | None) -> None:
        state = self.online.state
        if events and self.model.is_fitted:
            self.prequential.predict(self.model, state, events)
        step = state.apply(events, position)
        self._rate.add(len(events))
        progress = self._progress(step)
        for callback in self.callbacks:
            callback.on_step_end(progress)

    def _progress(self, step: StreamStep) -> StreamProgress:
        state = self.online.state
        return StreamProgress(
            state.counters.events,
            self._rate.per_second(),
            self.source.lag(),
            self.prequential.recent,
            len(state.catalogue),
            len(state.learner.sizes),
            state.events_to_m_step,
            dict(step.losses),
            None if step.m_step is None else dict(step.m_step),
            self.malformed,
            self.lost,
        )

    def _checkpoint(self) -> None:
        if self.keeper is not None:
            self.keeper.checkpoint(self.online)
        if self.online.state.position is not None:
            self.source.acknowledge(self.online.state.position)

    def _publish(self) -> None:
        if not len(self.online.state.catalogue):
            return
        self.model.take_snapshot(self.online)
        if self.keeper is not None:
            self.keeper.publish(self.model)
        for callback in self.callbacks:
            callback.on_publish(self.model)


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
        elapsed = self._times[-1][0] - self._times[0][0]
        return sum(events for _, events in self._times[1:]) / elapsed if elapsed > 0 else 0.0
