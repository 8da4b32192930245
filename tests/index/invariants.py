"""What every index must satisfy, as checks that tests apply to paths, postings, shares and tries."""

import numpy as np
from numpy.typing import NDArray

from pathdex.index.postings import Postings
from pathdex.kernels.beam import Trie

Ints = NDArray[np.int64]


def check_index(paths: Ints, num_nodes: int, depth: int) -> Postings:
    """Check paths (item, path) and everything built from them; returns the postings."""
    check_paths(paths, num_nodes, depth)
    postings = Postings.from_paths(paths, num_nodes, depth)
    check_postings(postings, paths)
    counts = np.random.default_rng(0).integers(0, 50, len(paths))
    check_log_shares(postings, postings.log_shares(counts), counts)
    check_trie(Trie.pack(postings.prefixes, postings.children, num_nodes), postings)
    return postings


def check_paths(paths: Ints, num_nodes: int, depth: int) -> None:
    """Every item has J distinct paths below K^D."""
    assert paths.ndim == 2
    assert paths.min() >= 0
    assert int(paths.max()) < num_nodes**depth
    assert (np.diff(np.sort(paths, axis=1), axis=1) > 0).all()


def check_postings(postings: Postings, paths: Ints) -> None:
    """Postings invert the paths exactly, and their trie holds every prefix once."""
    num_items, paths_per_item = paths.shape
    assert postings.num_items == num_items
    assert postings.offsets[0] == 0
    assert postings.offsets[-1] == len(postings.items) == num_items * paths_per_item
    assert len(postings.offsets) == len(postings) + 1
    assert (postings.sizes > 0).all()
    assert postings.sizes.sum() == num_items * paths_per_item
    assert (np.diff(postings.paths) > 0).all()
    assert int(postings.paths[-1]) < postings.num_nodes**postings.depth
    on_paths = np.repeat(postings.paths, postings.sizes)
    same_path = np.diff(on_paths) == 0
    assert (np.diff(postings.items)[same_path] > 0).all()  # ascending and distinct on each path
    pairs = sorted(zip(postings.items.tolist(), on_paths.tolist(), strict=True))
    assert pairs == sorted((item, path) for item, row in enumerate(paths.tolist()) for path in row)
    _check_prefixes(postings)


def _check_prefixes(postings: Postings) -> None:
    assert len(postings.prefixes) == postings.depth + 1
    assert len(postings.children) == postings.depth
    assert postings.prefixes[0].tolist() == [0]
    for depth, prefixes in enumerate(postings.prefixes):
        step = postings.num_nodes ** (postings.depth - depth)
        assert prefixes.tolist() == sorted({path // step for path in postings.paths.tolist()})
    for depth, children in enumerate(postings.children):
        parents, below = postings.prefixes[depth], postings.prefixes[depth + 1]
        assert len(children) == len(parents) + 1
        assert children[0] == 0
        assert children[-1] == len(below)
        counts = np.diff(children)
        assert ((counts > 0) & (counts <= postings.num_nodes)).all()
        assert (np.repeat(parents, counts) == below // postings.num_nodes).all()


def check_log_shares(postings: Postings, log_shares: NDArray[np.float32], counts: Ints) -> None:
    """p(v | c) sums to 1 on every path and is proportional to N_v + 1."""
    shares = np.exp(log_shares.astype(np.float64))
    np.testing.assert_allclose(np.add.reduceat(shares, postings.offsets[:-1]), 1.0, rtol=1e-5)
    weights = counts[postings.items] + 1.0
    first = np.repeat(postings.offsets[:-1], postings.sizes)
    np.testing.assert_allclose(shares / shares[first], weights / weights[first], rtol=1e-4)


def check_trie(trie: Trie, postings: Postings) -> None:
    """The packed trie walks to exactly the paths in use."""
    assert np.diff(trie.levels).tolist() == [len(prefixes) for prefixes in postings.prefixes]
    assert len(trie.label) == trie.levels[-1]
    assert len(trie.first_child) == trie.levels[-2] + 1
    assert (np.diff(trie.first_child) > 0).all()
    assert trie.first_child[-1] == trie.levels[-1]

    codes = np.zeros(trie.levels[-1], np.int64)
    for node in range(trie.levels[-2]):
        children = slice(trie.first_child[node], trie.first_child[node + 1])
        codes[children] = codes[node] * postings.num_nodes + trie.label[children]
    assert codes[trie.levels[-2] :].tolist() == postings.paths.tolist()
