"""Options of a server."""

from __future__ import annotations

import ipaddress
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from pathdex.errors import ConfigError, Problem
from pathdex.server.limits import RouterLimits, ServerLimits

TOKEN_VARIABLE = "PATHDEX_TOKEN"
LOCAL = ("localhost", "*.localhost")
"""The names that lead to the machine itself."""
_HOST = r"\*|(\*\.)?[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_])?"


@dataclass(frozen=True, kw_only=True)
class ServerOptions:
    """The model, the address, the user store, the stream, access and limits."""

    model: Path = Path()
    """A run folder, a bundle, or a link to one; watched for new versions. Not used with `shards`."""
    shards: tuple[str, ...] = ()
    """The URLs of all shards of a model, and of their replicas: the server is a router, and has no model itself."""
    partial: bool = False
    """While a shard is down, a router answers without its items, and says so."""
    router: RouterLimits = field(default_factory=RouterLimits)
    host: str = "127.0.0.1"
    port: int = 8000
    """0: any free port."""
    workers: int = 1
    catalogue: Path | None = None
    """A catalogue table for `where`; watched like the model."""
    catalogue_item: str | None = None
    """Its item column; None: found by common names."""
    catalogue_lists: Mapping[str, str | None] = field(default_factory=dict)
    """Columns with several values per cell and their separators; | and ; are found."""
    compare: Path | None = None
    """A second model, which the explorer compares with the served one."""
    explorer: bool = False
    """Prepare the explorer as soon as the model is loaded; otherwise at its first request."""
    user_store: str | None = None
    """A SQLite file or a Redis URL; None: requests contain their histories."""
    events: str | None = None
    """Where events and item changes are appended for a trainer: what `open_sink` opens; None: nowhere."""
    allowed_hosts: tuple[str, ...] = ()
    """Names that the header Host may have, such as shop.example.org or *.example.org; `*` allows any. By default, any,
    or for a server that only this machine reaches localhost. IP addresses are always allowed."""
    token: str | None = None
    """Clients must send it as `Authorization: Bearer TOKEN`; None: no authentication."""
    public_metrics: bool = False
    """Serve /metrics without a token."""
    access_log: bool = False
    """Log each request to standard error as a line of JSON."""
    watch: float = 2.0
    """Seconds between checks for a new model, at most 0.1 for a live folder; 0: never check."""
    limits: ServerLimits = field(default_factory=ServerLimits)

    def __post_init__(self) -> None:
        problems: list[Problem | str] = []
        if not 0 <= self.port <= 65535:
            problems.append(Problem("must be between 0 and 65535", "port", self.port, "0 takes any free port"))
        if self.workers < 1:
            problems.append(Problem("must be at least 1", "workers", self.workers))
        if not self.watch >= 0:
            problems.append(Problem("must be at least 0", "watch", self.watch, "0 never checks for a new model"))
        problems += self._shard_problems()
        for name in self.allowed_hosts:
            if not re.fullmatch(_HOST, name):
                rule = "must be a host name without a port, *.NAME or *"
                problems.append(Problem(rule, "allowed_hosts", name, "write it as shop.example.org"))
        if self.token is not None and not (self.token.isascii() and self.token.isprintable() and self.token.strip()):
            # Without the value: a token does not belong in a log.
            problems.append("the token must be printable ASCII and not empty")
        if problems:
            raise ConfigError(problems)

    def _shard_problems(self) -> list[Problem | str]:
        problems: list[Problem | str] = []
        for url in self.shards:
            parts = urlsplit(url)
            if parts.scheme not in ("http", "https") or not parts.hostname or parts.path.strip("/"):
                remedy = "write it as http://127.0.0.1:8001"
                problems.append(Problem("must be an HTTP URL without a path", "shards", url, remedy))
        twice = sorted({url for url in self.shards if self.shards.count(url) > 1})
        problems += [Problem("is there twice", "shards", url, "name each server once") for url in twice]
        if self.partial and not self.shards:
            problems.append(Problem("is for routers", "partial", True, "leave it out, or pass --shards"))
        if self.shards and self.events is not None:
            remedy = "send events to a server of their own"
            problems.append(
                Problem("cannot be used with shards, which follow no stream", "events", self.events, remedy)
            )
        if self.shards and self.catalogue is not None:
            remedy = "pass it to each shard"
            problems.append(Problem("belongs to the shards", "catalogue", str(self.catalogue), remedy))
        return problems

    @property
    def hosts(self) -> tuple[str, ...] | None:
        """Allowed names in the header Host; None: any."""
        if self.allowed_hosts:
            return None if "*" in self.allowed_hosts else tuple(name.lower() for name in self.allowed_hosts)
        return LOCAL if is_loopback(self.host) else None

    def to_json(self) -> bytes:
        """The options for a worker process. They contain the token: never put them on a command line."""
        return msgspec.json.encode(self, enc_hook=str)

    @classmethod
    def from_json(cls, text: bytes) -> ServerOptions:
        return msgspec.json.decode(text, type=cls, dec_hook=lambda kind, value: kind(value))


def is_loopback(host: str) -> bool:
    """Whether an address to listen on can only be reached from this machine."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def read_token(file: Path | None) -> str | None:
    """The token in a file, or in the environment variable PATHDEX_TOKEN; None if there is neither."""
    if file is None:
        return os.environ.get(TOKEN_VARIABLE) or None
    try:
        token = file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        problem = Problem(f"cannot be read ({error})", "token_file", str(file), "check the path")
        raise ConfigError([problem]) from error
    if not token:
        raise ConfigError([Problem("is empty", "token_file", str(file), "write the token into it")])
    return token
