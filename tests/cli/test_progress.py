"""Progress of counted work and of training in a log."""

from __future__ import annotations

import pytest

from pathdex.cli import progress as progress_module
from pathdex.cli.progress import TrainingLog, show_progress, training_callbacks
from pathdex.training.callbacks import StepProgress

STEP = StepProgress("encoder", 1, 2, 30, 1000, {"softmax": 1.5})


@pytest.fixture
def every_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress_module, "LINE_SECONDS", 0.0)


def test_fast_work_writes_nothing_to_a_log(capsys: pytest.CaptureFixture[str]) -> None:
    with show_progress("counting") as progress:
        progress(1, 2)
    TrainingLog().on_step_end(STEP)
    assert capsys.readouterr() == ("", "")


@pytest.mark.usefixtures("every_line")
def test_long_work_writes_lines(capsys: pytest.CaptureFixture[str]) -> None:
    with show_progress("counting") as progress:
        progress(1000, 2000)
        progress(1500, None)
    assert capsys.readouterr().err == "counting: 1,000 of 2,000\ncounting: 1,500\n"


@pytest.mark.usefixtures("every_line")
def test_training_writes_a_line_per_epoch_and_lines_within(capsys: pytest.CaptureFixture[str]) -> None:
    (log,) = training_callbacks() or []
    log.on_step_end(STEP)
    log.on_epoch_end({"phase": "encoder", "number": 1, "softmax": 1.25, "seconds": 3.0})
    assert capsys.readouterr().err == (
        "encoder 1/2  0% done  step 30 of 1,000  softmax 1.5\nencoder 1  softmax 1.25  3.0 s\n"
    )


def test_on_a_terminal_training_shows_its_default_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress_module, "interactive", lambda: True)
    assert training_callbacks() is None


def test_a_log_says_how_much_is_done_and_left(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    monkeypatch.setattr("pathdex.cli.progress.monotonic", lambda: now[0])
    (log,) = training_callbacks() or []
    for seconds, share in ((20.0, 0.1), (40.0, 0.2), (400.0, 0.5)):
        now[0] = seconds
        log.on_step_end(STEP._replace(share=share))
    lines = capsys.readouterr().err.splitlines()
    assert [line.split("  ")[1] for line in lines] == ["10% done", "20% done, 3 min left", "50% done, 8 min left"]
