"""The report of a simulation as one document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pathdex.experiments.report.document import Document, Part, Points, Section, Text
from pathdex.experiments.report.pages import duration
from pathdex.experiments.simulate import figures
from pathdex.experiments.simulate.arm_registry import DESCRIPTIONS
from pathdex.experiments.simulate.findings import findings, signed
from pathdex.experiments.simulate.metrics import RATIOS, WITHIN_MINUTES
from pathdex.experiments.simulate.options import BASELINE
from pathdex.tables import TextTable

Row = Mapping[str, Any]


def make_simulation_document(results: Row) -> Document:
    """The report, ready for `to_html` and `to_markdown`."""
    options, platform = results["options"], results["platform"]
    subtitle = (
        f"{options['users']:,} users in {len(results['arms'])} arms, {platform['videos']:,} videos of "
        f"{options['creators']:,} creators, {options['minutes']} minutes after {options['warmup_minutes']} of warm-up, "
        f"{platform['impressions']:,} videos shown, {platform['events']:,} finished; seed {options['seed']}."
    )
    if results["quick"]:
        subtitle += " **Quick run: a small platform. Do not cite these figures.**"
    sections = [
        Section("Findings", [Points(findings(results)), Text(_PLANTED)]),
        Section("Finish rate and view time", _engagement(results)),
        Section("Over time", _over_time(results)),
        Section("New videos and small creators", _exposure(results)),
        Section("Building and learning", _building(results)),
        Section("The platform", _world(results)),
        Section("How to repeat this", [Points(_facts(results))]),
    ]
    return Document("The live experiment of Section 5, simulated", subtitle, sections)


_PLANTED = (
    "Users, interests and responses are planted. Absolute figures say nothing about a real platform; differences "
    "between arms say what the methods do on a platform that changes like this one."
)


def interval(one: Row, scale: float = 100, digits: int = 2) -> str:
    """A figure with its interval: `12.34 (12.01 to 12.67)`; a dash if there is none."""
    if one["value"] is None:
        return "-"
    text = f"{scale * one['value']:.{digits}f}"
    if one["low"] is None and one["high"] is None:
        return text
    low, high = ("never" if bound is None else f"{scale * bound:.{digits}f}" for bound in (one["low"], one["high"]))
    return f"{text} ({low} to {high})"


def _engagement(results: Row) -> list[Part]:
    arms, differences = results["arms"], results["differences"]
    rows = [
        [
            row["arm"],
            f"{row['users']:,}",
            f"{row['shown']:,}",
            interval(row["finish_rate"]),
            interval(row["planted_finish_rate"]),
            interval(row["view_seconds"], 1, 1),
        ]
        for row in arms
    ]
    head = ["arm", "users", "videos shown", "finish rate, %", "planted finish rate, %", "view time per page, s"]
    parts: list[Part] = [
        TextTable("Figures by arm, with 95% intervals over users", head, rows),
        figures.finish_rate_figure(arms, differences).part("finish-rate"),
        Text(
            "Only videos that the arm chose count; those in the slot for new uploads, which is the same in all arms, "
            "do not. The planted finish rate is the mean probability of a finish of what was shown, without the noise "
            "of the users' responses."
        ),
    ]
    if differences:
        parts.append(_difference_table(results))
        noise = [f"{row['arm']} {signed(row)}" for row in results["a_a_test"]]
        parts.append(
            Text(
                "A/A test: in the warm-up all users are treated the same, so differences in finish rate to the users "
                f"of ffm-hnsw are those of the buckets: {', '.join(noise)}."
            )
        )
    return parts


def _difference_table(results: Row) -> TextTable:
    by_arm = {(row["arm"], row["metric"]): row for row in results["differences"]}
    names = [row["arm"] for row in results["arms"] if row["arm"] != BASELINE]

    def cell(name: str, metric: str) -> str:
        row = by_arm[name, metric]
        return "-" if row["value"] is None else signed(row) + ("" if row["p_holm"] < 0.05 else " n.s.")

    rows = [[name, *(cell(name, metric) for metric in RATIOS)] for name in names]
    head = ["arm", "finish rate", "view time", "planted finish rate", "share of new", "share of small creators"]
    title = "Difference to ffm-hnsw, with 95% intervals; n.s.: p of at least 0.05 after Holm's correction"
    return TextTable(title, head, rows)


def _over_time(results: Row) -> list[Part]:
    options = results["options"]
    chart = figures.timeline_figure(results["timeline"], options["retrain_minutes"], options["build_minutes"])
    return [chart.part("timeline")]


def _exposure(results: Row) -> list[Part]:
    platform = results["platform"]
    rows = [
        [
            row["arm"],
            interval(row["new_share"], digits=1),
            interval(row["small_share"], digits=1),
            f"{row['videos_shown']:,}",
            interval(row["new_videos_shown"], digits=1),
            f"{row['creators_shown']:,}",
            interval(row["small_creators_shown"], digits=1),
            "-" if row["top_percent_share"] is None else f"{100 * row['top_percent_share']:.1f}",
        ]
        for row in results["arms"]
    ]
    head = ["arm", "new, % of views", "small creators, % of views", "videos shown", "new videos shown, %"]
    head += ["creators shown", "small creators shown, %", "views of the top 1%, %"]
    waits = [
        [
            row["arm"],
            row["until"],
            f"{row['reached']:,} of {row['videos']:,}",
            *(interval(row[f"within_{minutes}"], digits=1) for minutes in WITHIN_MINUTES),
            interval(row["first_tenth_minutes"], 1, 1),
            interval(row["median_minutes"], 1, 1),
        ]
        for row in results["waiting"]
        if row["videos"]
    ]
    wait_head = ["arm", "first", "videos", *(f"within {minutes} min, %" for minutes in WITHIN_MINUTES)]
    wait_head += ["a tenth after, min", "half after, min"]
    parts: list[Part] = [
        Text(
            "New: uploaded since the experiment began. Small: the 80% of the creators with the smallest audiences, who "
            f"upload {100 * platform['small_share_of_videos']:.0f}% of the videos. Shares of views have intervals over "
            "users, shares of videos and creators have Wilson's over videos and creators."
        ),
        TextTable("Exposure and reach of what an arm chose", head, rows),
        figures.exposure_figure(results["arms"], platform).part("exposure"),
    ]
    if waits:
        title = "Time until an arm chooses a new video for someone, and until someone finishes it (Kaplan-Meier)"
        parts += [
            TextTable(title, wait_head, waits, text_columns=2),
            figures.waiting_figure(results["waiting"]).part("waiting"),
        ]
    return parts


def _building(results: Row) -> list[Part]:
    rows = [
        [
            row["arm"],
            f"{len(row['builds']):,}" if row["arm"] != "streaming" else "1",
            f"{row['builds'][-1]['events']:,}" if row["arm"] != "streaming" else f"{row['builds'][0]['events']:,}",
            interval(row["build_seconds"], 1, 1),
            interval(row["index_seconds"], 1, 2),
            interval(row["seconds_per_minute"], 1, 2),
        ]
        for row in results["arms"]
        if row["builds"]
    ]
    head = ["arm", "builds", "events of the last", "build, s", "of which index, s", "online, s per minute"]
    options = results["options"]
    return [
        TextTable("Measured wall-clock times, means over builds with 95% intervals", head, rows),
        Text(
            f"Measured times do not influence the simulation: a build is served {options['build_minutes']:g} simulated "
            "minutes after it began, on any machine. Index: collecting scores and M-steps of Deep Retrieval; the graph "
            "of HNSW. Online: learning and publishing per simulated minute."
        ),
    ]


def _world(results: Row) -> list[Part]:
    options, platform = results["options"], results["platform"]
    names = [row["arm"] for row in results["arms"]]
    slot = "-" if platform["new_slot_finish_rate"] is None else f"{100 * platform['new_slot_finish_rate']:.1f}%"
    return [
        TextTable("Arms", ["arm", "what it is"], [[one, DESCRIPTIONS[one].format(**options)] for one in names], 2),
        Points(
            [
                f"Events went through {results['broker']}.",
                f"Finish rate in the warm-up, where users find videos by themselves: "
                f"{100 * platform['warmup_finish_rate']:.1f}%; in the slot for new uploads "
                f"({platform['new_slot_views']:,} views): {slot}.",
                f"Arms learn from {'their own events only' if options['isolated'] else 'the events of all arms'}.",
            ]
        ),
        TextTable("Options", ["option", "value"], [[name, f"{value}"] for name, value in options.items()]),
    ]


def _facts(results: Row) -> Sequence[str]:
    found = results["provenance"]
    machine = found["machine"]
    memory = "" if machine["memory"] is None else f", {machine['memory'] / 2**30:.0f} GB of memory"
    load = f"; load average {machine['load_average'][1]:.1f} at the end" if machine["load_average"] else ""
    versions = ", ".join(f"{name} {version}" for name, version in found["versions"].items() if version)
    return [
        f"Command: `{found['command']}`" if found["command"] else "Called from Python.",
        f"Machine: {machine['processor']}, {machine['cores']} cores{memory}, {machine['system']}",
        f"{found['threads']} thread{'s' * (found['threads'] != 1)}{load}",
        f"Versions: {versions}; source {found['code']}",
        f"Wall time: {duration(found['seconds'])}",
    ]
