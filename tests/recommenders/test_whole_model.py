"""What a router computes by itself equals what the whole model computes; the answers are tested in tests/server."""

from __future__ import annotations

import numpy as np
import pytest

from pathdex.recommenders.sharding import split_model
from pathdex.recommenders.whole_model import KnownHistory, WholeModel
from tests.random_model import random_model


@pytest.mark.parametrize("encoder", ["gru", "pooled", "attention"])
def test_it_encodes_and_follows_paths_as_the_whole_model(encoder: str) -> None:
    model = random_model(60, neighbours=4, encoder=encoder)
    [shard] = split_model(model, 1, "0123456789ab")
    whole = WholeModel(
        shard.facts, shard.config, dict(model.model_state.weights), model.postings.paths, shard.path_sizes
    )
    whole.warmup()
    codes = np.array([3, 50, 3, 7])
    distinct = np.unique(codes)
    near = model.model_state.neighbours
    assert near is not None
    spans = [slice(near.offsets[code], near.offsets[code + 1]) for code in distinct]
    history = KnownHistory(
        codes,
        distinct,
        model.retriever.table[distinct, : model.config.embedding_dim],
        np.array([span.stop - span.start for span in spans]),
        np.concatenate([near.items[span] for span in spans]),
        np.concatenate([near.similarities[span] for span in spans]),
    )
    state = model.retriever.encoder.encode(codes)
    user = whole.encode(history)
    assert user.tobytes() == state.vector.tobytes()
    positions, log_p = whole.follow(user, 6)
    paths, expected = model.retriever.search_paths(state.vector, 6)
    assert model.postings.paths[positions].tolist() == paths.tolist()
    assert log_p.tobytes() == expected.tobytes()
    assert whole.sizes_of(paths) == [len(model.postings.items_on(path)) for path in paths]
    assert whole.health == model.health()
    for n, beam, candidates in ((3, None, None), (3, 7, None), (3, None, 20), (3, 10**6, 10**6)):
        search = model.search_options(n, {"beam": beam, "candidates": candidates})
        assert whole.beam_of(n, beam, candidates) == (search["beam"], search["candidates"] or 0)
