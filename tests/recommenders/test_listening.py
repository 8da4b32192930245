"""Who hears of training."""

import pytest

from pathdex.recommenders.listening import listening
from tests.recommenders.fakes import Notes


@pytest.mark.parametrize("progress", [True, False, None])
def test_the_listener_hears_with_and_without_a_bar(progress: bool | None) -> None:
    notes = Notes()
    with listening(progress, notes) as heard:
        heard.on_step_end("als", 1, 1, 2, 5, {})
        heard.on_epoch_end({"phase": "als", "number": 1, "seconds": 0.0})
    assert notes.steps == [("als", 2, 5)]
    assert [record["phase"] for record in notes.records] == ["als"]


def test_nobody_needs_to_listen() -> None:
    with listening(False, None) as heard:
        heard.on_epoch_end({"phase": "als", "number": 1, "seconds": 0.0})
