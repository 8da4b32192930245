"""The folder of a report: complete, new, or free again after an interruption."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pathdex.errors import RunError, StorageError
from pathdex.experiments.simulate.run import run_simulation
from pathdex.storage.folder_lock import folder_lock
from tests.data.event_sources.conftest import need
from tests.experiments.simulate.conftest import with_changes

SHORT = with_changes(minutes=2)
ARMS = ["oracle", "random"]


def test_a_report_over_a_real_broker(tmp_path: Path) -> None:
    need("redis-server")
    report = run_simulation(tmp_path / "report", SHORT, arms=ARMS, command="pathdex simulate")
    written = json.loads(report.json.read_text())
    assert written == report.results
    assert "Redis Streams, a private `redis-server`" in written["broker"]
    assert report.html.read_text().startswith("<!doctype html>")
    assert (tmp_path / "report" / "figures" / "finish-rate.svg").exists()
    assert [row["arm"] for row in written["arms"]] == ARMS


def test_the_broker_does_not_change_the_figures(tmp_path: Path) -> None:
    need("redis-server")
    arms = ["popularity", "oracle"]
    reports = [run_simulation(tmp_path / one, SHORT, arms=arms, broker=one).results for one in ("auto", "file")]
    for key in ("waiting", "timeline", "platform"):
        assert reports[0][key] == reports[1][key]
    assert "a file of JSON lines, `events.jsonl`" in reports[1]["broker"]


def test_a_folder_with_a_report_is_kept(tmp_path: Path) -> None:
    (tmp_path / "results.json").write_text("{}")
    with pytest.raises(RunError, match=r"is not empty \(it has results.json\); choose a new folder"):
        run_simulation(tmp_path, SHORT, arms=ARMS, broker="file")
    assert (tmp_path / "results.json").read_text() == "{}"


def test_after_an_interruption_the_folder_can_be_used_again(tmp_path: Path) -> None:
    def interrupt(done: float, total: float, what: str) -> None:
        if done > 60:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_simulation(tmp_path, SHORT, arms=ARMS, broker="file", progress=interrupt)
    assert not (tmp_path / "results.json").exists()
    assert run_simulation(tmp_path, SHORT, arms=ARMS, broker="file").json.exists()


def test_two_at_once_are_kept_apart(tmp_path: Path) -> None:
    with folder_lock(tmp_path, "pathdex simulate"), pytest.raises(StorageError, match="is in use by pathdex simulate"):
        run_simulation(tmp_path, SHORT, arms=ARMS, broker="file")
