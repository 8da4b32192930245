"""How wide the beam of a query is, depending on how many items its filters let through."""

from __future__ import annotations

import math
from typing import NamedTuple

from pathdex.kernels.types import Ints, Mask

LISTED_ITEMS = 512
"""Up to this many eligible items are scored one by one: a beam would have to widen to find them."""


class Eligible(NamedTuple):
    """The items that `allow` and `where` let through."""

    mask: Mask
    """`ALL_ITEMS` if there is no mask, or if the items are listed."""
    num_items: int
    listed: Ints | None
    """The items themselves if they are few."""


class BeamPlan(NamedTuple):
    """How a query follows paths."""

    beam: int
    """0: all eligible items are scored on their own paths instead."""
    max_beam: int


def plan_beam(
    *,
    n: int,
    beam: int,
    candidates: int,
    num_paths: int,
    num_items: int,
    paths_per_item: int,
    eligible: int | None,
) -> BeamPlan:
    """The first beam and the largest; `eligible` items pass the masks, None if there are no masks."""
    if eligible is None:
        return BeamPlan(beam, 2 * num_paths)
    if eligible <= LISTED_ITEMS:
        return BeamPlan(0, 0)
    # Following more paths than the eligible items have costs more than scoring these items. If they lie on paths like
    # any other items, the beam that finds enough of them is known beforehand.
    max_beam = eligible * paths_per_item
    if candidates:
        beam = int(min(num_paths, beam * num_items / eligible))
    beam = max(beam, math.ceil(n * num_paths / max_beam))
    return BeamPlan(0, 0) if beam > max_beam else BeamPlan(beam, max_beam)
