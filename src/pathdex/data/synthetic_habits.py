"""Planted habits of synthetic users: how much of a history is order, repetition, fashion and taste."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from pathdex.data.synthetic_world import Integers, World, preferred_prefixes, zipf
from pathdex.errors import Problem
from pathdex.parameters import check_fields, parameter

REDRAWS = 8
"""How often a new item is drawn again while the user has had it."""
NOTHING = -1


@dataclass(frozen=True)
class Habits:
    """What decides a row; the rest, 1 - order - repetition - popularity, is drawn from the user's taste.

    The first row of a user is never a repetition or a successor. Rows that make every item occur are taste.
    """

    order: float = parameter(0.0, "probability that a row is the planted successor of the row before", low=0, high=1)
    repetition: float = parameter(0.0, "probability that a row repeats an earlier item of the user", low=0, high=1)
    popularity: float = parameter(0.0, "probability that a row is drawn from the best-sellers", low=0, high=1)

    def __post_init__(self) -> None:
        check_fields(self, self._sum_problems)

    def _sum_problems(self) -> list[Problem | str]:
        total = self.order + self.repetition + self.popularity
        rule = f"order + repetition + popularity = {total:g} is more than 1"
        return [Problem(rule, remedy="lower one of them")] if total > 1 + 1e-9 else []


@dataclass(frozen=True)
class HabitWorld:
    """The world and what habits add to it."""

    world: World
    habits: Habits
    successor: Integers
    """The item that follows each item, in the same prefix; every item follows exactly one."""
    best_sellers: Integers
    """All items, the most popular first."""

    def choose(self, generator: Generator, owner: Integers, bounds: Integers, lengths: Integers) -> Integers:
        """One item per row for a group of users; `bounds` delimits the items of `cover` that each takes once."""
        first = np.cumsum(lengths) - lengths
        rows = _own_rows(generator, self.world.cover, owner, bounds, lengths, first)
        prefixes, width = preferred_prefixes(generator, self.world, bounds)
        # Longest first, so that the users who still have a row at a time step are a leading slice.
        users = np.argsort(-lengths, kind="stable")
        past = np.full((len(users), int(lengths.max(initial=0))), NOTHING, np.int32)
        active = np.searchsorted(-lengths[users], -np.arange(past.shape[1]), side="left")
        for step, count in enumerate(active.tolist()):
            some = users[:count]
            fixed = rows[first[some] + step]
            made = self._row(generator, past[:count], step, prefixes[some], width[some], fixed)
            past[:count, step] = rows[first[some] + step] = made
        return rows

    def _row(
        self,
        generator: Generator,
        past: NDArray[np.int32],
        step: int,
        prefixes: Integers,
        width: Integers,
        fixed: Integers,
    ) -> Integers:
        """The items of all users at a time step; `fixed` ones stay."""
        habits, count = self.habits, len(past)
        draw = generator.random(count)
        popular = draw >= 1 - habits.popularity
        made = self._new(generator, popular, prefixes, width)
        if step:
            repeats = draw < habits.repetition
            follows = ~repeats & (draw < habits.repetition + habits.order)
            for _ in range(REDRAWS):
                old = ~repeats & ~follows & (fixed == NOTHING) & (past[:, :step] == made[:, None]).any(axis=1)
                if not old.any():
                    break
                made[old] = self._new(generator, popular[old], prefixes[old], width[old])
            earlier = past[np.arange(count), generator.integers(0, step, count)]
            made = np.where(repeats, earlier, np.where(follows, self.successor[past[:, step - 1]], made))
        return np.where(fixed == NOTHING, made, fixed)

    def _new(self, generator: Generator, popular: NDArray[np.bool_], prefixes: Integers, width: Integers) -> Integers:
        """An item per user: a best-seller, or one of the user's taste."""
        world, count = self.world, len(width)
        prefix = prefixes[np.arange(count), generator.integers(0, width)]
        path = world.prefixes[prefix] + zipf(generator, np.diff(world.prefixes)[prefix], count)
        taste = world.members[world.starts[path] + zipf(generator, np.diff(world.starts)[path], count)]
        found: Integers = np.where(popular, self.best_sellers[zipf(generator, len(self.best_sellers), count)], taste)
        return found


def plant_habits(generator: Generator, world: World, habits: Habits) -> HabitWorld:
    """Draw the best-sellers; successors go round the items of each prefix."""
    prefix = world.prefix_of[world.cover_path]
    # The next item in `cover`; the last item of a prefix is followed by its first.
    starts = np.flatnonzero(np.diff(prefix, prepend=NOTHING))
    following = np.arange(1, len(prefix) + 1)
    following[np.append(starts[1:], len(prefix)) - 1] = starts
    successor = np.empty_like(world.cover)
    successor[world.cover] = world.cover[following]
    return HabitWorld(world, habits, successor, generator.permutation(len(world.cover)))


def _own_rows(
    generator: Generator, cover: Integers, owner: Integers, bounds: Integers, lengths: Integers, first: Integers
) -> Integers:
    """The user's own items at random rows, `NOTHING` at all others."""
    rows = np.full(len(owner), NOTHING)
    shuffled = np.lexsort((generator.random(len(owner)), owner))
    place = np.arange(len(owner)) - first[owner]
    mine = place < np.diff(bounds)[owner]
    rows[shuffled[mine]] = cover[bounds[:-1][owner][mine] + place[mine]]
    return rows
