"""Explanations against probabilities of all paths, and their text."""

import numpy as np
import pytest

from pathdex.index.paths import encode_paths
from pathdex.retrieval.explain import Explanation, PathExplanation, WhyNot, explain, why_not
from tests.random_model import random_model

PATH = PathExplanation((1, 2), (0.5, 0.25), 0.125, beam_rank=3, lost_at=None, size=7)
LOST = PathExplanation((3, 0), (0.5, 0.125), 0.0625, beam_rank=None, lost_at=2, size=4)


def test_the_text_of_an_explanation() -> None:
    assert str(Explanation("tea", (PATH, LOST), 1.5)) == (
        "tea: score 1.500\n"
        "  path (1, 2): p = 0.500 x 0.250 = 0.12, beam rank 3, 7 items\n"
        "  path (3, 0): p = 0.500 x 0.125 = 0.062, lost at layer 2, 4 items"
    )
    assert str(Explanation("tea", (), None)) == "tea: not retrieved"


@pytest.mark.parametrize(
    ("reason", "values", "text"),
    [
        ("recommended", {"rank": 2}, "tea is recommended, at rank 2"),
        ("seen", {}, "tea is in the history, whose items are excluded"),
        ("beam", {"layer": 2, "smallest_beam": 9}, "tea was lost at layer 2 by a beam of 5; a beam of 9 finds it"),
        ("rerank", {"rank": 12, "needed": 0.5}, "tea is candidate 12 by score; the first 10 score 0.500 or more"),
        ("rerank", {"rank": 12}, "tea is candidate 12 by score; the first 10 score more"),
    ],
)
def test_the_text_of_each_reason(reason: str, values: dict[str, int], text: str) -> None:
    absent = {"layer": None, "smallest_beam": None, "rank": None, "needed": None}
    answer = WhyNot(Explanation("tea", (), None), reason, n=10, beam=5, **{**absent, **values})
    assert str(answer).splitlines()[0] == text


@pytest.mark.parametrize("structure", ["mlp", "recurrent"])
def test_an_explanation_has_every_path_with_its_probability_and_rank(structure: str) -> None:
    model = random_model(structure=structure)
    retriever, state = model.retriever, model.state([101, 104])
    beam = len(retriever.postings)
    codes, log_p = retriever.search_paths(state.vector, beam)
    for item in range(30):
        found = explain(retriever, state, f"item {item}", item, beam=beam)
        assert found.score is not None
        own = encode_paths([path.nodes for path in found.paths], retriever.postings.num_nodes)
        assert sorted(own.tolist()) == sorted(retriever.paths[item].tolist())
        assert [path.probability for path in found.paths] == sorted((p.probability for p in found.paths), reverse=True)
        for path, code in zip(found.paths, own, strict=True):
            assert path.beam_rank is not None
            assert path.lost_at is None
            assert codes[path.beam_rank - 1] == code
            assert path.probability == pytest.approx(np.exp(log_p[path.beam_rank - 1]), rel=1e-3)
            assert path.probability == pytest.approx(np.prod(path.layer_probability))
            assert path.size == len(retriever.postings.items_on(int(code)))


def test_reasons_follow_from_the_ranking() -> None:
    model = random_model()
    retriever, state = model.retriever, model.state([101, 104])
    ranked = [item for item, _ in model.recommend([101, 104], 3, beam=2)]
    for item in range(30):
        why = why_not(retriever, state, 100 + item, item, exclude_seen=True, n=3, beam=2)
        if item in (1, 4):
            assert why.reason == "seen"
        elif 100 + item in ranked:
            assert (why.reason, why.rank) == ("recommended", ranked.index(100 + item) + 1)
        else:
            assert why.reason in ("beam", "rerank")
            assert (why.smallest_beam is None) == (why.reason == "rerank")
            assert why.smallest_beam is None or why.smallest_beam > 2
