"""Options of a server."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pathdex.errors import ConfigError
from pathdex.server.limits import ServerLimits
from pathdex.server.options import LOCAL, TOKEN_VARIABLE, ServerOptions, is_loopback, read_token


def test_all_invalid_options_are_listed() -> None:
    with pytest.raises(ConfigError) as caught:
        ServerOptions(model=Path("x"), port=-1, workers=0, watch=float("nan"), allowed_hosts=("a:80",), token="a\nb")
    assert tuple(map(str, caught.value.problems)) == (
        "port=-1: must be between 0 and 65535; 0 takes any free port",
        "workers=0: must be at least 1",
        "watch=nan: must be at least 0; 0 never checks for a new model",
        "allowed_hosts='a:80': must be a host name without a port, *.NAME or *; write it as shop.example.org",
        "the token must be printable ASCII and not empty",
    )


@pytest.mark.parametrize("catalogue", [None, Path("shop.csv")])
def test_options_round_trip_through_json(catalogue: Path | None) -> None:
    options = ServerOptions(
        model=Path("runs/first"), workers=3, catalogue=catalogue, token="t", allowed_hosts=("a", "*.b")
    )
    options = replace(options, limits=ServerLimits(max_n=7, timeout=0.5))
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


def test_the_hosts_of_a_server() -> None:
    def hosts(**options: object) -> tuple[str, ...] | None:
        return ServerOptions(model=Path("x"), **options).hosts  # type: ignore[arg-type]

    assert hosts() == hosts(host="localhost") == hosts(host="::1") == LOCAL
    assert hosts(host="0.0.0.0") is hosts(host="models.example") is hosts(allowed_hosts=("a", "*")) is None
    assert hosts(host="0.0.0.0", allowed_hosts=("A.example",)) == ("a.example",)


def test_loopback_addresses() -> None:
    assert all(map(is_loopback, ("127.0.0.1", "127.9.9.9", "::1", "localhost")))
    assert not any(map(is_loopback, ("0.0.0.0", "::", "10.0.0.1", "localhost.example")))
