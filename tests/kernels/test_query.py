"""Whole queries in one call against the same steps one by one."""

import gc
import weakref

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pathdex.data.ragged import Ragged
from pathdex.kernels.candidates import ALL_ITEMS, NO_ITEMS
from pathdex.kernels.layout import as_readonly
from pathdex.kernels.query import NO_ITEM, Answers, choose_candidates, new_engine
from pathdex.recommenders.deep_retrieval import DeepRetrieval
from pathdex.retrieval.filters import NO_FILTERS, Filters
from tests.random_model import random_model

ITEMS, QUERIES = 30, 4
rows = st.lists(st.lists(st.integers(0, ITEMS - 1), max_size=9), min_size=QUERIES, max_size=QUERIES)


def at_once(model: DeepRetrieval, histories: Ragged, filters: Filters, parts: list[range], **search: int) -> Answers:
    n = search["n"]
    answers = Answers(np.empty((QUERIES, n), np.int64), np.empty((QUERIES, n), np.float32), np.empty(QUERIES, np.int64))
    for part in parts:
        model.retriever.answer(histories, filters, part, answers, **{"candidates": None, **search})
    return answers


@pytest.mark.parametrize("encoder", ["gru", "pooled", "attention"])
@pytest.mark.parametrize("structure", ["mlp", "recurrent"])
@pytest.mark.parametrize("neighbours", [0, 8])
@settings(max_examples=15, deadline=None)
@given(
    histories=rows,
    exclude=st.none() | rows,
    n=st.integers(1, 40),
    beam=st.integers(1, 70),
    spare=st.none() | st.integers(0, 20),
    cut=st.integers(0, QUERIES),
)
def test_one_call_equals_the_steps_one_by_one(
    encoder: str,
    structure: str,
    neighbours: int,
    histories: list[list[int]],
    exclude: list[list[int]] | None,
    n: int,
    beam: int,
    spare: int | None,
    cut: int,
) -> None:
    model = random_model(ITEMS, encoder=encoder, structure=structure, neighbours=neighbours)
    retriever, batch = model.retriever, Ragged.from_rows(histories)
    filters = NO_FILTERS if exclude is None else Filters(exclude=Ragged.from_rows(exclude))
    candidates = None if spare is None else n + spare
    found = at_once(
        model, batch, filters, [range(cut), range(cut, QUERIES)], n=n, beam=beam, candidates=candidates or 0
    )
    for query in range(QUERIES):
        state = retriever.encoder.encode(batch[query])
        every = retriever.find_candidates(state, filters, query, beam=beam, candidates=candidates, min_candidates=n)
        items, scores = retriever.rerank(state.vector, every, n)
        assert found.candidates[query] == len(every.items)
        alone = retriever.best_items(state, filters, query, n=n, beam=beam, candidates=candidates)
        assert [one.tolist() for one in alone[:2]] == [items.tolist(), scores.tolist()]
        assert alone[2] == len(every.items)
        assert found.items[query].tolist() == [*items.tolist(), *[NO_ITEM] * (n - len(items))]
        assert found.scores[query].tolist() == [*scores.tolist(), *[-np.inf] * (n - len(items))]


def test_a_beam_doubles_until_there_are_enough_candidates() -> None:
    retriever = random_model(ITEMS, paths_per_item=1).retriever
    user, paths = retriever.encoder.encode(np.array([3])).vector, len(retriever.postings)
    histories = as_readonly(np.array([3]), np.int32)

    def search(beam: int, n: int, max_beam: int) -> tuple[bool, int]:
        found = choose_candidates(
            retriever._index, retriever._search(n, beam, None), histories, user, NO_ITEMS, ALL_ITEMS, beam, max_beam
        )
        return found[0], len(found[1])

    sizes = [search(beam, 0, paths)[1] for beam in range(1, paths + 1)]
    assert search(3, sizes[2], 99) == (True, sizes[2])
    assert search(3, sizes[2] + 1, 99) == (True, sizes[5])
    assert search(3, sizes[5] + 1, 11) == (False, sizes[5])
    assert search(3, ITEMS + 1, 2 * paths) == (True, ITEMS)  # every path has been followed


def test_neighbours_count_as_candidates() -> None:
    alone, near = random_model(ITEMS), random_model(ITEMS, neighbours=8, neighbour_share=1.0)
    state, wanted = near.state([101, 104]), 9
    by_paths = alone.retriever.find_candidates(state, NO_FILTERS, 0, beam=1)
    limits = {"beam": 1, "candidates": wanted, "min_candidates": wanted}
    assert len(by_paths.items) < wanted
    found = near.retriever.find_candidates(state, NO_FILTERS, 0, **limits)
    assert len(found.items) == wanted
    assert found.log_probability.min() == by_paths.log_probability.min()  # of the same beam


def test_an_engine_keeps_its_arrays_alive() -> None:
    model = random_model(ITEMS)
    histories = Ragged.from_rows([[1, 2], [3], [], [4]])
    expected = at_once(model, histories, NO_FILTERS, [range(QUERIES)], n=5, beam=9)
    retriever = model.retriever
    encoder = retriever.encoder.compiled
    assert encoder is not None
    copies = [
        tuple.__new__(type(one), [part.copy() if isinstance(part, np.ndarray) else part for part in one])
        for one in (encoder, retriever.structure)
    ]
    for one in copies:
        for part in one:
            if isinstance(part, np.ndarray):
                part.flags.writeable = False
    index = retriever._index._replace(structure=copies[1])
    retriever.__dict__["_engine"] = new_engine(copies[0], index)
    del copies, index
    gc.collect()
    again = at_once(model, histories, NO_FILTERS, [range(QUERIES)], n=5, beam=9)
    assert again.items.tolist() == expected.items.tolist()
    assert again.scores.tolist() == expected.scores.tolist()


def test_a_model_that_is_no_longer_used_is_freed_at_once() -> None:
    model = random_model(ITEMS)
    at_once(model, Ragged.from_rows([[1], [2], [3], [4]]), NO_FILTERS, [range(QUERIES)], n=5, beam=9)
    retriever = model.retriever
    arrays = [weakref.ref(one) for one in (retriever.table, retriever.compact, retriever.structure.outputs)]
    model.__dict__.pop("retriever")
    del retriever
    assert [one() for one in arrays] == [None] * 3
