"""`pathdex stream`: from a file to a model, stopping, resuming, and what it refuses."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import pathdex as library
from pathdex.cli.console import err
from pathdex.cli.progress import Log
from pathdex.cli.stream import _Progress
from pathdex.experiments.stream_folder import read_stream_state
from pathdex.recommenders.stream_trainer import StreamProgress
from tests.cli.conftest import SETTINGS, Pathdex

NAMES = ("num_nodes", "depth", "paths_per_item", "embedding_dim", "structure_hidden", "history_length", "score_beam")
FLAGS = [word for name in NAMES for word in (f"--{name.replace('_', '-')}", str(SETTINGS[name]))]
FLAGS += ["--batch-events", "64", "--m-step-events", "300", "--candidate-paths", "8"]


@pytest.fixture
def events(tmp_path: Path) -> Path:
    file = tmp_path / "events.jsonl"
    rows = [{"user": f"u{row % 40}", "item": (row % 40 + row // 40) % 25, "time": row} for row in range(1000)]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return file


def test_a_file_becomes_a_model_that_answers(pathdex: Pathdex, events: Path, tmp_path: Path) -> None:
    folder = tmp_path / "live"
    outcome = pathdex("stream", events, "--out", folder, *FLAGS)
    assert f"{folder}: 1,000 events, 25 items" in outcome.stdout
    assert len(library.load(folder).recommend([1, 2], 5)) == 5
    assert "continuing" in pathdex("stream", events, "--out", folder, *FLAGS).stderr


def test_a_damaged_current_is_published_again(pathdex: Pathdex, events: Path, tmp_path: Path) -> None:
    folder = tmp_path / "live"
    pathdex("stream", events, "--out", folder, *FLAGS)
    (folder / "CURRENT").write_text('{"format": "pathd')
    for command in (["recommend", folder, "--history", "1"], ["live", "status", folder], ["live", "rollback", folder]):
        told = " ".join(pathdex(*command, fails=1).stderr.split())
        assert "run `pathdex stream` again, it publishes again" in told, command
    told = " ".join(pathdex("stream", events, "--out", folder, *FLAGS).stderr.split())
    assert "CURRENT was damaged; the model is published again from the checkpoint" in told
    assert len(library.load(folder).recommend([1, 2], 5)) == 5


def test_malformed_events_are_counted_and_kept_apart(pathdex: Pathdex, events: Path, tmp_path: Path) -> None:
    with events.open("a") as file:
        file.write('{"user": 1}\nnonsense\n')
    outcome = pathdex("stream", events, "--out", tmp_path / "live", *FLAGS)
    assert "2 malformed events are in" in outcome.stdout.replace("\n", " ")
    letters = (tmp_path / "live" / "state" / "dead-letters.jsonl").read_text().splitlines()
    assert [json.loads(one)["raw"] for one in letters] == ['{"user": 1}', "nonsense"]
    with events.open("a") as file:
        file.write("more nonsense\n")
    outcome = pathdex("stream", events, "--out", tmp_path / "live", *FLAGS)
    assert "3 malformed events are in" in outcome.stdout.replace("\n", " ")


def test_new_items_start_by_the_catalogue_table(pathdex: Pathdex, events: Path, tmp_path: Path) -> None:
    table = tmp_path / "films.csv"
    table.write_text("film,genre\n" + "".join(f"{item},g{item}\n" for item in range(25)) + "new,g3\n")
    options = ["--out", tmp_path / "live", "--catalogue", table, "--catalogue-item", "film", *FLAGS]
    pathdex("stream", events, *options)
    with events.open("a") as file:
        file.write('{"add_item": "new"}\n{"add_item": "other", "attributes": {"genre": "g4"}}\n{"remove_item": 0}\n')
    pathdex("stream", events, *options)
    model = library.load(tmp_path / "live")
    for new, similar in (("new", "3"), ("other", "4")):
        # Full paths are left out for others with the same first node.
        assert [nodes[0] for nodes in model.item_paths(new)] == [nodes[0] for nodes in model.item_paths(similar)]
    assert "0" not in model.items
    other = pathdex("stream", events, "--out", tmp_path / "live", *FLAGS, fails=1)
    assert f"--catalogue was {table} and is not given now" in other.stderr.replace("\n", " ").replace("  ", " ")
    wrong = pathdex("stream", events, "--out", tmp_path / "live2", "--catalogue", tmp_path / "no.csv", *FLAGS, fails=1)
    assert "no.csv" in wrong.stderr.replace("\n", "")
    assert not (tmp_path / "live2").exists()


def test_a_trained_run_is_continued(pathdex: Pathdex, run: Path, tmp_path: Path) -> None:
    known = library.load(run)
    file = tmp_path / "new.jsonl"
    file.write_text(json.dumps({"user": "someone", "item": "brand-new"}) + "\n")
    pathdex("stream", file, "--from", run, "--out", tmp_path / "live")
    assert len(library.load(tmp_path / "live").items) == len(known.items) + 1


def test_other_columns_are_another_request(pathdex: Pathdex, events: Path, tmp_path: Path) -> None:
    pathdex("stream", events, "--out", tmp_path / "live", *FLAGS)
    swapped = pathdex("stream", events, "--out", tmp_path / "live", "--user", "item", "--item", "user", *FLAGS, fails=1)
    told = " ".join(swapped.stderr.split())
    assert "--user was not given and is item now, --item was not given and is user now" in told


def test_a_mistyped_source_leaves_the_folder_free(pathdex: Pathdex, events: Path, tmp_path: Path) -> None:
    pathdex("stream", tmp_path / "missing.jsonl", "--out", tmp_path / "live", *FLAGS, fails=1)
    assert "1,000 events" in pathdex("stream", events, "--out", tmp_path / "live", *FLAGS).stdout


def test_it_stops_after_max_events_and_goes_on_later(pathdex: Pathdex, events: Path, tmp_path: Path) -> None:
    assert "500 events" in pathdex("stream", events, "--out", tmp_path / "live", "--max-events", 500, *FLAGS).stdout
    assert "1,000 events" in pathdex("stream", events, "--out", tmp_path / "live", *FLAGS).stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["missing.jsonl"], "missing.jsonl"),
        (["ftp://host/events"], "ftp"),
        (["EVENTS", "--from", "nowhere"], "nowhere"),
        (["redis://127.0.0.1:1/0?stream=events"], "127.0.0.1:1"),
    ],
)
def test_wrong_input_is_one_sentence(
    pathdex: Pathdex, events: Path, tmp_path: Path, arguments: list[str], message: str
) -> None:
    given = [str(events) if one == "EVENTS" else one for one in arguments]
    outcome = pathdex("stream", *given, "--out", tmp_path / "live", fails=1)
    assert message in outcome.stderr
    assert "Traceback" not in outcome.stderr
    assert not (tmp_path / "live").exists()


def test_hyper_parameters_cannot_change_with_a_model(pathdex: Pathdex, run: Path, events: Path, tmp_path: Path) -> None:
    outcome = pathdex("stream", events, "--from", run, "--out", tmp_path / "live", "--epochs", 3, fails=2)
    assert "--epochs" in outcome.stderr


def test_the_progress_line_counts_what_is_out_of_the_ordinary(monkeypatch: pytest.MonkeyPatch) -> None:
    lines: list[str] = []
    shown = _Progress(Log(err()))
    monkeypatch.setattr(shown.log, "progress", lines.append)
    shown.on_step_end(StreamProgress(1200, 3.5, 9, 0.25, 7, 5, 100, {}, None, 0, 0))
    shown.on_step_end(StreamProgress(1200, 0.0, None, None, 7, 5, 100, {}, None, 1, 2, 3000, 4))
    assert lines == [
        "1,200 events  4/s  lag 9  recall 25.00%  7 items  5 paths  M-step in 29 s",
        "1,200 events  0/s  7 items  5 paths  M-step in 100 events  3,000 item changes  4 of removed items  "
        "1 malformed  2 lost",
    ]


def start(events: Path, folder: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "pathdex", "stream", str(events), "--out", str(folder), *FLAGS, "--follow"]
    quick = ["--checkpoint-seconds", "0.1", "--publish-seconds", "0.1"]
    return subprocess.Popen([*command, *quick], stderr=subprocess.DEVNULL, stdout=subprocess.PIPE)


def wait_for(file: Path, process: subprocess.Popen[bytes]) -> None:
    while not file.exists() and process.poll() is None:
        time.sleep(0.05)


def test_sigterm_keeps_everything_and_exits_with_zero(events: Path, tmp_path: Path) -> None:
    process = start(events, tmp_path / "live")
    wait_for(tmp_path / "live" / "state" / "changes-000000002.safetensors", process)
    process.send_signal(signal.SIGTERM)
    assert process.communicate()[0].startswith(os.fsencode(tmp_path / "live"))
    assert process.returncode == 0
    assert library.load(tmp_path / "live").items.kind == "int"


def test_a_killed_stream_continues_to_the_same_bits(pathdex: Pathdex, events: Path, tmp_path: Path) -> None:
    pathdex("stream", events, "--out", tmp_path / "whole", *FLAGS)
    process = start(events, tmp_path / "live")
    wait_for(tmp_path / "live" / "state" / "changes-000000002.safetensors", process)
    process.kill()
    process.communicate()
    pathdex("stream", events, "--out", tmp_path / "live", *FLAGS)
    whole, live = (read_stream_state(tmp_path / name) for name in ("whole", "live"))
    assert whole.values["counters"] == live.values["counters"]
    for name, array in whole.arrays.items():
        if not name.startswith("histories."):
            assert np.array_equal(array, live.arrays[name]), name
