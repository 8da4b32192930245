"""Options of a server."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from pathdex.errors import ConfigError, Problem
from pathdex.server.limits import ServerLimits

TOKEN_VARIABLE = "PATHDEX_TOKEN"


@dataclass(frozen=True, kw_only=True)
class ServerOptions:
    """The model, the address, the user store, access and limits."""

    model: Path
    """A run folder, a bundle, or a link to one; watched for new versions."""
    host: str = "127.0.0.1"
    port: int = 8000
    """0: any free port."""
    workers: int = 1
    catalogue: Path | None = None
    """A catalogue table for `where`; watched like the model."""
    catalogue_item: str | None = None
    """Its item column; None: found by common names."""
    user_store: str | None = None
    """A SQLite file or a Redis URL; None: requests contain their histories."""
    token: str | None = None
    """Clients must send it as `Authorization: Bearer TOKEN`; None: no authentication."""
    public_metrics: bool = False
    """Serve /metrics without a token."""
    access_log: bool = False
    """Log each request to standard error as a line of JSON."""
    watch: float = 2.0
    """Seconds between checks for a new model; 0: never check."""
    limits: ServerLimits = field(default_factory=ServerLimits)

    def __post_init__(self) -> None:
        problems: list[Problem | str] = []
        if not 0 <= self.port <= 65535:
            problems.append(Problem("must be between 0 and 65535", "port", self.port, "0 takes any free port"))
        if self.workers < 1:
            problems.append(Problem("must be at least 1", "workers", self.workers))
        if not self.watch >= 0:
            problems.append(Problem("must be at least 0", "watch", self.watch, "0 never checks for a new model"))
        if self.token is not None and not (self.token.isascii() and self.token.isprintable() and self.token.strip()):
            # Without the value: a token does not belong in a log.
            problems.append("the token must be printable ASCII and not empty")
        if problems:
            raise ConfigError(problems)

    def to_json(self) -> bytes:
        """The options for a worker process. They contain the token: never put them on a command line."""
        return msgspec.json.encode(self, enc_hook=str)

    @classmethod
    def from_json(cls, text: bytes) -> ServerOptions:
        return msgspec.json.decode(text, type=cls, dec_hook=lambda kind, value: kind(value))


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
