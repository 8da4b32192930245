"""Compiling ahead of time. tests/cli/test_serve.py runs the command."""

from pathlib import Path

from pathdex.server.warmup import caches, warm_up


def test_the_report_has_times_and_caches(deep: Path) -> None:
    report = warm_up(deep)
    assert report.seconds > report.query_seconds > 0
    assert report.caches == caches()
    assert any(place.parent.name == "kernels" for place in report.caches)
    assert all(place.is_dir() for place in report.caches)
