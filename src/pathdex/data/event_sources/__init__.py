"""Streams of events: files, standard input, Redis Streams, NATS JetStream and Kafka behind one protocol."""

from pathdex.data.event_sources.base import EventDecoder, EventSource
from pathdex.data.event_sources.dead_letters import DeadLetter, DeadLetters
from pathdex.data.event_sources.opening import open_source
from pathdex.data.events import Event, EventBatch, EventParser, Malformed, Position

__all__ = [
    "DeadLetter",
    "DeadLetters",
    "Event",
    "EventBatch",
    "EventDecoder",
    "EventParser",
    "EventSource",
    "Malformed",
    "Position",
    "open_source",
]
