"""Streams of events: files, standard input, Redis Streams, NATS JetStream and Kafka behind one protocol."""

from pathdex.data.event_sources.base import EventDecoder, EventSource
from pathdex.data.event_sources.dead_letters import DeadLetter, DeadLetters
from pathdex.data.event_sources.opening import open_source
from pathdex.data.events import Event, EventBatch, EventParser, Malformed, Position, StreamRecord
from pathdex.data.item_changes import AddItem, RemoveItem

__all__ = [
    "AddItem",
    "DeadLetter",
    "DeadLetters",
    "Event",
    "EventBatch",
    "EventDecoder",
    "EventParser",
    "EventSource",
    "Malformed",
    "Position",
    "RemoveItem",
    "StreamRecord",
    "open_source",
]
