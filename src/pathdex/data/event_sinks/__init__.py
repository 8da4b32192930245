"""Where records of a stream are appended: what `open_source` reads later, or at the same time."""

from pathdex.data.event_sinks.base import EventSink
from pathdex.data.event_sinks.opening import append_events, open_sink
from pathdex.data.event_sinks.writer import SinkWriter

__all__ = ["EventSink", "SinkWriter", "append_events", "open_sink"]
