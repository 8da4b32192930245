"""A small synthetic shop with readable item names, for demonstrations and tests.

An item belongs to a theme of an interest, like a path of two nodes. Some belong to two interests, like the paper's
chocolate, which is food and a gift. The words are in `demo_catalogue.json`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from typing import TypeAlias, TypedDict

import numpy as np
import polars as pl
from numpy.random import Generator
from numpy.typing import NDArray

from pathdex.data.interactions import Interactions
from pathdex.data.readers import read
from pathdex.errors import ConfigError, Problem
from pathdex.parameters import count_problems

Place: TypeAlias = tuple[str, str]
"""An interest and one of its themes."""
Integers: TypeAlias = NDArray[np.int64]

MOVE_ON = 0.35
"""Probability that a user moves to the next theme after an item."""
FOLLOW = 0.5
"""Probability that a shared item leads a user into its other interest, if the user has that interest."""
RETURN = 0.1
"""Probability that a user switches to another of their interests."""


class Theme(TypedDict):
    """A shelf of products. Its shared items are also on the shelf `also`."""

    also: list[str]
    products: list[str]


class Interest(TypedDict):
    """A field of products. Users drift from each theme to the next. An item is a quality and a product."""

    qualities: list[str]
    themes: dict[str, Theme]


INTERESTS: Mapping[str, Interest] = json.loads(
    resources.files("pathdex.data").joinpath("demo_catalogue.json").read_text("utf-8")
)


@dataclass(frozen=True)
class DemoCatalogue:
    """Interactions, and the interests behind them."""

    frame: pl.DataFrame
    """Columns `user_id`, `item_id` (the name), `timestamp`."""
    paths: Mapping[str, tuple[Place, ...]]
    """The places of each item, its own first."""

    @property
    def data(self) -> Interactions:
        return read(self.frame)

    def interests(self, item: str) -> tuple[str, ...]:
        """The interests that the item belongs to, its own first."""
        return tuple(interest for interest, _ in self.paths[item])

    def __repr__(self) -> str:
        return f"DemoCatalogue({len(self.paths):,} items, {self.frame.height:,} interactions)"


def demo_catalogue(
    *, items: int = 2000, users: int = 3000, mean_length: int = 40, shared: float = 0.15, seed: int = 0
) -> DemoCatalogue:
    """Generate a catalogue and its users.

    A user has one to three interests and walks through the themes of one in order, a few items in each, so the latest
    items predict the next; a shared item can lead to its other interest. Popularity within a theme follows Zipf's law.
    `shared` is the share of the items with two interests.
    """
    places = [(interest, theme) for interest, words in INTERESTS.items() for theme in words["themes"]]
    _check(items, users, mean_length, shared, seed, len(places))
    generator = np.random.default_rng(seed)
    paths = _name_items(generator, places, items, shared)
    user, item = _walk(generator, places, paths, users, mean_length)
    names = np.array(list(paths), dtype=object)[item]
    # The walk takes one step of every user at a time, so the rows of a user are in time order.
    frame = pl.DataFrame({"user_id": user, "item_id": pl.Series(names.tolist(), dtype=pl.String)})
    frame = frame.with_columns(timestamp=1_700_000_000 + 3600 * pl.int_range(pl.len()).over("user_id"))
    return DemoCatalogue(frame.sort("user_id", maintain_order=True), paths)


def _check(items: int, users: int, mean_length: int, shared: float, seed: int, places: int) -> None:
    room = sum(
        len(words["qualities"]) * len(theme["products"])
        for words in INTERESTS.values()
        for theme in words["themes"].values()
    )
    problems = count_problems("items", items, places, room // 2) + count_problems("users", users)
    problems += count_problems("mean_length", mean_length, 2) + count_problems("seed", seed, 0)
    if not 0 <= shared <= 1:
        problems.append(Problem("must be a share from 0 to 1", "shared", shared))
    if problems:
        raise ConfigError(problems)


def _name_items(generator: Generator, places: list[Place], items: int, shared: float) -> dict[str, tuple[Place, ...]]:
    paths: dict[str, tuple[Place, ...]] = {}
    wanted = np.arange(len(places) + 1) * items // len(places)
    for (interest, name), count in zip(places, np.diff(wanted).tolist(), strict=True):
        words = INTERESTS[interest]
        theme = words["themes"][name]
        first, *others = [f"{quality} {product}" for product in theme["products"] for quality in words["qualities"]]
        names = [one for one in (first, *map(str, generator.permutation(others))) if one not in paths][:count]
        # The first name is always used, and shared first: dark chocolate is food and a gift for every seed.
        doubled, also = round(shared * count), (theme["also"][0], theme["also"][1])
        paths |= dict.fromkeys(names[:doubled], ((interest, name), also))
        paths |= dict.fromkeys(names[doubled:], ((interest, name),))
    return paths


def _walk(
    generator: Generator, places: list[Place], paths: Mapping[str, tuple[Place, ...]], users: int, mean_length: int
) -> tuple[Integers, Integers]:
    """The user and the item of every interaction, one step of all users at a time."""
    interests = list(INTERESTS)
    place_of = {place: number for number, place in enumerate(places)}
    interest_of = np.array([interests.index(interest) for interest, _ in places])
    first_place = np.searchsorted(interest_of, np.arange(len(interests)))
    themes = np.bincount(interest_of)
    own = np.array([place_of[home[0]] for home in paths.values()])
    other = np.array([place_of[home[-1]] for home in paths.values()])
    shelves = [generator.permutation(np.flatnonzero((own == place) | (other == place))) for place in range(len(places))]
    shelf_start = np.concatenate([[0], np.cumsum([len(shelf) for shelf in shelves])])
    shelf_items = np.concatenate(shelves)

    chosen = np.argsort(generator.random((users, len(interests))), axis=1)[:, :3]
    width = generator.integers(1, 4, users)
    lengths = np.maximum(2, generator.poisson(generator.gamma(4.0, mean_length / 4.0, users)))
    place = first_place[chosen[:, 0]] + generator.integers(0, themes[chosen[:, 0]])
    seen = np.zeros((users, len(paths)), np.bool_)
    rows: list[tuple[Integers, Integers]] = []
    for step in range(int(lengths.max())):
        active = np.flatnonzero(lengths > step)
        item = _pick(generator, shelf_items, shelf_start, place[active], seen, active)
        seen[active, item] = True
        rows.append((active, item))
        # To the shared item's other interest, to the next theme, or to another interest of the user.
        across = np.where(place[active] == own[item], other[item], own[item])
        liked = (chosen[active] == interest_of[across][:, None]) & (np.arange(3) < width[active][:, None])
        follow = liked.any(axis=1) & (across != place[active]) & (generator.random(len(active)) < FOLLOW)
        here = interest_of[place[active]]
        onward = first_place[here] + (place[active] - first_place[here] + 1) % themes[here]
        moved = np.where(generator.random(len(active)) < MOVE_ON, onward, place[active])
        turn = generator.random(len(active)) < RETURN
        next_interest = chosen[active, generator.integers(0, width[active])]
        moved = np.where(turn, first_place[next_interest], moved)
        place[active] = np.where(follow, across, moved)
    return np.concatenate([user for user, _ in rows]), np.concatenate([item for _, item in rows])


def _pick(
    generator: Generator, items: Integers, starts: Integers, place: Integers, seen: NDArray[np.bool_], users: Integers
) -> Integers:
    """An item of each user's theme by Zipf's law. An item that the user already has is redrawn, at most three times."""
    size = np.diff(starts)[place]
    item = np.zeros(len(place), np.int64)
    again = np.arange(len(place))
    for _ in range(4):
        rank = (np.power(size[again] + 1.0, generator.random(len(again))) - 1).astype(np.int64)
        item[again] = items[starts[place[again]] + np.minimum(rank, size[again] - 1)]
        again = again[seen[users[again], item[again]]]
    return item
