"""Callbacks: when they are called, and what they print."""

import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from pathdex.errors import ConfigError, StorageError
from pathdex.training.callbacks import (
    Callback,
    JsonLines,
    ProgressBar,
    StepProgress,
    default_callbacks,
    describe_record,
    following,
    format_figures,
)
from tests.recommenders.fakes import RecordedTraining

STEP = StepProgress("als", 1, 1, 2, 5, {"loss": 0.5})
RECORD = {"phase": "als", "number": 1, "loss": 0.25, "seconds": 0.0}


def test_all_callbacks_are_called() -> None:
    first, second = RecordedTraining(), RecordedTraining()
    with following([first, second]) as callback:
        callback.on_step_end(STEP)
        callback.on_epoch_end(RECORD)
    for one in (first, second):
        assert one.calls == ["begin", "end"]
        assert one.steps == [("als", 2, 5)]
        assert one.records == [RECORD]


def test_on_train_end_is_called_after_a_failure() -> None:
    one = RecordedTraining()
    with pytest.raises(KeyboardInterrupt), following([one]):
        raise KeyboardInterrupt
    assert one.calls == ["begin", "KeyboardInterrupt", "end"]


def test_default_is_a_progress_bar_on_a_terminal_only(monkeypatch: pytest.MonkeyPatch) -> None:
    assert default_callbacks() == []
    monkeypatch.setattr("pathdex.training.callbacks.interactive", lambda: True)
    assert [type(one) for one in default_callbacks()] == [ProgressBar]


def test_all_methods_are_optional() -> None:
    with following([Callback()]) as callback:
        callback.on_step_end(STEP)
        callback.on_epoch_end(RECORD)


def test_progress_bar_prints_epochs_on_a_terminal_only() -> None:
    for terminal, printed in ((True, "als 1  loss 0.25  0.0 s"), (False, "")):
        stream = io.StringIO()
        with following([ProgressBar(Console(file=stream, force_terminal=terminal, width=80))]) as callback:
            callback.on_step_end(STEP)
            callback.on_epoch_end(RECORD)
        assert printed in stream.getvalue()
        assert bool(stream.getvalue()) is terminal


def test_the_bar_is_for_the_whole_training_and_shows_the_validation_figure() -> None:
    stream = io.StringIO()
    bar = ProgressBar(Console(file=stream, force_terminal=True, width=80))
    with following([bar]) as callback:
        callback.on_step_end(StepProgress("encoder", 2, 4, 1, 5, {"loss": 0.5}, 0.25))
        assert bar.progress.tasks[0].fields["figure"] == "loss 0.5"
        callback.on_epoch_end({**RECORD, "held_out_f": 0.123})
        callback.on_step_end(StepProgress("structure", 1, 4, 1, 5, {"structure": 0.5}, 0.5))
        task = bar.progress.tasks[0]
        assert (task.description, task.percentage, task.fields["figure"]) == ("structure 1/4", 50, "valid F 12.30%")
        bar.progress.refresh()
    assert len(bar.progress.tasks) == 1
    assert " 50%" in stream.getvalue()
    assert "valid F 12.30%" in stream.getvalue()


def test_json_lines_appends_one_line_per_record(tmp_path: Path) -> None:
    log = JsonLines(tmp_path / "log.jsonl")
    log.on_epoch_end(RECORD)
    log.on_epoch_end({**RECORD, "number": 2})
    lines = (tmp_path / "log.jsonl").read_text().splitlines()
    assert [json.loads(line)["number"] for line in lines] == [1, 2]


def test_figures_have_four_digits_and_counts_have_commas() -> None:
    assert (
        format_figures({"loss": 1.23456, "used_paths": 12345, "note": "x"}) == "loss 1.235  used_paths 12,345  note x"
    )
    assert describe_record({**RECORD, "seconds": 1.26, "other": 1}) == "als 1  loss 0.25  1.3 s"


def test_one_callback_may_be_passed_alone_and_anything_else_is_refused() -> None:
    alone = RecordedTraining()
    with following(alone):  # type: ignore[arg-type]
        pass
    assert alone.calls == ["begin", "end"]
    with (
        pytest.raises(ConfigError, match=r"callbacks=\[3\]: must hold callbacks; subclass pathdex.Callback"),
        following([3]),
    ):  # type: ignore[list-item]
        pass


def test_a_log_that_cannot_be_written_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=r"cannot write .*log\.jsonl: No such file or directory; free space"):
        JsonLines(tmp_path / "missing" / "log.jsonl").on_epoch_end(RECORD)
