"""Signs of life while a step is long."""

from __future__ import annotations

from threading import Event

import numba
import pytest

from pathdex.cli import progress as progress_module
from pathdex.cli.heartbeat import Compiling, Heartbeat
from pathdex.cli.progress import TrainingLog
from pathdex.training.callbacks import StepProgress


def test_what_is_compiled_is_known_while_it_is_compiled() -> None:
    seen = []

    @numba.extending.register_jitable
    def one() -> int:
        return 1

    @numba.njit
    def first_use() -> int:
        return one()

    class Watch(list[str]):
        def append(self, name: str) -> None:
            super().append(name)
            seen.append(compiling.name)

    with Compiling() as compiling:
        compiling.names = Watch()
        compiling.__exit__()
        compiling.__enter__()
        first_use()
        assert "first_use" in seen
        assert compiling.name is None
        seen.clear()
        first_use()
    assert not seen


def test_it_beats_until_it_is_stopped() -> None:
    beaten = Event()
    heart = Heartbeat(lambda name: beaten.set(), 0.001)
    heart.start()
    assert beaten.wait(60)
    heart.stop()
    assert not heart.thread.is_alive()


def test_a_log_shows_what_a_silent_training_does(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    log = TrainingLog()
    log.on_beat("walk")
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(progress_module, "LINE_SECONDS", 0.0)
    log.on_beat("walk")
    log.on_beat(None)
    log.on_step_end(StepProgress("structure", 2, 6, 18, 18, {}, 0.5))
    log.on_beat("walk")
    log.on_beat(None)
    first, second, _, third, fourth = capsys.readouterr().err.splitlines()
    assert first == "begin  compiling walk, once on this machine"
    assert second == "begin  working"
    assert third == "structure 2/6  after step 18 of 18  compiling walk, once on this machine"
    assert fourth == "structure 2/6  after step 18 of 18  working"


def test_a_training_starts_and_stops_it(monkeypatch: pytest.MonkeyPatch) -> None:
    log = TrainingLog()
    log.on_train_begin()
    assert log.heartbeat is not None
    thread = log.heartbeat.thread
    assert thread.is_alive()
    log.on_train_end()
    assert not thread.is_alive()
    log.on_train_end()
