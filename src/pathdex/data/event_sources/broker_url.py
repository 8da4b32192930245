"""The URL of a broker: where it is, and options as parameters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from pathdex.errors import ConfigError, Problem, did_you_mean


@dataclass(frozen=True)
class BrokerUrl:
    """A parsed URL."""

    server: str
    """The URL without the options."""
    shown: str
    """The URL in messages: without the password and the options."""
    host: str
    """`host:port`, or `host:port,host:port`."""
    path: str
    options: Mapping[str, str]
    others: Mapping[str, str]
    """Parameters that the client of the broker takes."""


def without_password(place: str) -> str:
    """A place as it may be shown and stored: a URL without its user and password."""
    if "://" not in place:
        return place
    parts = urlsplit(place)
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit((parts.scheme, host, parts.path, parts.query, ""))


def parse_url(place: str, example: str, known: tuple[str, ...], required: tuple[str, ...] = ()) -> BrokerUrl:
    """Split a URL into the options that are `known` and what belongs to the client of the broker.

    Raises `ConfigError` for a required option that is missing and for an empty one.
    """
    parts = urlsplit(place)
    pairs = parse_qsl(parts.query, keep_blank_values=True)
    options = {key: value for key, value in pairs if key in known}
    others = {key: value for key, value in pairs if key not in known}
    host = parts.netloc.rpartition("@")[2]
    shown = urlunsplit((parts.scheme, f"***@{host}" if "@" in parts.netloc else host, parts.path, "", ""))
    problems = []
    for name in required:
        if not options.get(name):
            close = did_you_mean(name, others)
            problems.append(
                Problem(f"needs {name}= in its parameters{close}", "place", shown, f"write it as {example}")
            )
    problems += [
        Problem(f"the parameter {name} is empty", "place", shown, f"write it as {example}")
        for name, value in options.items()
        if not value and name not in required
    ]
    if problems:
        raise ConfigError(problems)
    server = urlunsplit((parts.scheme, parts.netloc, parts.path, urlencode(others), ""))
    return BrokerUrl(server, shown, host, parts.path, options, others)
