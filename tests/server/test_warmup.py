"""Compiling ahead. That the command works is tested in tests/cli/test_serve.py."""

from pathlib import Path

from pathdex.server.warmup import caches, warm_up


def test_it_says_what_it_did_and_where(deep: Path) -> None:
    done = warm_up(deep)
    assert done.seconds > done.query_seconds > 0
    assert done.caches == caches()
    assert any(place.parent.name == "kernels" for place in done.caches)
    assert all(place.is_dir() for place in done.caches)
