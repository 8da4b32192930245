"""`pathdex train`: what it writes, and what it refuses."""

from __future__ import annotations

import json
import resource
import shutil
from pathlib import Path
from typing import Any

import pytest

from pathdex.data import load_split
from pathdex.experiments.runs import Run
from pathdex.system import TENSORBOARD, Feature
from tests.cli.conftest import TINY, Pathdex, files_under
from tests.recommenders.fakes import RecordedTraining


def test_a_run_holds_the_bundle_the_split_the_log_and_the_request(run: Path) -> None:
    assert {file.name for file in run.iterdir()} == {
        "bundle",
        "LOCK",
        "checkpoint.safetensors",
        "log.jsonl",
        "recording",
        "run.json",
        "split",
    }
    log = [json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()]
    assert [(one["phase"], one["number"]) for one in log] == [
        ("encoder", 1),
        ("encoder", 2),
        *(("structure", number) for number in range(1, 6)),
        ("defaults", 1),
    ]
    split = load_split(run / "split")
    assert (len(split.valid), len(split.test), split.train.num_users) == (5, 6, 49)
    request = json.loads((run / "run.json").read_text())
    assert request["held_out"] == {"kind": "users", "valid_users": 5, "test_users": 6}
    assert request["options"] == {"device": "cpu", "seed": 0, "threads": 1}


def test_progress_goes_to_standard_error_as_plain_lines(pathdex: Pathdex, planted: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    outcome = pathdex("train", planted, "--out", folder, *TINY, "--rounds", 0)
    assert "encoder 1  softmax" in outcome.stderr
    assert "encoder 2  softmax" in outcome.stderr
    assert "\x1b" not in outcome.stderr + outcome.stdout
    assert "\r" not in outcome.stderr + outcome.stdout
    assert f"Evaluate it with: pathdex evaluate {folder}" in outcome.stdout


@pytest.mark.parametrize(
    ("split", "held_out"),
    [
        (["--split", "temporal", "--test-share", 0.2], {"kind": "temporal", "test_share": 0.2}),
        (["--split", "leave-last", "--k", 2], {"kind": "leave-last", "k": 2}),
        ([], {"kind": "users"}),
    ],
)
def test_each_kind_of_split(
    pathdex: Pathdex, planted: Path, tmp_path: Path, split: list[Any], held_out: dict[str, Any]
) -> None:
    pathdex("train", planted, "--out", tmp_path / "run", *TINY, "--epochs", 1, "--rounds", 0, *split)
    assert json.loads((tmp_path / "run" / "run.json").read_text())["held_out"] == held_out
    assert len(load_split(tmp_path / "run" / "split").test) > 0


def test_all_problems_are_listed_before_the_data_is_read(pathdex: Pathdex, tmp_path: Path) -> None:
    text = pathdex(
        *("train", tmp_path / "nowhere.csv", "--out", tmp_path / "run"),
        *("--num-nodes", 1, "--beam-size", 0, "--seed", -1, "--threads", 0, "--min-interactions", 0),
        *("--device", "tpu", "--test-users", -3, "--k", 2),
        fails=1,
    ).stderr
    for problem in (
        "num_nodes=1: must be at least 2",
        "beam_size=0: must be at least 1",
        "seed=-1: must be at least 0",
        "threads=0: must be at least 1",
        "min_interactions=0: must be a whole number of at least 1",
        "device='tpu': this machine has cpu",
        "test_users=-3: must be a whole number of at least 0",
        "k=2: belongs to split='leave-last', not 'users'; leave it out",
    ):
        assert problem in text
    assert "8 problems" in text
    assert "nowhere.csv" not in text
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--paths-per-item", 9, "--num-nodes", 2, "--depth", 3], "paths_per_item=9: "),
        (["--candidate-paths", 2, "--paths-per-item", 3], "candidate_paths=2: "),
        (["--num-nodes", 100000, "--depth", 16], "2^62"),
        (["--preset", "smal"], "did you mean 'small'?"),
        (["--split", "random"], "split='random': must be one of users, temporal, leave-last"),
        (["--softmax", "ful"], "did you mean 'full'?"),
    ],
)
def test_inconsistent_hyper_parameters(
    pathdex: Pathdex, planted: Path, tmp_path: Path, flags: list[Any], message: str
) -> None:
    assert message in pathdex("train", planted, "--out", tmp_path / "run", *flags, fails=1).stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("epoch = 3\n", "epoch=3: is not a hyper-parameter; did you mean 'epochs'?"),
        ("epochs = 'many'\n", "epochs='many': must be a whole number"),
        ("epochs 3\n", "is not TOML"),
        ("preset = 3\n", "preset=3: must be one of"),
    ],
)
def test_a_bad_config_file(pathdex: Pathdex, planted: Path, tmp_path: Path, content: str, message: str) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(content)
    assert message in pathdex("train", planted, "--out", tmp_path / "run", "--config", file, fails=1).stderr
    assert list(tmp_path.iterdir()) == [file]


def test_a_config_file_that_is_not_there(pathdex: Pathdex, planted: Path, tmp_path: Path) -> None:
    text = pathdex("train", planted, "--out", tmp_path / "run", "--config", tmp_path / "no.toml", fails=1).stderr
    assert "cannot be read (No such file or directory); check the path" in text


def test_more_held_out_users_than_there_are(pathdex: Pathdex, planted: Path, tmp_path: Path) -> None:
    text = pathdex("train", planted, "--out", tmp_path / "run", "--test-users", 100, fails=1).stderr
    assert "valid_users + test_users=109: only 60 of 60 users" in text
    assert list(tmp_path.iterdir()) == []


def test_an_existing_folder_is_left_alone(pathdex: Pathdex, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "mine.txt").write_text("keep")
    text = pathdex("train", tmp_path / "nowhere.csv", "--out", folder, fails=1).stderr
    assert text == f"Error: {folder} exists and is not a run folder; choose another folder\n"
    assert files_under(tmp_path) == {"run/mine.txt": b"keep"}


def test_data_is_needed_without_resume(pathdex: Pathdex, tmp_path: Path) -> None:
    text = pathdex("train", "--out", tmp_path / "run", fails=1).stderr
    assert "DATA is missing; pass the file to train on, or --resume to resume a run" in text


def test_a_full_disk_leaves_nothing_behind(pathdex: Pathdex, planted: Path, tmp_path: Path) -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (200, hard))
    try:
        outcome = pathdex("train", planted, "--out", tmp_path / "run", *TINY, fails=1)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    assert outcome.stderr.splitlines()[-1].startswith(f"Error: cannot write {tmp_path / 'run'}")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("tracker", ["tensorboard", "mlflow", "wandb"])
def test_a_missing_tracker_is_reported_before_data_is_read(
    pathdex: Pathdex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tracker: str
) -> None:
    monkeypatch.setattr(f"pathdex.system.{tracker.upper()}", Feature("logging", "no_such_package", tracker))
    text = pathdex("train", tmp_path / "x.csv", "--out", tmp_path / "run", f"--{tracker}", fails=1).stderr
    assert f"needs no_such_package; install it with: pip install 'pathdex[{tracker}]'" in text


def test_trackers_are_called(pathdex: Pathdex, planted: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: dict[str, RecordedTraining] = {}

    def make(tracker: str, folder: Path, params: dict[str, Any]) -> RecordedTraining:
        assert folder == tmp_path / "run"
        assert params["embedding_dim"] == 8
        return made.setdefault(tracker, RecordedTraining())

    monkeypatch.setattr("pathdex.experiments.runs.make_tracker", make)
    for name in ("MLFLOW", "WANDB"):
        monkeypatch.setattr(f"pathdex.system.{name}", TENSORBOARD)
    pathdex("train", planted, "--out", tmp_path / "run", *TINY, "--mlflow", "--wandb")
    assert list(made) == ["mlflow", "wandb"]
    assert all(one.calls == ["begin", "end"] and len(one.records) == 8 for one in made.values())


def test_resuming_a_finished_run_changes_nothing(pathdex: Pathdex, run: Path, planted: Path) -> None:
    before = files_under(run)
    outcome = pathdex("train", planted, "--out", run, "--resume", "--epochs", 2, "--seed", 0)
    assert f"{run} is already finished." in outcome.stderr
    assert files_under(run) == before


def test_resume_refuses_other_options(pathdex: Pathdex, run: Path, tmp_path: Path) -> None:
    before = files_under(run)
    flags = ["--epochs", 5, "--seed", 1, "--test-users", 3, "--min-rating", 4]
    text = pathdex("train", tmp_path / "other.csv", "--out", run, "--resume", *flags, fails=1).stderr
    for words in (
        "epochs=5, but the run has 2",
        "seed=1, but the run has 0",
        "test_users=3, but the run has 6",
        "min_rating=4.0, but the run has None",
        "leave these out, or train into a new folder",
    ):
        assert words in text
    assert f"DATA='{tmp_path / 'other.csv'}', but the run has" in text
    assert files_under(run) == before


def test_resume_needs_a_run(pathdex: Pathdex, tmp_path: Path) -> None:
    text = pathdex("train", "--out", tmp_path / "run", "--resume", fails=1).stderr
    assert "is not a run folder; pass the --out of `pathdex train`" in text
    (tmp_path / "run").mkdir()
    text = pathdex("train", "--out", tmp_path / "run", "--resume", fails=1).stderr
    assert "has no run.json" in text


def test_ctrl_c_says_how_to_resume(
    pathdex: Pathdex, planted: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Run, "train", interrupt)
    folder = tmp_path / "run"
    text = pathdex("train", planted, "--out", folder, *TINY, fails=130).stderr
    assert f"Interrupted. Resume with: pathdex train --out {folder} --resume" in text
    assert (folder / "run.json").exists()


def test_ctrl_c_while_data_is_prepared_leaves_no_folder(
    pathdex: Pathdex, planted: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("pathdex.experiments.runs.save_split", interrupt)
    pathdex("train", planted, "--out", tmp_path / "run", *TINY, fails=130)
    assert list(tmp_path.iterdir()) == []


def test_an_item_table_is_part_of_the_run(pathdex: Pathdex, planted: Path, titled_run: Path, tmp_path: Path) -> None:
    run = Run.open(titled_run)
    assert run.request["items"]["source"].endswith("items.csv")
    details = run.details()
    assert details is not None
    assert details.title(3) == "Item 3"
    # A resumed run reads the table of the run, not the file, which may have changed.
    begun = Run(tmp_path / "begun", run.request)
    shutil.copytree(titled_run, begun.path, ignore=shutil.ignore_patterns("bundle", "LOCK"))
    items = Path(run.request["items"]["source"])
    pathdex("train", "--out", begun.path, "--resume", "--items", items)
    assert begun.model().recommend([1], 1)[0].title is not None
    other = pathdex("train", "--out", begun.path, "--resume", "--items", planted, fails=1).stderr
    assert "a run is resumed with its own options: source=" in other
    alone = pathdex("train", planted, "--out", tmp_path / "new", "--title", "name", fails=1).stderr
    assert "title: there is no item table; name the file with --items" in alone
