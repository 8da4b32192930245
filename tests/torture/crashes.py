"""Saving, training, publishing and storing, interrupted: failing calls, kill -9 and power cuts.

Every experiment runs in forked children. The folder is watched from the opening of a session on; a step counts as
acknowledged when it has returned.
"""

from __future__ import annotations

import itertools
import json
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from pathdex.storage import atomic
from tests.torture.attempts import AT_A_MOMENT, AT_CALLS, FAULTS, Case, Site, kill_once, recover, try_fault, undisturbed
from tests.torture.call_sites import all_sites, untested_sites
from tests.torture.children import Outcome
from tests.torture.io_calls import Call
from tests.torture.power_cuts import Disk, Recording
from tests.torture.scenario import Scenario
from tests.torture.scenarios import all_scenarios

_TAKE_SPACE = {"create", "open", "mkdir", "write"}


class Report:
    """Counts and failures."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.failures: list[dict[str, Any]] = []

    def add(self, what: str, case: Case, found: Outcome, **facts: Any) -> None:
        self.counts[what] += 1
        self.counts[f"{what}: {case.scenario.name}"] += 1
        if found.error:
            failure = {"what": what, "scenario": case.scenario.name, **facts, "error": found.error}
            self.failures.append(failure)
            print(json.dumps(failure), file=sys.stderr, flush=True)


def inject_faults(cases: Sequence[Case], report: Report, per_site: int) -> set[Site]:
    """Let calls fail in every way: so many of each line of the source, scenario and kind.

    With 0 it is the short form: one call of each kind and line, until every line that changes files was on the stack of
    a failing one, from every function of its file. Lines that run only after a failure are made to fail as well, as a
    second fault. Returns the lines that were on the stack of a failing call.
    """
    failed: set[Site] = set()
    ways: set[tuple[Site, Site]] = set()
    seen: Counter[Any] = Counter()
    lines = {(site.file, line) for site in all_sites() for line in range(site.first, site.last + 1)}

    def attempt(case: Case, calls: Sequence[Call], fault: str) -> list[Call]:
        found = try_fault(case, [call.number for call in calls], fault)
        failed.update(site for call in found.sent for site in call.sites)
        ways.update(way for call in found.sent for way in _ways(call, lines))
        facts = [{"call": one.number, "kind": one.kind, "path": one.path, "sites": one.sites[:6]} for one in found.sent]
        if found.sent or found.error:
            report.add("faults", case, found, fault=fault, calls=facts)
        return found.value or []

    # The quick ones first: what they have in common with slow ones need not be repeated there.
    chosen = [case for case in cases if case.scenario.is_repeatable]
    for case in sorted(chosen, key=lambda one: one.scenario.share, reverse=True):
        later: dict[Site, tuple[Call, Call]] = {}
        for call in case.calls:
            key = _group(case.scenario, call, is_short=not per_site)
            seen[key] += 1
            is_new = seen[key] <= max(1, per_site)
            if not (is_new if per_site else is_new or set(call.sites) & lines - failed or _ways(call, lines) - ways):
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


def _ways(call: Call, lines: set[Site]) -> set[tuple[Site, Site]]:
    """Lines that change files, each with the line of the same file that led to it."""
    return {(site, caller) for site, caller in itertools.pairwise(call.sites) if site in lines and caller[0] == site[0]}


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


def _states(case: Case, draws: random.Random) -> Any:
    recording = Recording.of(Disk.read(case.folder / "prepared"), case.root, case.changes)
    cuts = [(cut, sample) for cut in range(len(recording.events) + 1) for sample in range(40)]
    draws.shuffle(cuts)
    for cut, sample in cuts:
        yield cut, recording.events[:cut].count(None), recording.cut(cut, draws, sample)


def kill(cases: Sequence[Case], report: Report, draws: random.Random, count: int, ways: Sequence[str]) -> None:
    """Kill processes, each once, and recover from what they leave."""
    while report.counts["kills"] < count:
        (case,) = draws.choices(cases, [case.scenario.share for case in cases])
        way, killed, done = kill_once(case, draws, ways)
        if not killed.was_killed and not killed.error:
            # It ended before; the machine may be faster now.
            case.scenario.seconds = min(case.scenario.seconds, killed.seconds)
            continue
        report.add("kills", case, killed if killed.error else recover(case, done), way=way, done=done)
        report.counts[f"kills {way}"] += 1


def torture(
    *,
    kills: int,
    power_cuts: int,
    seed: int,
    faults_per_site: int | None,
    names: Sequence[str] = (),
    is_repeatable: bool = False,
) -> dict[str, Any]:
    """All three; returns the report. `names` selects scenarios.

    With `is_repeatable`, nothing depends on time: one thread writes, and kills happen at calls.
    """
    atomic.SYNC_THREADS = 1  # So that calls have the same numbers in every run.
    began, report, draws = time.monotonic(), Report(), random.Random(seed)
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as scratch:
        chosen = [one for one in all_scenarios() if not names or one.name in names]
        chosen = [one for one in chosen if one.is_repeatable or not is_repeatable]
        cases = [undisturbed(one, Path(scratch).resolve() / one.name) for one in chosen]
        parts: dict[str, Callable[[], None]] = {
            "power cuts": lambda: cut_power(cases, report, draws, power_cuts),
            "kills": lambda: kill(cases, report, draws, kills, AT_CALLS if is_repeatable else (*AT_CALLS, AT_A_MOMENT)),
        }
        sites: set[Site] = set()
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
