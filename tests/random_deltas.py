"""Random changes of a model: the same delta for the plain version and for the live one."""

from __future__ import annotations

import numpy as np

from pathdex.data.vocabulary import Vocabulary
from pathdex.index.postings import NO_PATH
from pathdex.kernels.neighbours import Neighbours
from pathdex.recommenders.deep_retrieval import DeepRetrieval
from pathdex.recommenders.model_delta import ModelDelta, apply_delta, apply_ids


def random_delta(
    model: DeepRetrieval,
    random: np.random.Generator,
    *,
    changed: int = 3,
    new: int = 2,
    reused: int = 1,
    removed: int = 1,
    unplaced: float = 0.1,
    weights: bool = False,
    neighbours: float = 0.2,
) -> ModelDelta:
    """A delta of at most so many items of each kind.

    New ids follow the largest one (at the end of 64 bits they precede the smallest), or return from the removed.
    """
    state, ids, config = model.model_state, model.items, model.config
    assert config.num_nodes is not None
    living = np.setdiff1d(np.arange(len(ids)), ids.removed)
    random.shuffle(living)
    gone, kept = np.sort(living[:removed]), living[removed : removed + changed]
    places = random.permutation(ids.removed.copy())[:reused]
    fresh = np.arange(len(ids), len(ids) + new)
    id_codes = np.sort(np.concatenate([places, fresh]))
    items = np.sort(np.concatenate([kept, id_codes])).astype(np.int64)
    capacity, each = config.num_nodes**config.depth, config.paths_per_item
    paths = np.array([random.choice(capacity, each, replace=False) for _ in items], np.int64).reshape(-1, each)
    paths[random.random(len(items)) < unplaced] = NO_PATH
    known = {int(one) for one in ids.ids(np.setdiff1d(np.arange(len(ids)), ids.removed))}
    largest = max(known, default=99)
    first = largest + 1 if largest + len(id_codes) < 2**63 else min(known) - len(id_codes)
    names = list(range(first, first + len(id_codes)))
    if len(gone) and names and random.random() < 0.5:
        names[0] = ids.id(int(gone[0]))  # Removed and back in another place at once.
    numbers = np.array([int(name) for name in names], np.int64)
    size, lists = len(ids) + new, None
    if random.random() < neighbours:
        lengths = random.integers(0, 4, size)
        lengths[np.setdiff1d(np.union1d(ids.removed, gone), id_codes)] = 0
        present = np.setdiff1d(np.arange(size), np.setdiff1d(np.union1d(ids.removed, gone), id_codes))
        similar = random.choice(present, int(lengths.sum())).astype(np.int32) if len(present) else np.empty(0, np.int32)
        lengths = lengths if len(present) else np.zeros_like(lengths)
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        lists = Neighbours(offsets, similar, random.random(len(similar), np.float32))
    return ModelDelta(
        num_items=size,
        items=items,
        rows=random.normal(0, 0.3, (len(items), state.rows.shape[1])).astype(np.float32),
        paths=paths,
        counts=random.integers(0, 50, len(items)),
        id_codes=id_codes,
        ids=Vocabulary(numbers) if ids.kind == "int" else Vocabulary([str(one) for one in names]),
        removed=gone,
        weights={name: value + np.float32(0.1) for name, value in state.weights.items()} if weights else {},
        settings={"path_weight": float(random.random())} if random.random() < 0.3 else {},
        neighbours=lists,
    )


def changed_model(model: DeepRetrieval, delta: ModelDelta) -> DeepRetrieval:
    """The plain version: a new model in the state after the delta."""
    delta.check(model.model_state, model.items)
    following = model._of_state(apply_delta(model.model_state, delta))
    following._items = apply_ids(model.items, delta)
    return following
