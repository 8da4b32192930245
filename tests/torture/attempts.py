"""One fault, one crash, and the recovery from it."""

from __future__ import annotations

import errno
import os
import random
import re
import shutil
import signal
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pathdex.errors import PathdexError
from tests.torture.children import Outcome, Send, in_child
from tests.torture.io_calls import PART, PROCEED, Call, Change, Watch
from tests.torture.power_cuts import Disk, Recording
from tests.torture.scenario import Scenario

FAULTS = {"full disk": errno.ENOSPC, "failing disk": errno.EIO, "short write": None}
Site = tuple[str, int]
"""A file of the source, and a line."""
AT_CALLS, AT_A_MOMENT = ("before a call", "after a call", "within a write"), "at a moment"
"""Ways to kill."""
_NEED_SPACE = {"open", "create", "write", "mkdir", "rename", "exchange", "link", "sync"}


@dataclass
class Case:
    """A scenario, its undisturbed run, and a folder for its experiments."""

    scenario: Scenario
    folder: Path
    states: list[str] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    changes: list[Change] = field(default_factory=list)

    @property
    def root(self) -> Path:
        """The same for all experiments, since some states hold their own path."""
        return self.folder / "root"

    def reset(self) -> None:
        """Return to the state before the first step."""
        shutil.rmtree(self.root, ignore_errors=True)
        shutil.copytree(self.folder / "prepared", self.root)


def undisturbed(scenario: Scenario, folder: Path) -> Case:
    """Run a scenario once to see its states, its calls and its changes."""
    case = Case(scenario, folder)
    (folder / "prepared").mkdir(parents=True)

    def look(_: Send) -> list[str]:
        scenario.prepare(folder / "prepared")
        case.reset()
        states = [scenario.state(case.root)]
        case.reset()
        session = scenario.open(case.root)
        for number in range(scenario.steps):
            scenario.step(session, number)
            states.append(scenario.state(case.root))
        scenario.close(session)
        return states

    def record(_: Send) -> Any:
        case.reset()
        with Watch(case.root) as watch:
            session = scenario.open(case.root)
            for number in range(scenario.steps):
                scenario.step(session, number)
                watch.changes.append(Change("done"))
            scenario.close(session)
        return watch.calls, watch.changes

    for work in (look, record):
        found = in_child(work)
        if found.error:
            raise RuntimeError(f"{scenario.name}: {found.error}")
        if work is look:
            case.states = found.value
    case.calls, case.changes = found.value
    scenario.seconds = found.seconds
    return case


def try_fault(case: Case, numbers: Sequence[int], fault: str) -> Outcome:
    """Let calls fail. The error must be ours, the state one of the two, and the step must succeed when repeated.

    Sends the calls that failed, and returns those after the first of them.
    """
    scenario, code = case.scenario, FAULTS[fault]
    failed: list[Call] = []
    changes_before, is_full = 0, False
    case.reset()

    def work(send: Send) -> Any:
        def decide(call: Call) -> int:
            nonlocal changes_before, is_full
            # A full disk stays full until somebody notices.
            if is_full and call.kind in _NEED_SPACE:
                failed.append(call)
                return errno.ENOSPC
            if call.number not in numbers or (code is None and call.kind != "write"):
                return PROCEED
            failed.append(call)
            send(call)
            changes_before, is_full = len(watch.changes), code == errno.ENOSPC
            return PART if code is None else code

        nonlocal is_full
        watch = Watch(case.root, decide)
        done, session, errors = 0, None, []
        with watch:
            while True:
                try:
                    session = scenario.open(case.root) if session is None else session
                    while done < scenario.steps:
                        scenario.step(session, done)
                        done += 1
                        watch.changes.append(Change("done"))
                    scenario.close(session)
                    break
                except Exception as error:
                    is_full = False
                    errors.append(error)
                    if len(errors) > 2 * len(numbers) - 1:
                        raise
                    if len(errors) == 1:
                        _check_error(error, scenario.message(fault, [call.path for call in failed]))
                    if done == scenario.steps:
                        break
                    calls = len(watch.calls)
                    with watch.paused():
                        found = scenario.state(case.root)
                    assert len(watch.calls) == calls
                    following = scenario.following(found, done, case.states)
                    if following is None:
                        raise AssertionError(f"after step {done}: the state is {found}") from error
                    # A step that was undone in vain counts, and is refused when repeated.
                    in_vain = len(errors) > 1 or [call.kind for call in failed[-2:]] == ["sync", "rename"]
                    done = following if in_vain else done
        found = scenario.state(case.root)
        if not scenario.is_end(found, case.states):
            raise AssertionError(f"the state at the end is {found}") from (errors or [None])[0]
        if failed and code and not errors and failed[0].kind == "sync":
            _check_unnoticed(case, watch.changes, changes_before)
        return watch.calls[min(numbers) + 1 :]

    return in_child(work)


def _check_unnoticed(case: Case, changes: Sequence[Change], before: int) -> None:
    """A sync failed and nobody noticed: a power cut after a later step must leave that step.

    `before` is the number of changes before the failed sync, which is not among them. Such syncs are those of SQLite
    when it writes its log back, after all commits were synced, and those before something is swept.
    """
    recording = Recording.of(Disk.read(case.folder / "prepared"), case.root, changes)
    ends = [place + 1 for place, event in enumerate(recording.events) if event is None]
    done_before = sum(change.kind == "done" for change in changes[:before])
    for cut in [*ends[done_before:], len(recording.events)]:
        for sample in range(1, 4):
            disk, done = recording.cut(cut, random.Random(sample), sample), recording.events[:cut].count(None)
            shutil.rmtree(case.root)
            disk.write(case.root)
            found = case.scenario.state(case.root)
            if case.scenario.following(found, done, case.states) is None:
                raise AssertionError(f"not noticed, and after a power cut and {done} steps the state is {found}")


def _check_error(error: Exception, message: str) -> None:
    if not isinstance(error, PathdexError):
        raise AssertionError(f"a raw {type(error).__name__}") from error
    if not re.search(message, str(error)):
        raise AssertionError(f"the message does not say what is wrong: {error}") from error


def recover(case: Case, done: int) -> Outcome:
    """Read the state after a crash in a new process, and go on to the end."""
    scenario = case.scenario

    def work(_: Send) -> Any:
        found = scenario.state(case.root)
        following = scenario.following(found, done, case.states)
        if following is None:
            raise AssertionError(f"after {done} acknowledged steps the state is {found}")
        session = scenario.open(case.root)
        for number in range(following, scenario.steps):
            scenario.step(session, number)
        scenario.close(session)
        end = scenario.state(case.root)
        if not scenario.is_end(end, case.states):
            raise AssertionError(f"continued from step {following}, the state at the end is {end}")
        left = [str(path.relative_to(case.root)) for path in case.root.rglob("*.staging") if any(path.iterdir())]
        if left and following < scenario.steps and scenario.sweeps:
            raise AssertionError(f"left behind: {left}")
        return following - done

    return in_child(work)


def kill_once(case: Case, draws: random.Random, ways: Sequence[str]) -> tuple[str, Outcome, int]:
    """Kill a process at a random moment: before, in or after a call, or after some time. Returns how, and the steps."""
    number = draws.randrange(len(case.calls))
    way = draws.choice(ways)
    writes = [call.number for call in case.calls if call.kind == "write"]
    if way == "within a write" and writes:
        number = draws.choice(writes)

    def decide(call: Call) -> int:
        if call.number == number and way == "before a call":
            os.kill(os.getpid(), signal.SIGKILL)
        return PART if call.number == number and way == "within a write" else PROCEED

    def follow(at: int, _: Change) -> None:
        if at == number and way in ("after a call", "within a write"):
            os.kill(os.getpid(), signal.SIGKILL)

    def work(send: Send) -> None:
        with Watch(case.root, decide, follow):
            session = case.scenario.open(case.root)
            for step in range(case.scenario.steps):
                case.scenario.step(session, step)
                send(step)
            case.scenario.close(session)

    case.reset()
    timed = draws.uniform(0.0, case.scenario.seconds) if way == AT_A_MOMENT else None
    killed = in_child(work, kill_after=timed)
    return way, killed, len(killed.sent)
