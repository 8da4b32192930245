"""`pathdex stream`: options that are refused, files that do not exist yet, and streams without a good event."""

from __future__ import annotations

from pathlib import Path

import pytest

from pathdex.cli.console import err
from pathdex.cli.progress import Log
from pathdex.cli.stream import _Progress
from pathdex.recommenders.registry import load
from pathdex.recommenders.stream_trainer import StreamProgress
from tests.cli.conftest import Pathdex


@pytest.mark.parametrize(
    ("option", "value", "told"),
    [
        ("--publish-seconds", "-1", "--publish-seconds"),
        ("--batch-events", "0", "--batch-events=0"),
        ("--threads", "0", "--threads=0"),
        ("--embedding-dim", "0", "--embedding-dim=0"),
        ("--metrics-port", "99999", "--metrics-port"),
        ("--epochs", "3", "a stream has no --epochs"),
        ("--device", "cuda", "a stream learns on the CPU"),
        ("--format", "csv", "a stream has no --format"),
    ],
)
def test_a_wrong_option_is_a_usage_error(pathdex: Pathdex, tmp_path: Path, option: str, value: str, told: str) -> None:
    (tmp_path / "events.jsonl").touch()
    outcome = pathdex("stream", tmp_path / "events.jsonl", "--out", tmp_path / "live", option, value, fails=2)
    assert told in " ".join(outcome.stderr.replace("│", " ").split())
    assert not (tmp_path / "live").exists()


def test_a_stream_without_a_good_event_fails_with_the_first_reason(pathdex: Pathdex, tmp_path: Path) -> None:
    (tmp_path / "events.jsonl").write_text('{"who": 1, "what": 2}\n')
    outcome = pathdex("stream", tmp_path / "events.jsonl", "--out", tmp_path / "live", fails=1)
    assert "1 malformed event is in" in " ".join(outcome.stdout.split())
    assert "no event could be read: malformed 1 of 1; the first: " in " ".join(outcome.stderr.split())
    assert "--user, --item and --time" in " ".join(outcome.stderr.split())


def test_a_file_that_does_not_exist_yet_is_waited_for(
    pathdex: Pathdex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "events.jsonl"
    told: list[str] = []

    def print_and_create(_: Log, line: str) -> None:
        told.append(line)
        file.write_text('{"user": 1, "item": 2}\n{"user": 1, "item": 3}\n')

    monkeypatch.setattr(Log, "print", print_and_create)
    outcome = pathdex("stream", file, "--out", tmp_path / "live", "--follow", "--max-events", "2")
    assert told[0] == f"waiting for {file}, which does not exist yet"
    assert "2 events, 2 items" in outcome.stdout


def test_an_idle_stream_says_that_it_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    monkeypatch.setattr(Log, "progress", lambda _, line: told.append(line))
    _Progress(Log(err())).on_idle(StreamProgress(7, 0.0, 0, None, 2, 1, 93, {}, None, 0, 0))
    assert told == ["7 events  0/s  lag 0  2 items  1 paths  M-step in 93 events  waiting for events"]


def test_titles_travel_with_the_model_and_can_be_replaced(pathdex: Pathdex, tmp_path: Path) -> None:
    events, table, live = tmp_path / "events.jsonl", tmp_path / "films.csv", tmp_path / "live"
    lines = [f'{{"user": {number % 3}, "item": {number % 5}}}\n' for number in range(40)]

    def titles(number: int, *given: object) -> dict[int, object]:
        """The titles in the model after so many events."""
        events.write_text("".join(lines[:number]))
        pathdex("stream", events, "--out", live, *given)
        details = load(live).details
        return {} if details is None else {item: details.title(item) for item in range(5)}

    assert titles(3) == {}
    table.write_text("item,title,year\n0,Zero,1990\n1,One,1991\n4,Four,1994\n")
    # Also those of items that come later.
    assert titles(10, "--items", table) == {0: "Zero", 1: "One", 2: None, 3: None, 4: "Four"}
    # Without the option they stay, and a later table takes their place.
    assert titles(20) == {0: "Zero", 1: "One", 2: None, 3: None, 4: "Four"}
    table.write_text("item,title,year\n0,Nought,1990\n2,Two,1992\n")
    assert titles(30, "--items", table, "--item-columns", "year")[0] == "Nought"
    assert list(load(live).recommend([1, 2], 5).to_frame().columns) == ["rank", "item", "score", "title", "year"]


def test_options_of_a_table_need_one(pathdex: Pathdex, tmp_path: Path) -> None:
    (tmp_path / "events.jsonl").touch()
    outcome = pathdex("stream", tmp_path / "events.jsonl", "--out", tmp_path / "live", "--title", "name", fails=2)
    assert "need --items FILE" in " ".join(outcome.stderr.replace("│", " ").split())
