"""Options of a server."""

from __future__ import annotations

from pathlib import Path

import pytest

from pathdex.errors import ConfigError
from pathdex.server.limits import ServerLimits
from pathdex.server.options import TOKEN_VARIABLE, ServerOptions, read_token


def test_all_invalid_options_are_listed() -> None:
    with pytest.raises(ConfigError) as caught:
        ServerOptions(model=Path("x"), port=-1, workers=0, watch=float("nan"), token="a\nb")
    assert tuple(map(str, caught.value.problems)) == (
        "port=-1: must be between 0 and 65535; 0 takes any free port",
        "workers=0: must be at least 1",
        "watch=nan: must be at least 0; 0 never checks for a new model",
        "the token must be printable ASCII and not empty",
    )


@pytest.mark.parametrize("catalogue", [None, Path("shop.csv")])
def test_options_round_trip_through_json(catalogue: Path | None) -> None:
    options = ServerOptions(
        model=Path("runs/first"), workers=3, catalogue=catalogue, token="t", limits=ServerLimits(max_n=7, timeout=0.5)
    )
    assert ServerOptions.from_json(options.to_json()) == options


def test_the_token_comes_from_a_file_or_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
