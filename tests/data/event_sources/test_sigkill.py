"""A reader process that is killed with SIGKILL while it reads, and continues from its last saved position."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pathdex.data.event_sinks import append_events
from pathdex.data.events import Event
from tests.data.event_sources.conftest import Broker

EVENTS = [Event(1, number) for number in range(200)]
READER = """
import json, os, sys, time
from pathdex.data.event_sources import open_source
place, state = sys.argv[1:]
source = open_source(place, follow=True)
with open(state, "a+") as file:
    file.seek(0)
    saved = [json.loads(line) for line in file if line.endswith("\\n")]
    source.seek(saved[-1]["position"] if saved else None)
    while True:
        batch = source.read(5, 0.1)
        file.write(json.dumps({"items": [event.item for event in batch.events], "position": batch.position}) + "\\n")
        file.flush()
        source.acknowledge(batch.position)
        time.sleep(0.005)
"""


def saved_items(state: Path) -> list[int]:
    """What the complete lines hold; a line that the kill cut off is removed, as an atomic checkpoint would."""
    text = state.read_text() if state.exists() else ""
    whole = text[: text.rfind("\n") + 1]
    state.write_text(whole)
    return [item for line in whole.splitlines() for item in json.loads(line)["items"]]


@pytest.mark.parametrize("kind", ["file", "redis", "nats"])
def test_sigkill_loses_and_repeats_nothing(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    place = str(tmp_path / "events.jsonl")
    if kind != "file":
        broker: Broker = request.getfixturevalue(f"{kind}_broker")
        place = (
            f"{broker.address}?stream=sigkill&subject=sigkill" if kind == "nats" else f"{broker.address}?stream=sigkill"
        )
    if kind == "nats":
        from tests.data.event_sources.test_nats_source import ask

        ask(broker, lambda stream: stream.add_stream(name="sigkill", subjects=["sigkill"]))
    append_events(place, EVENTS)
    state, moment, kills, found = tmp_path / "state.jsonl", random.Random(0), 0, []
    deadline = time.monotonic() + 60
    while len(found) < len(EVENTS):
        wanted = len(found) + moment.randint(20, 90)
        reader = subprocess.Popen([sys.executable, "-c", READER, place, str(state)])
        try:
            while not (state.exists() and state.read_text().count('"items": [') * 5 >= wanted):
                assert reader.poll() is None
                assert time.monotonic() < deadline
                time.sleep(0.002)
        finally:
            reader.kill()
            reader.wait(10)
        kills += 1
        found = saved_items(state)
    assert found == [event.item for event in EVENTS]
    assert kills >= 3
