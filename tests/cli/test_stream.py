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
from pathdex.storage.checkpoint import load_checkpoint
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


def test_malformed_events_are_counted_and_kept_apart(pathdex: Pathdex, events: Path, tmp_path: Path) -> None:
    with events.open("a") as file:
        file.write('{"user": 1}\nnonsense\n')
    outcome = pathdex("stream", events, "--out", tmp_path / "live", *FLAGS)
    assert "2 malformed events are in" in outcome.stdout.replace("\n", " ")
    letters = (tmp_path / "live" / "state" / "dead-letters.jsonl").read_text().splitlines()
    assert [json.loads(one)["raw"] for one in letters] == ['{"user": 1}', "nonsense"]


def test_a_trained_run_is_continued(pathdex: Pathdex, run: Path, tmp_path: Path) -> None:
    known = library.load(run)
    file = tmp_path / "new.jsonl"
    file.write_text(json.dumps({"user": "someone", "item": "brand-new"}) + "\n")
    pathdex("stream", file, "--from", run, "--out", tmp_path / "live")
    assert len(library.load(tmp_path / "live").items) == len(known.items) + 1


def test_other_columns_are_another_request(pathdex: Pathdex, events: Path, tmp_path: Path) -> None:
    pathdex("stream", events, "--out", tmp_path / "live", *FLAGS)
    swapped = pathdex("stream", events, "--out", tmp_path / "live", "--user", "item", "--item", "user", *FLAGS, fails=1)
    assert "was started with columns" in swapped.stderr


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
        (["EVENTS", "--batch-events", "0"], "batch_events"),
        (["EVENTS", "--embedding-dim", "0"], "embedding_dim"),
    ],
)
def test_wrong_input_is_one_sentence(
    pathdex: Pathdex, events: Path, tmp_path: Path, arguments: list[str], message: str
) -> None:
    given = [str(events) if one == "EVENTS" else one for one in arguments]
    outcome = pathdex("stream", *given, "--out", tmp_path / "live", fails=1)
    assert message in outcome.stderr
    assert "Traceback" not in outcome.stderr


def test_hyper_parameters_cannot_change_with_a_model(pathdex: Pathdex, run: Path, events: Path, tmp_path: Path) -> None:
    outcome = pathdex("stream", events, "--from", run, "--out", tmp_path / "live", "--epochs", 3, fails=2)
    assert "--epochs" in outcome.stderr


def start(events: Path, folder: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "pathdex", "stream", str(events), "--out", str(folder), *FLAGS, "--follow"]
    quick = ["--checkpoint-seconds", "0.1", "--publish-seconds", "0.1"]
    return subprocess.Popen([*command, *quick], stderr=subprocess.DEVNULL, stdout=subprocess.PIPE)


def wait_for(file: Path, process: subprocess.Popen[bytes]) -> None:
    while not file.exists() and process.poll() is None:
        time.sleep(0.05)


def test_sigterm_keeps_everything_and_exits_with_zero(events: Path, tmp_path: Path) -> None:
    process = start(events, tmp_path / "live")
    wait_for(tmp_path / "live" / "state" / "checkpoint.safetensors", process)
    process.send_signal(signal.SIGTERM)
    assert process.communicate()[0].startswith(os.fsencode(tmp_path / "live"))
    assert process.returncode == 0
    assert library.load(tmp_path / "live").items.kind == "int"


def test_a_killed_stream_continues_to_the_same_bits(pathdex: Pathdex, events: Path, tmp_path: Path) -> None:
    pathdex("stream", events, "--out", tmp_path / "whole", *FLAGS)
    process = start(events, tmp_path / "live")
    wait_for(tmp_path / "live" / "state" / "checkpoint.safetensors", process)
    process.kill()
    process.communicate()
    pathdex("stream", events, "--out", tmp_path / "live", *FLAGS)
    found = [load_checkpoint(tmp_path / name / "state" / "checkpoint.safetensors") for name in ("whole", "live")]
    assert found[0][0]["counters"] == found[1][0]["counters"]
    for name, array in found[0][1].items():
        if not name.startswith("histories."):
            assert np.array_equal(array, found[1][1][name]), name
