"""Similar items, explanations and look-ups through shards are those of the whole model."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pathdex.server import routed_items, service
from pathdex.server.errors import RequestError
from pathdex.server.schemas import ExplainRequest, SimilarRequest, WhyNotRequest
from tests.server.local_shards import outcome, run
from tests.server.test_routed_queries import VARIANTS, ids, shards_of

variants, counts = st.integers(0, len(VARIANTS) - 1), st.sampled_from([1, 3, 5])


@settings(max_examples=60, deadline=None)
@given(variants, counts, ids, st.sampled_from([1, 10, 650, 5000]))
def test_similar_items(variant: int, count: int, item: int, n: int) -> None:
    shards, request = shards_of(variant, count), SimilarRequest(item, n)
    expected = outcome(lambda: service.similar(shards.served, request).items)
    assert outcome(lambda: routed_items.similar(shards.asked(), shards.routed, request)) == expected


@settings(max_examples=60, deadline=None)
@given(
    variants,
    counts,
    st.lists(ids, max_size=5),
    ids,
    st.none() | st.sampled_from([1, 3, 10**6]),
    st.sampled_from([1, 20, 5000]),
    st.booleans(),
)
def test_explanations(
    variant: int, count: int, history: list[int], item: int, beam: int | None, n: int, exclude_seen: bool
) -> None:
    shards, given = shards_of(variant, count), list[str | int](history)
    expected = outcome(
        lambda: service.explain(shards.served, ExplainRequest(item, given, beam=beam), given).explanation
    )
    found = outcome(lambda: routed_items.explain(shards.asked(), shards.routed, given, item, beam))
    assert found == expected
    request = WhyNotRequest(item, given, beam=beam, n=n, exclude_seen=exclude_seen)
    expected = outcome(lambda: service.why_not(shards.served, request, given).why_not)
    assert outcome(lambda: routed_items.why_not(shards.asked(), shards.routed, given, request)) == expected


@settings(max_examples=40, deadline=None)
@given(variants, counts, st.one_of(ids.map(str), st.sampled_from(["", "x", "0101", "٣"])))
def test_items_and_paths(variant: int, count: int, text: str) -> None:
    shards = shards_of(variant, count)
    expected = outcome(lambda: service.item_info(shards.served, text))
    assert outcome(lambda: routed_items.item_info(shards.asked(), shards.routed, text)) == expected
    if not isinstance(expected, tuple):
        nodes = "-".join(map(str, service.item_info(shards.served, text).paths[0]))  # type: ignore[index]
        for path in (nodes, "0", f"{nodes}-1", "9999-1-1"):
            expected = outcome(lambda path=path: service.path_info(shards.served, path))  # type: ignore[misc]
            found = outcome(
                lambda path=path: routed_items.path_info(shards.asked(), shards.routed, path)  # type: ignore[misc]
            )
            assert found == expected


def test_an_item_of_a_missing_shard_is_not_called_unknown() -> None:
    shards = shards_of(0, 3)
    for work in (
        lambda: routed_items.item_info(shards.asked(frozenset({1}), partial=True), shards.routed, "101"),
        lambda: routed_items.similar(shards.asked(frozenset({1}), partial=True), shards.routed, SimilarRequest(101)),
    ):
        with pytest.raises(RequestError, match=r"shard 2 of 3 does not answer, and may have this item"):
            run(work())


def test_similar_items_can_be_partial() -> None:
    shards = shards_of(0, 3)
    asked = shards.asked(frozenset({1}), partial=True)
    found = run(routed_items.similar(asked, shards.routed, SimilarRequest(100, 20)))
    assert len(found) == 20
    assert all((int(one.id) - 100) % 3 != 1 for one in found)
    assert asked.missing == {1}
