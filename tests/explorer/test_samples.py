"""What the recorded histories are led to and answered with."""

from __future__ import annotations

import numpy as np

from pathdex.explorer.explorer import Explorer
from pathdex.explorer.samples import ANSWER, answered_with, cosine_to, led_to_path, sample_answers
from tests.random_model import random_model


def test_answers_are_those_of_recommend(explorer: Explorer) -> None:
    found = sample_answers(explorer)
    assert found is not None
    model = explorer.model
    for number in range(5):
        history = model.items.ids(found.histories[number])
        answer = [one.id for one in model.recommend(history, ANSWER)]
        codes = found.answers[number]
        assert model.items.ids(codes[codes >= 0]) == answer
    hits = [hit for hits in found.by_item.values() for hit in hits]
    assert len(hits) == int((found.answers >= 0).sum())


def test_without_a_recording_nobody_is_led_anywhere() -> None:
    explorer = Explorer(random_model(), "v")
    assert (led_to_path(explorer, 0), answered_with(explorer, 0)) == ((None, 0), (None, 0))


def test_the_cosine_of_nothing_is_zero() -> None:
    assert cosine_to(np.zeros((2, 3), np.float32), np.ones(3, np.float32)).tolist() == [0, 0]
