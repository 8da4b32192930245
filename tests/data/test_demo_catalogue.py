"""The demo catalogue: readable names and a known structure."""

import numpy as np
import pytest

from pathdex.data import demo_catalogue
from pathdex.data.demo_catalogue import INTERESTS
from pathdex.errors import ConfigError


@pytest.fixture(scope="module")
def catalogue():
    return demo_catalogue()


def test_shared_shelves_exist():
    for name, interest in INTERESTS.items():
        for theme in interest["themes"].values():
            other, shelf = theme["also"]
            assert other != name
            assert shelf in INTERESTS[other]["themes"]


def test_sizes(catalogue):
    assert len(catalogue.paths) == 2000
    assert len({interests[0] for interests in map(catalogue.interests, catalogue.paths)}) == 20
    assert sum(len(paths) == 2 for paths in catalogue.paths.values()) == 300
    assert catalogue.data.num_users == 3000
    assert repr(catalogue).startswith("DemoCatalogue(2,000 items, ")


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_chocolate_is_food_and_a_gift(seed):
    small = demo_catalogue(items=1000, users=20, seed=seed)
    assert small.interests("dark chocolate") == ("food", "gifts")


def test_every_item_has_a_place(catalogue):
    data = catalogue.data
    assert set(data.items.ids(range(data.num_items))) <= set(catalogue.paths)


def test_order_is_informative(catalogue):
    """The next item is far more often of the next theme than of the previous one."""
    data = catalogue.data
    themes = [(interest, theme) for interest, words in INTERESTS.items() for theme in words["themes"]]
    home = np.array([themes.index(catalogue.paths[name][0]) for name in data.items.ids(range(data.num_items))])
    places = home[data.sequences.values]
    inside = np.diff(np.repeat(np.arange(data.num_users), data.sequences.lengths)) == 0
    here, after = places[:-1][inside], places[1:][inside]
    same_interest = here // 5 == after // 5
    step = (after - here)[same_interest] % 5
    counts = np.bincount(step, minlength=5)
    assert same_interest.mean() > 0.5
    assert counts[1] > 3 * counts[4]


def test_popularity_has_a_long_tail(catalogue):
    counts = np.sort(catalogue.data.item_counts())[::-1]
    assert counts[:200].sum() > 0.2 * counts.sum()
    assert counts[0] > 5 * np.median(counts)


def test_the_seed_determines_the_catalogue():
    one, same, other = (demo_catalogue(items=200, users=30, seed=seed) for seed in (3, 3, 4))
    assert one.frame.equals(same.frame)
    assert one.paths == same.paths
    assert one.paths != other.paths


def test_all_invalid_sizes_are_reported_together():
    with pytest.raises(ConfigError) as caught:
        demo_catalogue(items=5000, users=0, mean_length=1, shared=2, seed=-1)
    assert tuple(map(str, caught.value.problems)) == (
        "items=5000: must be a whole number of at least 100 and at most 2400",
        "users=0: must be a whole number of at least 1",
        "mean_length=1: must be a whole number of at least 2",
        "seed=-1: must be a whole number of at least 0",
        "shared=2: must be a share from 0 to 1",
    )
