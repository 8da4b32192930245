"""What a report says about how it came to be."""

from __future__ import annotations

import pytest

from pathdex.experiments.report.repeat import _states


@pytest.mark.parametrize(
    ("codes", "said"),
    [
        (["a1", "a1"], "all steps by a1"),
        (["a1", "b2", "a1"], "steps were made by 2 states of the source: 2 by a1, 1 by b2"),
        ([None, "a1"], "steps were made by 2 states of the source: 1 by a state that was not recorded, 1 by a1"),
    ],
)
def test_states_of_the_source_that_differ_are_named(codes: list[str | None], said: str) -> None:
    assert _states(codes) == said
