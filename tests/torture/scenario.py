"""What is interrupted: an operation in steps, with a way to read the state that it leaves on disk.

After a crash the state is the one before the step that was running, or the one after it. The remaining steps then lead
to the same end as without the crash.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any


class Scenario:
    """Steps that change a folder, and the state that they leave in it."""

    steps = 1
    seconds = 0.0
    """Set by the driver: how long all steps take."""
    share = 1.0
    """Of the kills, beside other scenarios."""
    is_repeatable = True
    """Whether the calls are the same in every run."""
    sweeps = True
    """Whether the steps leave no staging folder behind, also those of crashes before."""
    messages: Mapping[str, str] = {"full disk": "No space left", "failing disk": "Input/output error"}
    """What the error of each fault says."""

    @property
    def name(self) -> str:
        return type(self).__name__

    def prepare(self, root: Path) -> None:
        """The state before the first step."""

    def open(self, root: Path) -> Any:
        """What the steps need, in a folder in any state."""
        return root

    def step(self, session: Any, number: int) -> None:
        """One step; it is acknowledged when this returns."""
        raise NotImplementedError

    def close(self, session: Any) -> None:
        """The end of a session."""

    def state(self, root: Path) -> str:
        """The state in the folder; raises if it cannot be read."""
        raise NotImplementedError

    def following(self, found: str, done: int, states: Sequence[str]) -> int | None:
        """The next step, if the state is allowed after so many acknowledged ones; None if it is not."""
        return next((number for number in (done, done + 1) if states[number : number + 1] == [found]), None)

    def message(self, fault: str, paths: Sequence[str]) -> str:
        """What the error of a fault must match, if calls for these paths failed.

        SQLite has its own words, and none for the reason why it cannot create a file.
        """
        expected = self.messages.get(fault, "")
        if expected and any(".sqlite" in path for path in paths):
            return f"{expected}|database or disk is full|disk I/O error|check the file and the free disk space"
        return expected

    def is_end(self, found: str, states: Sequence[str]) -> bool:
        """Whether all steps count. Steps may have been repeated."""
        return found == states[-1]
