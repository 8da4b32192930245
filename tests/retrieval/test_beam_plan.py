"""How wide a beam is under filters."""

from __future__ import annotations

from typing import Any

import pytest

from pathdex.retrieval.beam_plan import LISTED_ITEMS, plan_beam

SIZES: dict[str, Any] = {"num_paths": 1000, "num_items": 10_000, "paths_per_item": 2}


@pytest.mark.parametrize(
    ("n", "beam", "candidates", "eligible", "expected"),
    [
        (10, 20, 0, None, (20, 2000)),
        (10, 20, 0, LISTED_ITEMS, (0, 0)),
        # n items out of 5,000 that have 10,000 paths among them: the beam as asked finds enough.
        (10, 20, 0, 5000, (20, 10_000)),
        # A limit of candidates: half of the items are eligible, so twice as many paths.
        (10, 20, 100, 5000, (40, 10_000)),
        # 600 items on 1,200 paths: 500 of them need 500 * 1,000 / 1,200 paths.
        (500, 20, 0, 600, (417, 1200)),
        (700, 900, 0, 513, (900, 1026)),
    ],
)
def test_plans(n: int, beam: int, candidates: int, eligible: int | None, expected: tuple[int, int]) -> None:
    assert plan_beam(n=n, beam=beam, candidates=candidates, eligible=eligible, **SIZES) == expected


def test_a_beam_that_costs_more_than_the_items_is_not_followed() -> None:
    assert plan_beam(n=10, beam=1100, candidates=0, eligible=520, **SIZES) == (0, 0)
