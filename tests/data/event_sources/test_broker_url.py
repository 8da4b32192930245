"""URLs of brokers."""

from __future__ import annotations

import pytest

from pathdex.data.event_sources.broker_url import parse_url, without_password
from pathdex.errors import ConfigError

EXAMPLE = "redis://host?stream=events"


def test_options_are_taken_out_and_the_password_is_not_shown() -> None:
    url = parse_url("redis://me:secret@host:1/2?stream=a%26b&db=3&group=g", EXAMPLE, ("stream", "group"), ("stream",))
    assert url.server == "redis://me:secret@host:1/2?db=3"
    assert (url.shown, url.host, url.path) == ("redis://***@host:1/2", "host:1", "/2")
    assert (dict(url.options), dict(url.others)) == ({"stream": "a&b", "group": "g"}, {"db": "3"})


def test_missing_and_empty_options() -> None:
    with pytest.raises(
        ConfigError, match=r"place='redis://h': needs stream= in its parameters; did you mean 'steam'\?"
    ):
        parse_url("redis://h?steam=a", EXAMPLE, ("stream",), ("stream",))
    with pytest.raises(ConfigError, match=r"the parameter group is empty; write it as redis://host\?stream=events"):
        parse_url("redis://h?stream=a&group=", EXAMPLE, ("stream", "group"), ("stream",))


def test_a_place_is_shown_without_its_password() -> None:
    assert without_password("redis://ada:secret@host:6379/0?stream=events") == "redis://host:6379/0?stream=events"
    assert without_password("folder/events@home.jsonl") == "folder/events@home.jsonl"
