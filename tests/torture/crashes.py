"""Saving, training, publishing and storing, interrupted: failing calls, kill -9 and power cuts.

Every experiment runs in forked children. The folder is watched from the opening of a session on; a step counts as
acknowledged when it has returned.
"""

from __future__ import annotations

import errno
import json
import os
import random
import re
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pathdex.errors import PathdexError
from pathdex.storage import atomic
from tests.torture.call_sites import all_sites, untested_sites
from tests.torture.children import Outcome, Send, in_child
from tests.torture.io_calls import PART, PROCEED, Call, Change, Watch
from tests.torture.power_cuts import Disk, Recording
from tests.torture.scenario import Scenario
from tests.torture.scenarios import all_scenarios

FAULTS = {"full disk": errno.ENOSPC, "failing disk": errno.EIO, "short write": None}
_TAKE_SPACE = {"create", "open", "mkdir", "write"}
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

    Returns the calls after the first failing one.
    """
    scenario, code = case.scenario, FAULTS[fault]
    case.reset()
    fired: list[Call] = []
    is_full = False

    def decide(call: Call) -> int:
        nonlocal is_full
        if call.number in numbers and not (code is None and call.kind != "write"):
            fired.append(call)
            is_full = code == errno.ENOSPC
            return PART if code is None else code
        # A full disk stays full until somebody notices.
        return errno.ENOSPC if is_full and call.kind in _NEED_SPACE else PROCEED

    def work(_: Send) -> Any:
        nonlocal is_full
        done, session, failures = 0, None, []
        with Watch(case.root, decide) as watch:
            while True:
                try:
                    session = scenario.open(case.root) if session is None else session
                    while done < scenario.steps:
                        scenario.step(session, done)
                        done += 1
                    scenario.close(session)
                    break
                except Exception as error:
                    is_full = False
                    failures.append(error)
                    if len(failures) > 2 * len(numbers) - 1:
                        raise
                    if len(failures) == 1:
                        _check_error(error, scenario.messages.get(fault, ""))
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
                    done = following if len(failures) > 1 else done
        found = scenario.state(case.root)
        if not scenario.is_end(found, case.states):
            raise AssertionError(f"the state at the end is {found}") from (failures or [None])[0]
        if fired and code and not failures and _must_be_noticed(fired[0], scenario):
            raise AssertionError(f"a failed sync of {fired[0].path} was not noticed")
        return watch.calls[min(numbers) + 1 :]

    return in_child(work)


def _must_be_noticed(call: Call, scenario: Scenario) -> bool:
    """Whether something that was acknowledged depends on the call.

    SQLite syncs once more when it is closed, outside of our code; all commits were synced before. What cannot be swept
    is swept later.
    """
    sweeps = any(file == "storage/staging.py" for file, _ in call.sites[1:2])
    return call.kind == "sync" and bool(call.sites) and not sweeps and not call.path.endswith(scenario.unpromised)


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


def kill_once(case: Case, draws: random.Random) -> tuple[str, Outcome, int]:
    """Kill a process at a random moment: before, in or after a call, or after some time. Returns how, and the steps."""
    number = draws.randrange(len(case.calls))
    way = draws.choice(["before a call", "after a call", "within a write", "at a moment"])
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
    timed = draws.uniform(0.0, case.scenario.seconds) if way == "at a moment" else None
    killed = in_child(work, kill_after=timed)
    return way, killed, len(killed.sent)


class Report:
    """Counts and failures."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.failures: list[dict[str, Any]] = []

    def add(self, what: str, case: Case, found: Outcome, **facts: Any) -> None:
        self.counts[what] += 1
        if found.error:
            failure = {"what": what, "scenario": case.scenario.name, **facts, "error": found.error}
            self.failures.append(failure)
            print(json.dumps(failure), file=sys.stderr, flush=True)


def inject_faults(cases: Sequence[Case], report: Report, per_site: int) -> set[tuple[str, int]]:
    """Let calls fail in every way: so many of each line of the source, scenario and kind.

    With 0 it is the short form: one call of each kind and line, until every line that changes files was on the stack of
    a failing one. Lines that run only after a failure are made to fail as well, as a second fault. Returns the lines
    that were on the stack of a failing call.
    """
    failed: set[tuple[str, int]] = set()
    seen: Counter[Any] = Counter()
    lines = {(site.file, line) for site in all_sites() for line in range(site.first, site.last + 1)}

    def attempt(case: Case, calls: Sequence[Call], fault: str) -> list[Call]:
        found = try_fault(case, [call.number for call in calls], fault)
        failed.update(site for call in calls for site in call.sites)
        facts = [{"call": one.number, "kind": one.kind, "path": one.path, "sites": one.sites[:6]} for one in calls]
        report.add("faults", case, found, fault=fault, calls=facts)
        report.counts[f"faults: {case.scenario.name}"] += 1
        return found.value or []

    # The quick ones first: what they have in common with slow ones need not be repeated there.
    for case in sorted(cases, key=lambda one: one.scenario.share, reverse=True):
        later: dict[tuple[str, int], tuple[Call, Call]] = {}
        for call in case.calls:
            key = _group(case.scenario, call, is_short=not per_site)
            seen[key] += 1
            is_new = seen[key] <= max(1, per_site)
            if not (is_new if per_site else is_new or set(call.sites) & lines - failed):
                continue
            for fault in FAULTS if is_new else ("failing disk",):
                if fault == "short write" and (call.kind != "write" or call.size < 2):
                    continue
                if not per_site and fault == "full disk" and call.kind not in _TAKE_SPACE:
                    continue
                following = attempt(case, [call], fault)
                if fault == "failing disk":
                    for second in following:
                        for site in set(second.sites) & lines:
                            later.setdefault(site, (call, second))
        planned = {site for call in case.calls for site in call.sites}
        for site, calls in later.items():
            if site not in failed and site not in planned:
                attempt(case, calls, "failing disk")
    return failed


def _group(scenario: Scenario, call: Call, *, is_short: bool) -> tuple[Any, ...]:
    """Calls that are alike: of the same line, in the short form; else of the same lines, in the same scenario."""
    if is_short:
        return call.kind, call.sites[:1]
    return call.kind, call.sites[: 4 if scenario.share >= 1.0 else 2], scenario.name


def cut_power(cases: Sequence[Case], report: Report, draws: random.Random, count: int) -> None:
    """Try `count` different states after power cuts, in turn of every scenario."""
    seen: set[int] = set()
    waiting = {case.scenario.name: _states(case, draws) for case in cases}
    tried: Counter[str] = Counter()
    by_name = {case.scenario.name: case for case in cases}
    while waiting and sum(tried.values()) < count:
        # As many of each; a slow scenario gets fewer.
        name = min(waiting, key=lambda one: tried[one] / by_name[one].scenario.share)
        case = by_name[name]
        state = next(waiting[name], None)
        if state is None:
            del waiting[name]
            continue
        cut, done, disk = state
        key = hash((name, done, repr(sorted(disk.names.items())), repr(sorted(disk.files.items()))))
        if key in seen:
            continue
        seen.add(key)
        tried[name] += 1
        shutil.rmtree(case.root, ignore_errors=True)
        disk.write(case.root)
        found = recover(case, done)
        report.add("power cuts", case, found, cut=cut, done=done)
        report.counts[f"power cuts: {name}"] += 1


def _states(case: Case, draws: random.Random) -> Any:
    recording = Recording.of(Disk.read(case.folder / "prepared"), case.root, case.changes)
    cuts = [(cut, sample) for cut in range(len(recording.events) + 1) for sample in range(40)]
    draws.shuffle(cuts)
    for cut, sample in cuts:
        yield cut, recording.events[:cut].count(None), recording.cut(cut, draws, sample)


def kill(cases: Sequence[Case], report: Report, draws: random.Random, count: int) -> None:
    """Kill processes, each once, and recover from what they leave."""
    while report.counts["kills"] < count:
        (case,) = draws.choices(cases, [case.scenario.share for case in cases])
        way, killed, done = kill_once(case, draws)
        if not killed.was_killed and not killed.error:
            # It ended before; the machine may be faster now.
            case.scenario.seconds = min(case.scenario.seconds, killed.seconds)
            continue
        report.add("kills", case, killed if killed.error else recover(case, done), way=way, done=done)
        report.counts[f"kills {way}"] += 1
        report.counts[f"kills: {case.scenario.name}"] += 1


def torture(
    *, kills: int, power_cuts: int, seed: int, faults_per_site: int | None, names: Sequence[str] = ()
) -> dict[str, Any]:
    """All three; returns the report. `names` selects scenarios."""
    atomic.SYNC_THREADS = 1  # So that calls have the same numbers in every run.
    began, report, draws = time.monotonic(), Report(), random.Random(seed)
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as scratch:
        chosen = [one for one in all_scenarios() if not names or one.name in names]
        cases = [undisturbed(one, Path(scratch).resolve() / one.name) for one in chosen]
        parts: dict[str, Callable[[], None]] = {
            "power cuts": lambda: cut_power(cases, report, draws, power_cuts),
            "kills": lambda: kill(cases, report, draws, kills),
        }
        sites: set[tuple[str, int]] = set()
        if faults_per_site is not None:
            parts["faults"] = lambda: sites.update(inject_faults(cases, report, faults_per_site))
        seconds = {}
        for name, part in parts.items():
            start = time.monotonic()
            part()
            seconds[name] = round(time.monotonic() - start, 1)
    return {
        "seed": seed,
        "seconds": {**seconds, "all": round(time.monotonic() - began, 1)},
        "calls": {case.scenario.name: len(case.calls) for case in cases},
        "counts": dict(sorted(report.counts.items())),
        "untested call sites": [] if names or faults_per_site is None else untested_sites(sites),
        "failures": report.failures,
    }
