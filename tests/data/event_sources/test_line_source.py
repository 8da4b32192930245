"""Text files: growth, rotation, truncation, exact positions."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pathdex.data.event_sinks import append_events
from pathdex.data.event_sources import open_source
from pathdex.data.event_sources.base import EventSource
from pathdex.data.events import MAX_EVENT_BYTES, Event
from pathdex.errors import ConfigError, DataError
from tests.data.event_sources.conftest import EVENTS, events_of, read_all, read_and_resume, read_until


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "events.jsonl"
    append_events(path, EVENTS)
    return path


def rotate(path: Path) -> None:
    """As logrotate does: .1 becomes .2, the log becomes .1; then a new log is created."""
    for number in (8, 7, 6, 5, 4, 3, 2, 1):
        old = path.with_name(f"{path.name}.{number}")
        if old.exists():
            old.rename(path.with_name(f"{path.name}.{number + 1}"))
    path.rename(path.with_name(f"{path.name}.1"))
    path.touch()


def follow(path: Path, **options: Any) -> EventSource:
    source = open_source(path, follow=True, **options)
    source.seek(None)
    return source


def test_a_file_is_read_once_to_its_end(file: Path) -> None:
    source = open_source(file)
    source.seek(None)
    batches = read_all(source, 16)
    assert [len(batch.events) for batch in batches] == [16, 16, 16, 12]
    assert events_of(batches) == EVENTS
    assert source.read(16, 0) is None
    assert source.lag() == 0
    source.acknowledge(batches[-1].position)
    source.close()


def test_a_last_line_without_a_line_break_counts_at_the_end_of_a_finite_file(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-1])
    source = open_source(file)
    batches = read_all(source)
    assert events_of(batches) == EVENTS
    source.close()
    with file.open("ab") as written:
        written.write(b'\n{"user": 1, "item": 2}\n')
    again = open_source(file)
    again.seek(batches[-1].position)
    assert events_of(read_all(again)) == [Event(1, 2)]
    again.close()


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    stops=st.lists(st.tuples(st.integers(1, 30), st.booleans()), max_size=8),
    suffix=st.sampled_from([".jsonl", ".jsonl.gz", ".csv", ".tsv"]),
)
def test_kills_lose_and_repeat_nothing(tmp_path: Path, stops: list[tuple[int, bool]], suffix: str) -> None:
    path = tmp_path / f"events{suffix}"
    if "json" in suffix:
        lines = "".join(json.dumps(event._asdict()) + "\n" for event in EVENTS)
    else:
        rows = [("user", "item", "time", "weight"), *EVENTS]
        lines = "".join(("," if suffix == ".csv" else "\t").join(map(str, row)) + "\n" for row in rows)
    path.write_bytes(gzip.compress(lines.encode()) if suffix.endswith(".gz") else lines.encode())
    assert read_and_resume(lambda: open_source(path), stops, len(EVENTS)) == EVENTS


def test_positions_are_json(file: Path) -> None:
    source = open_source(file)
    batch = source.read(5, 0)
    assert batch is not None
    source.seek(json.loads(json.dumps(batch.position)))
    assert events_of(read_all(source)) == EVENTS[5:]
    source.close()


def test_a_growing_file(file: Path) -> None:
    source = follow(file)
    assert events_of(read_all(source)) == EVENTS
    with file.open("ab") as written:
        written.write(b'{"user": "eve", ')
        written.flush()
        batch = source.read(5, 0)
        assert batch is not None
        assert batch.events == []
        written.write(b'"item": 1}\n')
    assert events_of(read_all(source)) == [Event("eve", 1)]
    source.close()


def test_lag_is_estimated_from_the_size(file: Path) -> None:
    source = open_source(file)
    assert (source.lag() or 0) > 0
    source.read(20, 0)
    assert 30 <= (source.lag() or 0) <= 50
    source.close()


def test_rotation_while_reading(file: Path) -> None:
    source = follow(file)
    first = events_of(read_until(source, 30, size=10))
    rotate(file)
    append_events(file, EVENTS[:10])
    rotate(file)
    rotate(file)
    append_events(file, EVENTS[10:20])
    assert first + events_of(read_until(source, 50)) == EVENTS + EVENTS[:20]
    source.close()


def test_a_file_that_is_renamed_while_it_is_opened(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = follow(file)
    read_all(source)
    rotate(file)
    append_events(file, EVENTS[:3])
    found = [file, file.with_name("gone.jsonl")]
    monkeypatch.setattr("pathdex.data.event_sources.line_source.next_file", lambda path, inode: found.pop())
    assert events_of(read_until(source, 3)) == EVENTS[:3]
    source.close()


def test_rotation_while_stopped(file: Path) -> None:
    source = follow(file)
    batch = read_until(source, 30, size=10)[-1]
    source.close()
    rotate(file)
    append_events(file, EVENTS[:10])
    again = open_source(file, follow=True)
    again.seek(batch.position)
    assert events_of(read_until(again, 40)) == EVENTS[30:] + EVENTS[:10]
    again.close()


def test_rotation_before_anything_was_read(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.touch()
    source = follow(path)
    batch = source.read(5, 0)
    assert batch is not None
    source.close()
    append_events(path, EVENTS[:5])
    rotate(path)
    append_events(path, EVENTS[5:10])
    again = open_source(path, follow=True)
    again.seek(batch.position)
    assert events_of(read_until(again, 10)) == EVENTS[:10]
    again.close()


def test_a_line_that_rotation_cut_off_is_read(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-1])
    source = follow(file)
    assert events_of(read_all(source)) == EVENTS[:-1]
    rotate(file)
    assert events_of(read_until(source, 1)) == EVENTS[-1:]
    append_events(file, EVENTS[:1])
    assert events_of(read_until(source, 1)) == EVENTS[:1]
    source.close()


@pytest.mark.parametrize("count", [3, 100])
def test_truncation_while_reading(file: Path, count: int, caplog: pytest.LogCaptureFixture) -> None:
    source = follow(file)
    read_all(source)
    new = [Event("new", number) for number in range(count)]
    file.write_bytes(b"")
    append_events(file, new)
    assert events_of(read_until(source, count)) == new
    assert "was truncated or overwritten while it was read; reading continues at its start" in caplog.text
    source.close()


def test_truncation_of_a_finite_file_is_an_error(file: Path) -> None:
    source = open_source(file)
    assert len(read_all(source)) == 4
    file.write_bytes(b"")
    with pytest.raises(DataError, match="was truncated or overwritten while it was read; restore the file"):
        source.read(5, 0)
    source.close()


@pytest.mark.parametrize("follows", [False, True])
def test_a_replaced_file_is_an_error(file: Path, follows: bool) -> None:
    source = open_source(file, follow=follows)
    batch = source.read(20, 0)
    assert batch is not None
    for content in (b"", file.read_bytes().replace(b'"item": 19', b'"item": 91')):
        file.write_bytes(content)
        with pytest.raises(DataError, match=r"is not the file that was read: the content before byte [\d,]+ is not"):
            source.seek(batch.position)
    source.close()


def test_malformed_lines_go_to_the_dead_letters(file: Path, letters: Path) -> None:
    lines = file.read_bytes().splitlines(keepends=True)
    bad = [b"nonsense\n", b'{"user": "ada"}\n', b"\n", b"  \r\n", b'{"x": "' + b"y" * MAX_EVENT_BYTES + b'"}\n']
    file.write_bytes(b"".join(lines[:20] + bad + lines[20:]))
    source = open_source(file, dead_letters=letters)
    batches = read_all(source, 7)
    assert events_of(batches) == EVENTS
    assert sum(batch.malformed for batch in batches) == 3
    source.close()
    written = [json.loads(line) for line in letters.read_text().splitlines()]
    start = sum(map(len, lines[:20]))
    assert [one["position"] for one in written[:2]] == [f"events.jsonl:{start}", f"events.jsonl:{start + 9}"]
    assert "bytes; at most 1,048,576 are allowed" in written[2]["reason"]
    assert len(written[2]["raw"]) == 4096
    again = open_source(file, dead_letters=letters)
    read_all(again)
    again.close()
    assert len(letters.read_text().splitlines()) == 3


def test_without_dead_letters_malformed_lines_are_logged(file: Path, caplog: pytest.LogCaptureFixture) -> None:
    file.write_bytes(b"nonsense\n" + file.read_bytes())
    source = open_source(file)
    assert events_of(read_all(source)) == EVENTS
    source.close()
    assert "1 malformed event was skipped; the first, events.jsonl:0: it is not JSON" in caplog.text


def test_a_csv_file_without_the_columns(tmp_path: Path) -> None:
    path = tmp_path / "events.csv"
    path.write_text("who,what\n1,2\n")
    source = open_source(path)
    with pytest.raises(DataError, match=r"no user column found in .*events.csv; its columns are: who, what"):
        source.read(5, 0)
    source.close()
    named = open_source(path, user="who", item="what")
    assert events_of(read_all(named)) == [Event(1, 2)]
    named.close()


def test_a_csv_file_grows_and_is_rotated_with_its_header(tmp_path: Path) -> None:
    path = tmp_path / "events.csv"
    path.write_text("user,item\n1,2")
    source = follow(path)
    assert read_all(source) == []
    with path.open("a") as written:
        written.write("\n3,4\n")
    assert events_of(read_until(source, 2)) == [Event(1, 2), Event(3, 4)]
    rotate(path)
    path.write_text("item,user\n1,2\n")
    assert events_of(read_until(source, 1)) == [Event(2, 1)]
    source.close()


def test_a_compressed_file_cannot_be_followed_and_damage_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl.gz"
    path.write_bytes(gzip.compress(b'{"user": 1, "item": 2}\n' * 1000)[:-12])
    with pytest.raises(ConfigError, match="follow=True: a compressed file cannot grow; leave it out"):
        open_source(path, follow=True)
    source = open_source(path)
    assert source.lag() is None
    with pytest.raises(DataError, match=r"events.jsonl.gz cannot be read \(.*\); get the file again"):
        read_all(source)
    source.close()


def test_a_byte_order_mark_is_ignored(tmp_path: Path) -> None:
    for name, content in (("e.jsonl", '{"user": 1, "item": 2}\n'), ("e.csv", "user,item\n1,2\n")):
        (tmp_path / name).write_text(content, encoding="utf-8-sig")
        source = open_source(tmp_path / name)
        assert events_of(read_all(source)) == [Event(1, 2)]
        source.close()
