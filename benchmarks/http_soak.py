"""Minutes of load with frequent model reloads: no request may fail, and memory must not grow."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.table import Table

from benchmarks.load import Load, RunningLoad
from benchmarks.plots import new_axes, write
from benchmarks.report import Report
from benchmarks.server_process import ServerProcess, put_in_place
from pathdex.evaluation.labels import label_ends
from pathdex.evaluation.visual import INK, MUTED, series_colour
from pathdex.storage.bundle import bundle_version

if TYPE_CHECKING:
    from benchmarks.http import Asked, Plan

PROBE_SECONDS = 0.1
SAMPLE_SECONDS = 1.0


@dataclass
class Probe:
    """Sends queries one by one and checks the responses, which the load generator does not."""

    server: ServerProcess
    bodies: list[bytes]
    n: int
    versions: set[str]
    asked: int = 0
    failed: list[str] = field(default_factory=list)
    changes: int = 0
    _stop: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        last: str | None = None
        while not self._stop.wait(PROBE_SECONDS):
            body = self.bodies[self.asked % len(self.bodies)]
            self.asked += 1
            try:
                answer = self.server.ask(body)
            except (OSError, ValueError) as error:
                self.failed.append(repr(error))
                continue
            if len(answer["items"]) != self.n or answer["model"] not in self.versions:
                self.failed.append(f"model {answer['model']}, {len(answer['items'])} items")
            self.changes += last is not None and answer["model"] != last
            last = answer["model"]

    def stop(self) -> None:
        self._stop.set()


def run(asked: Asked, link: Path, bundles: list[Path], plan: Plan, folder: Path, report: Report) -> None:
    """Load the server, swap the bundles, sample the memory, and report."""
    put_in_place(link, bundles[0])
    samples: list[dict[str, float]] = []
    swaps: list[float] = []
    with ServerProcess(link, workers=max(plan.workers), log=folder / "server-soak.log") as server:
        versions = {bundle_version(bundle) for bundle in bundles}
        probe = Probe(server, asked.file.read_bytes().splitlines(), plan.n, versions)
        probing = threading.Thread(target=probe.run)
        load = RunningLoad(server.url, asked.file, 60 * plan.minutes, plan.connections)
        probing.start()
        try:
            _watch(server, load, link, bundles, plan, report, samples, swaps)
            result = load.result()
        finally:
            load.stop()
            probe.stop()
            probing.join()
        taken = {
            name: server.counter(f"pathdex_{name}_total")
            for name in ("model_reloads", "model_reload_failures", "worker_starts")
        }
    figures = _figures(result, probe, samples, swaps, taken, plan)
    report.add("soak", figures, _table(figures))
    _draw(report.plot_file("-soak"), samples, plan.minutes, plan.swap_seconds)


def _watch(
    server: ServerProcess,
    load: RunningLoad,
    link: Path,
    bundles: list[Path],
    plan: Plan,
    report: Report,
    samples: list[dict[str, float]],
    swaps: list[float],
) -> None:
    started = reported = time.monotonic()
    before = server.counter("pathdex_queries_total")
    while load.running():
        time.sleep(SAMPLE_SECONDS)
        now, after = time.monotonic(), server.counter("pathdex_queries_total")
        spent = now - started
        last = samples[-1]["seconds"] if samples else 0.0
        samples.append({"seconds": spent, **server.memory(), "queries_per_second": (after - before) / (spent - last)})
        before = after
        due = (len(swaps) + 1) * plan.swap_seconds
        # The last swap needs time to be loaded.
        if spent >= due and due < 60 * plan.minutes - plan.swap_seconds / 2:
            put_in_place(link, bundles[(len(swaps) + 1) % len(bundles)])
            swaps.append(spent)
        if now - reported >= 60:
            reported = now
            report.say(f"soak: {spent / 60:.0f} of {plan.minutes:g} minutes, {samples[-1]['own_mb']:,.0f} MB")


def _figures(
    load: Load,
    probe: Probe,
    samples: list[dict[str, float]],
    swaps: list[float],
    taken: dict[str, float],
    plan: Plan,
) -> dict[str, Any]:
    seconds = np.array([one["seconds"] for one in samples])
    memory = {}
    for name in ("own_mb", "resident_mb"):
        values = np.array([one[name] for one in samples])
        # The first third is warm-up: code, buffers and both bundles in every worker.
        late = seconds > seconds[-1] / 3
        slope = np.polyfit(seconds[late] / 60, values[late], 1)[0] if late.sum() > 2 else float("nan")
        memory[name] = {
            "first": values[0],
            "after_a_third": float(values[late][0]) if late.any() else float(values[-1]),
            "last": values[-1],
            "peak": values.max(),
            "slope_mb_per_minute": float(slope),
        }
    return {
        "plan": vars(plan),
        "load": load.to_dict(),
        "probe": {"asked": probe.asked, "failed": probe.failed[:20], "failures": len(probe.failed)},
        "failures": load.failures + len(probe.failed),
        "swaps": {"made": len(swaps), "seen_by_probe": probe.changes, **taken},
        "memory": memory,
        "samples": samples[:: max(1, len(samples) // 300)],
        "wanted": "no failure, flat memory",
    }


def _table(figures: dict[str, Any]) -> Table:
    plan, load, swaps = figures["plan"], figures["load"], figures["swaps"]
    table = Table("", "", title=f"{plan['minutes']:g} minutes of load, a swap every {plan['swap_seconds']:g} s")
    table.add_row("requests", f"{load['requests']:,} ({load['requests_per_second']:,.0f}/s)")
    table.add_row("p50, p99, p99.9", ", ".join(f"{load[name] / 1e3:.2f} ms" for name in ("p50", "p99", "p999")))
    table.add_row("failed requests", str(figures["failures"]))
    table.add_row(
        f"swaps, and reloads by {max(plan['workers'])} workers", f"{swaps['made']}, {swaps['model_reloads']:.0f}"
    )
    table.add_row(
        "versions rejected, workers started", f"{swaps['model_reload_failures']:.0f}, {swaps['worker_starts']:.0f}"
    )
    for name, label in (("own_mb", "own memory"), ("resident_mb", "resident, mapped files included")):
        one = figures["memory"][name]
        table.add_row(
            label,
            f"first {one['first']:,.0f} MB, last {one['last']:,.0f}, peak {one['peak']:,.0f}, "
            f"slope {one['slope_mb_per_minute']:+.2f} MB/min after the first third",
        )
    return table


def _draw(file: Path, samples: list[dict[str, float]], minutes: float, swap_seconds: float) -> None:
    title = f"{minutes:g} minutes of load, a model reload every {swap_seconds:g} s"
    caption = "Memory of all server processes, and answered queries, sampled once per second."
    figure, (memory, rates) = new_axes(title, "minutes", "MB", caption, rows=2, height=5.2)
    times = [one["seconds"] / 60 for one in samples]
    memory.plot(times, [one["resident_mb"] for one in samples], color=series_colour(0), label="resident")
    own = [one["own_mb"] for one in samples]
    memory.plot(times, own, color=series_colour(1), linestyle="--", label="own memory")
    rates.plot(times, [one["queries_per_second"] for one in samples], color=MUTED, linewidth=0.8)
    rates.set_ylabel("queries per second", color=INK, fontsize=9.5)
    for axes in (memory, rates):
        axes.set_ylim(bottom=0)
    label_ends(memory)
    write(figure, file)


def redraw(report: Report) -> None:
    """Draw the plot of the stored results again."""
    if soak := report.parts.get("soak"):
        plan = soak["plan"]
        _draw(report.plot_file("-soak"), soak["samples"], plan["minutes"], plan["swap_seconds"])
