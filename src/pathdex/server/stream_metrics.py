"""Prometheus metrics of a stream, on a port of their own."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from pathdex.errors import ConfigError, Problem, StorageError
from pathdex.recommenders.deep_retrieval import DeepRetrieval
from pathdex.recommenders.stream_trainer import StreamProgress

_FIGURES = {
    "events": ("pathdex_stream_events_total", "counter", "Events read since the stream began."),
    "malformed": ("pathdex_stream_malformed_events_total", "counter", "Malformed events since the stream began."),
    "lost": ("pathdex_stream_lost_events_total", "counter", "Events that the broker dropped before they were read."),
    "item_changes": ("pathdex_stream_item_changes_total", "counter", "Records that added or removed an item."),
    "blocked": ("pathdex_stream_blocked_events_total", "counter", "Events of removed items, which are ignored."),
    "events_per_second": ("pathdex_stream_events_per_second", "gauge", "Events per second, over the last seconds."),
    "lag": ("pathdex_stream_lag_events", "gauge", "Events that wait in the source."),
    "recall": ("pathdex_stream_prequential_recall", "gauge", "Recall of recent events before they are learned from."),
    "items": ("pathdex_stream_items", "gauge", "Items in the catalogue."),
    "used_paths": ("pathdex_stream_used_paths", "gauge", "Paths that hold an item."),
    "events_to_m_step": ("pathdex_stream_events_to_m_step", "gauge", "Events until the next full M-step."),
}


class StreamMetrics:
    """Serves /metrics from a thread. A figure that is not known yet is left out."""

    def __init__(self, port: int, host: str = "127.0.0.1") -> None:
        self._progress: StreamProgress | None = None
        self._published = self._failures = 0
        metrics = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                found = self.path == "/metrics"
                body = metrics.render() if found else b"see /metrics\n"
                self.send_response(200 if found else 404)
                self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                """Scrapes are not logged."""

        try:
            self._server = ThreadingHTTPServer((host, port), Handler)
        except (OSError, OverflowError) as error:
            reason = (error.strerror or str(error)) if isinstance(error, OSError) else "a port is at most 65535"
            remedy = "choose another port, or 0 for any free one"
            raise ConfigError([Problem(f"cannot be used: {reason}", "metrics_port", port, remedy)]) from error
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    def on_step_end(self, progress: StreamProgress) -> None:
        self._progress = progress

    def on_idle(self, progress: StreamProgress) -> None:
        self._progress = progress

    def on_publish(self, model: DeepRetrieval) -> None:
        self._published += 1

    def on_write_failure(self, error: StorageError) -> None:
        self._failures += 1

    def render(self) -> bytes:
        """The text that Prometheus reads."""
        figures = [
            (*_FIGURES[name], getattr(self._progress, name))
            for name in _FIGURES
            if getattr(self._progress, name, None) is not None
        ]
        figures += [
            ("pathdex_stream_published_total", "counter", "Models published by this process.", self._published),
            (
                "pathdex_stream_write_failures_total",
                "counter",
                "Checkpoints and publishes that failed and are tried again.",
                self._failures,
            ),
        ]
        lines = [f"# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}\n" for name, kind, help, value in figures]
        return "".join(lines).encode()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
