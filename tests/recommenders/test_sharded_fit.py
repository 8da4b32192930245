"""What a sharded fit refuses before it trains; its results are tested in `test_trained_shard.py`."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from pathdex.config import Config, RunOptions
from pathdex.errors import ConfigError
from pathdex.recommenders import sharding
from pathdex.recommenders.sharded_fit import fit_shard
from tests.training.distributed.program import made_up


def test_an_encoder_without_a_compiled_version_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sharding, "ENCODERS", {"pooled": None})
    group: Any = SimpleNamespace(rank=0, size=2)
    with pytest.raises(ConfigError, match="encoder='gru': has no compiled version, which a router needs"):
        fit_shard(Config(), RunOptions(), made_up(), group)
