"""Limits of the server."""

from __future__ import annotations

import dataclasses

import pytest

from pathdex.errors import ConfigError
from pathdex.server.limits import ServerLimits


def test_every_limit_has_a_range_and_a_help_text() -> None:
    for spec in dataclasses.fields(ServerLimits):
        assert spec.metadata["help"]
        assert spec.metadata["low"] is not None or spec.metadata["above"] is not None


def test_all_invalid_limits_are_listed() -> None:
    with pytest.raises(ConfigError) as caught:
        ServerLimits(max_n=0, timeout=0.0, queue=2.5)  # type: ignore[arg-type]
    assert tuple(map(str, caught.value.problems)) == (
        "max_n=0: must be at least 1; items recommended per query",
        "queue=2.5: must be a whole number",
        "timeout=0.0: must be greater than 0.0; seconds to answer a request; then status 504",
    )
