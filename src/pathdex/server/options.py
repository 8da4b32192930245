"""What a server is started with."""

from __future__ import annotations

import dataclasses
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pathdex.errors import ConfigError
from pathdex.server.limits import Limits

TOKEN_VARIABLE = "PATHDEX_TOKEN"


@dataclass(frozen=True, kw_only=True)
class ServerOptions:
    """Where the model is, where the server listens, and what it holds to."""

    model: Path
    """A run folder, a bundle folder, or a link to one; watched for new versions."""
    host: str = "127.0.0.1"
    port: int = 8000
    """0 takes any free port."""
    workers: int = 1
    catalogue: Path | None = None
    """A catalogue table for `where`; watched like the model."""
    catalogue_item: str | None = None
    """Its item column; by default found by common names."""
    user_store: str | None = None
    """A SQLite file or a Redis address; None: requests bring their histories."""
    token: str | None = None
    """What a client must send as `Authorization: Bearer TOKEN`; None: nothing."""
    public_metrics: bool = False
    """Whether /metrics needs no token."""
    access_log: bool = False
    """Whether each request is a line of JSON on standard error."""
    watch: float = 2.0
    """Seconds between two looks for a new model; 0: never."""
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        problems = []
        if not 0 <= self.port <= 65535:
            problems.append(f"port={self.port}: must be between 0 and 65535; 0 takes any free port")
        if self.workers < 1:
            problems.append(f"workers={self.workers}: must be at least 1")
        if not self.watch >= 0:
            problems.append(f"watch={self.watch}: must be at least 0; 0 never looks for a new model")
        if self.token is not None and not (self.token.isascii() and self.token.isprintable() and self.token.strip()):
            problems.append("token: must be printable ASCII, and not empty")
        if problems:
            raise ConfigError(problems)

    def to_dict(self) -> dict[str, Any]:
        """For a worker process, as JSON; holds the token, so it belongs into a pipe and not onto a command line."""
        catalogue = None if self.catalogue is None else str(self.catalogue)
        return {**dataclasses.asdict(self), "model": str(self.model), "catalogue": catalogue}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> ServerOptions:
        """What `to_dict` made."""
        paths = {name: None if values[name] is None else Path(values[name]) for name in ("model", "catalogue")}
        return cls(**{**values, **paths, "limits": Limits(**values["limits"])})


def read_token(file: Path | None) -> str | None:
    """The token in a file, or else in the variable PATHDEX_TOKEN; None where there is neither."""
    if file is None:
        return os.environ.get(TOKEN_VARIABLE) or None
    try:
        token = file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError([f"token_file={str(file)!r}: cannot be read ({error}); check the path"]) from error
    if not token:
        raise ConfigError([f"token_file={str(file)!r}: is empty; write the token into it"])
    return token
