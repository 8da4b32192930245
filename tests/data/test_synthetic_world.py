"""The planted paths and the draws from them."""

import numpy as np

from pathdex.data.synthetic_world import plant_world, preferred_prefixes, zipf


def planted(items=200, depth=2, nodes=4):
    return plant_world(np.random.default_rng(0), items, depth, nodes)


def test_paths_hold_the_items_of_the_table():
    world, table = planted()
    held = [world.members[low:high].tolist() for low, high in zip(world.starts[:-1], world.starts[1:], strict=True)]
    codes = table["c1"].to_numpy() * 4 + table["c2"].to_numpy()
    expected = {int(code): sorted(table["item_id"].to_numpy()[codes == code].tolist()) for code in np.unique(codes)}
    assert [sorted(items) for items in held] == list(expected.values())


def test_the_cover_has_every_item_once_in_the_order_of_the_paths():
    world, _ = planted()
    assert sorted(world.cover.tolist()) == list(range(200))
    assert (np.diff(world.cover_path) >= 0).all()
    assert all(
        item in world.members[world.starts[path] : world.starts[path + 1]]
        for item, path in zip(world.cover, world.cover_path, strict=True)
    )


def test_low_ranks_are_frequent():
    ranks = zipf(np.random.default_rng(0), 9, 10_000)
    shares = np.bincount(ranks, minlength=9) / 10_000
    assert (np.diff(shares) < 0).all()
    assert abs(shares[0] - np.log(2) / np.log(10)) < 0.02  # log((r + 2) / (r + 1)) / log(size + 1) at r = 0
    assert zipf(np.random.default_rng(0), np.array([1, 1]), 2).tolist() == [0, 0]


def test_the_first_prefix_is_that_of_the_own_items():
    world, _ = planted()
    bounds = np.array([0, 50, 100, 200])
    prefixes, width = preferred_prefixes(np.random.default_rng(0), world, bounds)
    assert prefixes[:, 0].tolist() == [int(world.prefix_of[world.cover_path[first]]) for first in (0, 50, 100)]
    assert prefixes.shape == (3, 3)
    assert set(width.tolist()) <= {1, 2, 3}
