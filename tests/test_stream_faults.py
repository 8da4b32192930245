"""A stream that is killed again and again, and what else may happen to it: the short form of `make torture-stream`."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from benchmarks import stream_faults
from benchmarks.killable import Command, Death
from benchmarks.stream_checks import accounting_errors, differing_states
from benchmarks.stream_outages import HISTORY, OPTIONS, OUTAGES
from benchmarks.stream_processes import write_lines

from pathdex.data.events import Event
from tests.data.event_sources.conftest import need


def events(number: int) -> list[Event]:
    """Forty users who go through sixty items, each from another one on."""
    return [Event(f"u{row % 40}", (row % 40 + row // 40) % 60, 1e9 + row) for row in range(number)]


@pytest.fixture(autouse=True)
def short_lives(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_faults, "LIVES", 1.5)


def test_a_killed_stream_of_a_file_ends_with_the_bits_of_an_undisturbed_one(tmp_path: Path) -> None:
    found = stream_faults.kill_file_stream(events(900), 3, random.Random(4), tmp_path)
    assert not found["errors"]
    assert sum(found["kills"].values()) == 3


def test_kills_of_trainer_server_and_broker_lose_no_event_and_count_none_twice(tmp_path: Path) -> None:
    need("redis-server")
    found = stream_faults.kill_broker_stream(events(700), 4, random.Random(2), tmp_path)
    assert not found["errors"]
    assert found["answers"] > 0


@pytest.mark.parametrize("name", [name for name in OUTAGES if name != "broker hangs"])
def test_a_stream_survives(name: str, tmp_path: Path) -> None:
    need("redis-server")
    found = OUTAGES[name](events(300), tmp_path, 0.5)
    if "skipped" in found:
        pytest.skip(found["skipped"])
    assert not found["errors"]
    assert found["message"]


@pytest.mark.slow
def test_a_stream_survives_a_broker_that_hangs(tmp_path: Path) -> None:
    need("redis-server")
    assert not OUTAGES["broker hangs"](events(300), tmp_path, 0.5)["errors"]


def test_a_lost_or_repeated_event_is_noticed(tmp_path: Path) -> None:
    """The checks can fail."""
    fed = events(200)
    for name, rows in (("whole", fed), ("lost", fed[:100] + fed[101:])):
        file = write_lines(tmp_path / f"{name}.jsonl", rows)
        stream = Command(["stream", str(file), "--out", str(tmp_path / name), *OPTIONS], tmp_path / "log")
        assert stream.wait() == 0
    assert not accounting_errors(tmp_path / "whole", fed, HISTORY)
    lost = accounting_errors(tmp_path / "lost", fed, HISTORY)
    assert lost[:2] == ["events: 199 instead of 200", "learned: 199 instead of 200"]
    assert any("counted" in one for one in lost)
    assert any("history" in one for one in lost)
    assert not differing_states(tmp_path / "whole", tmp_path / "whole")
    assert "items.rows" in differing_states(tmp_path / "whole", tmp_path / "lost")


def test_a_command_dies_right_at_a_change_of_its_files(tmp_path: Path) -> None:
    file, live = write_lines(tmp_path / "events.jsonl", events(200)), tmp_path / "live"
    stream = Command(["stream", str(file), "--out", str(live)], tmp_path / "log", Death(live, change=3))
    assert stream.wait() == -9
