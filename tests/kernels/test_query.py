"""Whole queries in one call against the same steps one by one."""

import gc
import weakref

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pathdex.data.ragged import Ragged
from pathdex.kernels.query import NO_ITEM, Answers, new_engine
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
    histories: list[list[int]],
    exclude: list[list[int]] | None,
    n: int,
    beam: int,
    spare: int | None,
    cut: int,
) -> None:
    model = random_model(ITEMS, encoder=encoder, structure=structure)
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
