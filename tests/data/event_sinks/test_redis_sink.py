"""Redis, against a real server that is restarted."""

from __future__ import annotations

import pytest
import redis

from pathdex.data.event_sinks.redis_sink import RedisSink
from pathdex.data.events import Event
from pathdex.errors import ConfigError, MissingExtraError, ServerError
from tests.data.event_sinks.conftest import read_back
from tests.data.event_sources.conftest import Broker, free_port


def test_it_connects_again(redis_broker: Broker) -> None:
    place = f"{redis_broker.address}?stream=restart"
    sink = RedisSink(place)
    sink.append([Event(1, 1)])
    redis_broker.kill()
    with pytest.raises(ServerError, match="check that Redis is running and reachable"):
        sink.append([Event(1, 2)])
    redis_broker.start()
    sink.append([Event(1, 3)])
    sink.close()
    assert read_back(place, 2) == [Event(1, 1), Event(1, 3)]


def test_the_stream_can_be_bounded(redis_broker: Broker) -> None:
    sink = RedisSink(f"{redis_broker.address}?stream=bounded&maxlen=100")
    sink.append([Event(1, number) for number in range(1000)])
    sink.close()
    with redis.Redis.from_url(redis_broker.address) as client:
        assert 100 <= client.xlen("bounded") < 400


@pytest.mark.parametrize(
    ("place", "why"),
    [
        ("redis://host", "needs stream= in its parameters"),
        ("redis://host?stream=a&maxlen=0", "maxlen=0 must be a whole number above 0"),
        ("redis://host?stream=a&colour=red", "is not a Redis URL"),
        ("redis://host:port?stream=a", "is not a Redis URL"),
    ],
)
def test_wrong_urls(place: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        RedisSink(place)


def test_an_unreachable_server() -> None:
    with pytest.raises(ServerError, match=r"redis://\*\*\*@127.0.0.1:\d+: .*check that Redis is running and reachable"):
        RedisSink(f"redis://:secret@127.0.0.1:{free_port()}?stream=events").append([Event(1, 2)])


def test_without_the_client(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(MissingExtraError, match="redis"):
        RedisSink("redis://host?stream=events")
