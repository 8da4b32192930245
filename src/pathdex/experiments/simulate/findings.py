"""What the figures say about the paper's claims, in sentences that depend on the figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pathdex.experiments.simulate.options import BASELINE

Row = Mapping[str, Any]
PAPER_FINISH_RATE = 0.03
"""Table 5 of the paper: relative gain of Deep Retrieval over FFM + HNSW."""
_LEARNED = ("streaming", "retrained", "frozen")


def findings(results: Row) -> list[str]:
    """One sentence per claim of Section 5 that the arms of this simulation can speak to."""
    arms = {row["arm"]: row for row in results["arms"]}
    sentences = []
    if BASELINE in arms:
        sentences += _finish_rate(results["differences"], arms)
        sentences += _exposure(results["differences"], arms)
    sentences += _learning(arms)
    sentences += _waiting(results["waiting"], arms)
    sentences += _building(arms)
    return sentences


def _difference(rows: Sequence[Row], arm: str, metric: str) -> Row:
    return next(row for row in rows if row["arm"] == arm and row["metric"] == metric)


def _finish_rate(rows: Sequence[Row], arms: Mapping[str, Row]) -> list[str]:
    found = []
    for name in ("streaming", "retrained"):
        if name not in arms:
            continue
        gain = _difference(rows, name, "finish_rate")
        verdict = (
            "the direction of the paper's +3.0% holds"
            if gain["low"] > 0
            else ("the paper's +3.0% does not hold" if gain["high"] < 0 else "there is no clear difference")
        )
        size = ""
        if gain["low"] > PAPER_FINISH_RATE:
            size = ", with a larger size"
        elif 0 < gain["low"] <= PAPER_FINISH_RATE <= gain["high"]:
            size = ", and its size is within the interval"
        found.append(f"**Finish rate, {name}**: {signed(gain)} against FFM + HNSW: {verdict}{size}.")
    if {"retrained", BASELINE} <= arms.keys():
        found.append(
            "`retrained` and `ffm-hnsw` have the same schedule and data, so their difference is that of the models. "
            "What `streaming` has beyond `retrained` comes from learning event by event instead of in builds."
        )
    return found


def _exposure(rows: Sequence[Row], arms: Mapping[str, Row]) -> list[str]:
    found = []
    for name in ("streaming", "retrained"):
        if name not in arms:
            continue
        gain = _difference(rows, name, "small_share")
        verdict = "more" if gain["low"] > 0 else ("less" if gain["high"] < 0 else "neither more nor less")
        creators = [100 * arms[one]["small_creators_shown"]["value"] for one in (name, BASELINE)]
        found.append(
            f"**Small creators, {name}**: {verdict} exposure than with FFM + HNSW ({signed(gain)} of the views); "
            f"it shows {creators[0]:.0f}% of all small creators, FFM + HNSW {creators[1]:.0f}%."
        )
    return found


def _learning(arms: Mapping[str, Row]) -> list[str]:
    if not {"streaming", "frozen"} <= arms.keys():
        return []
    live, still = (arms[name]["finish_rate"] for name in ("streaming", "frozen"))
    ratio = live["value"] / still["value"] - 1 if still["value"] else 0.0
    clear = live["low"] > still["high"] or live["high"] < still["low"]
    return [
        f"**Learning from the stream** changes the finish rate by {100 * ratio:+.0f}% against the same model frozen"
        f"{'' if clear else ', which is within the intervals'}. The frozen model shows no video that is newer than its "
        "training, and those that it knows lose their appeal."
    ]


def _waiting(waiting: Sequence[Row], arms: Mapping[str, Row]) -> list[str]:
    shown = {row["arm"]: row for row in waiting if row["until"] == "shown" and row["videos"]}
    parts = [
        f"`{name}` {100 * shown[name]['within_5']['value']:.0f}%"
        for name in arms
        if name in shown and name not in ("oracle", "random")
    ]
    return [f"**New videos** shown within 5 minutes of their upload: {', '.join(parts)}."] if parts else []


def _building(arms: Mapping[str, Row]) -> list[str]:
    parts = []
    for name, words in (("retrained", "scores and M-steps of Deep Retrieval"), (BASELINE, "the HNSW graph")):
        if name in arms and arms[name]["index_seconds"]["value"] is not None:
            parts.append(f"{words} {arms[name]['index_seconds']['value']:.2f} s")
    if not parts:
        return []
    return [
        f"**Building the index** on a trained network takes {' and '.join(parts)} (measured; the catalogue is small). "
        "The paper's claim is about hundreds of millions of items and is not tested here."
    ]


def signed(row: Row) -> str:
    """A relative difference with its interval in percent."""
    return f"{100 * row['value']:+.1f}% ({100 * row['low']:+.1f} to {100 * row['high']:+.1f})"
