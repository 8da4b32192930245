"""Ctrl-C and SIGTERM at any time end a command with a message, an exit code, and no traceback."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from pathdex.cli import interrupts
from tests.cli.conftest import TINY

MAIN = "from pathdex.cli import main; main()"
STOPPED_IMPORT = """
import os, signal, sys

class Stop:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            os.kill(os.getpid(), {number})

sys.meta_path.insert(0, Stop())
"""
"""Sends the process a signal while it imports a module."""
STOPPED_TRAINING = """
import os, signal
from pathdex.training.callbacks import JsonLines

JsonLines.on_step_end = lambda self, progress: os.kill(os.getpid(), signal.SIGTERM)
"""


def stopped(module: str, number: int, tmp_path: Path, *arguments: str) -> tuple[int, str]:
    return run_code(STOPPED_IMPORT.format(module=module, number=int(number)), tmp_path, *arguments)


def run_code(before: str, tmp_path: Path, *arguments: str) -> tuple[int, str]:
    command = [sys.executable, "-c", before + MAIN, *arguments]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    return done.returncode, done.stderr


@pytest.mark.parametrize("module", ["typer", "polars", "pathdex.data.describe"])
@pytest.mark.parametrize(
    ("number", "expected"), [(signal.SIGINT, (130, "Interrupted.\n")), (signal.SIGTERM, (143, "Terminated.\n"))]
)
def test_a_signal_within_an_import_is_no_traceback(
    module: str, number: int, expected: tuple[int, str], tmp_path: Path
) -> None:
    (tmp_path / "rows.csv").write_text("user,item\nada,1\n")
    assert stopped(module, number, tmp_path, "data", "describe", "rows.csv") == expected


def test_sigterm_says_how_to_resume_a_training_and_leaves_no_half_written_folder(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("user,item\n" + "".join(f"{u},{i}\n" for u in range(20) for i in range(8)))
    split = ("--valid-users", "3", "--test-users", "3", "--min-interactions", "2")
    code, text = run_code(STOPPED_TRAINING, tmp_path, "train", "rows.csv", "--out", "run", *split, *TINY)
    assert code == 143
    assert "Resume with: pathdex train --out run --resume" in text
    assert "Traceback" not in text
    assert not [one for one in tmp_path.iterdir() if one.name.startswith(".")]


def test_workers_and_ignored_signals_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    before = signal.getsignal(signal.SIGTERM)
    try:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        interrupts.handle_sigterm()
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        monkeypatch.setenv("TORCHELASTIC_RUN_ID", "1")
        interrupts.handle_sigterm()
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    finally:
        signal.signal(signal.SIGTERM, before)
