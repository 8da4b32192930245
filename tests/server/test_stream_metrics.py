"""Prometheus metrics of a stream."""

import urllib.error
import urllib.request

import pytest

from pathdex.errors import ConfigError
from pathdex.recommenders.stream_trainer import StreamProgress
from pathdex.server.stream_metrics import StreamMetrics


@pytest.fixture
def metrics():
    found = StreamMetrics(0)
    yield found
    found.close()


def scrape(metrics, path="/metrics"):
    with urllib.request.urlopen(f"http://127.0.0.1:{metrics.port}{path}", timeout=10) as response:
        return response.read().decode()


def test_figures_appear_once_they_are_known(metrics):
    assert "pathdex_stream_events_total" not in scrape(metrics)
    metrics.on_step_end(StreamProgress(12, 3.5, None, 0.25, 7, 5, 100, {}, None, 1, 0, 4, 2))
    metrics.on_publish(None)
    text = scrape(metrics)
    assert "# TYPE pathdex_stream_events_total counter\npathdex_stream_events_total 12\n" in text
    assert "pathdex_stream_prequential_recall 0.25\n" in text
    assert "pathdex_stream_malformed_events_total 1\n" in text
    assert "pathdex_stream_item_changes_total 4\n" in text
    assert "pathdex_stream_blocked_events_total 2\n" in text
    assert "pathdex_stream_published_total 1\n" in text
    assert "pathdex_stream_lag_events" not in text


def test_other_pages_are_not_found(metrics):
    with pytest.raises(urllib.error.HTTPError, match="404") as failure:
        scrape(metrics, "/")
    failure.value.close()


def test_a_port_in_use_is_reported(metrics):
    with pytest.raises(ConfigError, match="metrics_port"):
        StreamMetrics(metrics.port)
