"""What a server is started with."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from pathdex.errors import ConfigError
from pathdex.server.limits import ServerLimits
from pathdex.server.options import TOKEN_VARIABLE, ServerOptions, read_token


def test_every_limit_has_a_bound_and_a_help() -> None:
    for spec in dataclasses.fields(ServerLimits):
        assert spec.metadata["help"]
        assert spec.metadata["low"] is not None or spec.metadata["above"] is not None


def test_all_wrong_limits_are_listed() -> None:
    with pytest.raises(ConfigError) as caught:
        ServerLimits(max_n=0, timeout=0.0, queue=2.5)  # type: ignore[arg-type]
    assert tuple(map(str, caught.value.problems)) == (
        "max_n=0: must be at least 1; items of one answer",
        "queue=2.5: must be a whole number",
        "timeout=0.0: must be greater than 0.0; seconds for one answer; then status 504",
    )


def test_all_wrong_options_are_listed() -> None:
    with pytest.raises(ConfigError) as caught:
        ServerOptions(model=Path("x"), port=-1, workers=0, watch=float("nan"), token="a\nb")
    assert tuple(map(str, caught.value.problems)) == (
        "port=-1: must be between 0 and 65535; 0 takes any free port",
        "workers=0: must be at least 1",
        "watch=nan: must be at least 0; 0 never looks for a new model",
        "token: must be printable ASCII, and not empty",
    )


@pytest.mark.parametrize("catalogue", [None, Path("shop.csv")])
def test_options_travel_to_a_worker_as_json(catalogue: Path | None) -> None:
    options = ServerOptions(
        model=Path("runs/first"), workers=3, catalogue=catalogue, token="t", limits=ServerLimits(max_n=7, timeout=0.5)
    )
    assert ServerOptions.from_dict(json.loads(json.dumps(options.to_dict()))) == options


def test_a_token_comes_from_a_file_or_a_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(TOKEN_VARIABLE, raising=False)
    assert read_token(None) is None
    monkeypatch.setenv(TOKEN_VARIABLE, "from the variable")
    assert read_token(None) == "from the variable"
    (tmp_path / "token").write_text("from the file\n")
    assert read_token(tmp_path / "token") == "from the file"
    (tmp_path / "token").write_text("\n")
    with pytest.raises(ConfigError, match=r"token_file=.*: is empty; write the token into it"):
        read_token(tmp_path / "token")
    with pytest.raises(ConfigError, match=r"token_file='nowhere': cannot be read .*; check the path"):
        read_token(Path("nowhere"))
