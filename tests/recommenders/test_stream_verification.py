"""Damage of the state of a stream is found; a good one has no problems."""

from __future__ import annotations

import dataclasses
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import pathdex
from pathdex.experiments.stream_folder import StreamFolder
from pathdex.recommenders import stream_verification
from pathdex.recommenders.stream_trainer import StreamTrainer
from pathdex.recommenders.stream_verification import verify_stream_state
from pathdex.recommenders.verification import verify_model
from pathdex.storage.checkpoint_chain import CheckpointChain
from tests.recommenders.stream_source import ListSource
from tests.recommenders.test_online import SMALL, events
from tests.recommenders.test_stream_trainer import OPTIONS

REQUEST = {"source": "list", "seed": 0}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A stream with four checkpoints, one of them full."""
    folder = tmp_path_factory.mktemp("stream") / "live"
    for stop in (64, 128, 192):
        with StreamFolder.open(folder, REQUEST) as keeper:
            model = pathdex.DeepRetrieval(**SMALL)
            trainer = StreamTrainer(ListSource(events(rounds=2)[:stop]), model, options=OPTIONS, keeper=keeper)
            trainer.run()
            trainer.online.state.histories.close()
    return folder


@pytest.fixture
def stream(finished: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(finished, tmp_path / "live"))


def test_a_good_stream_has_no_problems_and_is_not_changed(stream: Path) -> None:
    before, steps = sorted(stream.rglob("*")), []  # type: tuple[list[Path], list[str]]
    assert verify_model(stream, steps.append) == []
    assert steps[:3] == [
        f"{stream / 'stream.json'}",
        f"{stream / 'state' / 'histories.sqlite'}",
        f"{stream / 'state'}: checkpoints 1 to 4",
    ]
    assert any("base-" in one for one in steps)
    assert sorted(stream.rglob("*")) == before


def test_a_stream_that_has_not_begun_has_no_problems(tmp_path: Path) -> None:
    with StreamFolder.open(tmp_path / "live", REQUEST) as keeper:
        keeper.record_request()
        assert verify_model(tmp_path / "live") == []


def remove_checkpoints(stream: Path) -> None:
    for file in (stream / "state").glob("*.safetensors"):
        file.unlink()


def spoil_checkpoint(stream: Path) -> None:
    file = stream / "state" / "changes-000000003.safetensors"
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)


def write_nan(stream: Path) -> None:
    chain = CheckpointChain(stream / "state")
    last = chain.load()[-1]
    last.arrays["items.rows"][:] = np.nan
    chain.save(last.number, last.values, last.arrays, full=False)


def execute(command: str) -> Callable[[Path], None]:
    def change(stream: Path) -> None:
        with sqlite3.connect(stream / "state" / "histories.sqlite") as connection:
            connection.execute(command)
        connection.close()

    return change


def overwrite_histories(stream: Path) -> None:
    file = stream / "state" / "histories.sqlite"
    file.write_bytes(file.read_bytes()[:100] + b"x" * 4000)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda stream: (stream / "stream.json").write_text("{"), "stream.json is damaged"),
        (lambda stream: (stream / "stream.json").write_text("[]"), "is not the request of a stream"),
        (spoil_checkpoint, "changes-000000003.safetensors is damaged: its content does not match its checksum"),
        (
            lambda stream: (stream / "state" / "changes-000000003.safetensors").unlink(),
            "000000003.safetensors is missing",
        ),
        (write_nan, "items.rows holds NaN or infinity"),
        (remove_checkpoints, "has no checkpoint, but there are histories or a model of one"),
        (overwrite_histories, "histories.sqlite is damaged"),
        (lambda stream: (stream / "state" / "histories.sqlite").unlink(), "checkpoint 0, older than checkpoint 4"),
        (execute("UPDATE commits SET number = 5"), "belongs to checkpoint 5, newer than checkpoint 4"),
        (execute("UPDATE commits SET number = 2"), "belongs to checkpoint 2, older than checkpoint 4"),
        (execute("UPDATE histories SET tokens = x'00' WHERE user = '1'"), "1 histories are cut off"),
    ],
)
def test_damage_is_found(stream: Path, damage: Callable[[Path], object], message: str) -> None:
    damage(stream)
    problems = verify_model(stream)
    assert any(message in one for one in problems), problems


def test_histories_may_be_one_checkpoint_behind(stream: Path) -> None:
    execute("UPDATE commits SET number = 3")(stream)
    assert verify_stream_state(stream) == []


def test_content_that_does_not_fit_together_is_a_problem(stream: Path) -> None:
    chain = CheckpointChain(stream / "state")
    last = chain.load()[-1]
    arrays = {name: one for name, one in last.arrays.items() if name != "slots"}
    chain.save(last.number, last.values, arrays, full=False)
    assert any("is damaged (KeyError('slots'))" in one for one in verify_stream_state(stream))


def test_a_chain_that_is_merged_meanwhile_is_read_again(stream: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Merging(CheckpointChain):
        calls = 0

        def load(self):  # type: ignore[no-untyped-def]
            Merging.calls += 1
            if Merging.calls == 1:
                found = super().load()
                merged = stream_verification.merge_stored(found)
                self.replace(dataclasses.replace(found[-1], values=merged.values, arrays=merged.arrays))
                raise stream_verification.RunError("a file is missing")
            return super().load()

    monkeypatch.setattr(stream_verification, "CheckpointChain", Merging)
    assert verify_stream_state(stream) == []
    assert Merging.calls == 2
