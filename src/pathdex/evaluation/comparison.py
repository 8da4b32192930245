"""Deep Retrieval beside its brute force and simple baselines, on the users that a run held out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pathdex.data.interactions import Interactions
from pathdex.data.splits import Queries, Split
from pathdex.errors import QueryError, did_you_mean
from pathdex.evaluation.protocol import Method
from pathdex.recommenders.brute_force import BruteForce
from pathdex.recommenders.capabilities import HasVectors
from pathdex.recommenders.deep_retrieval import DeepRetrieval
from pathdex.recommenders.item_cf import ItemCF
from pathdex.recommenders.local_shards import LocalShards
from pathdex.recommenders.popularity import Popularity
from pathdex.recommenders.registry import make_estimator

METHODS = (DeepRetrieval.name, BruteForce.name, ItemCF.name, Popularity.name)
SHARD_METHODS = (DeepRetrieval.name, ItemCF.name, Popularity.name)
"""Those for a model in shards: brute force takes the vectors of all items."""


def search_options(n: int, *, beams: Sequence[int] = (), candidates: Sequence[int] = ()) -> list[dict[str, Any]]:
    """One set of query options per beam and per number of candidates; by default 5, 10 and 20 times n candidates."""
    if not beams and not candidates:
        candidates = (5 * n, 10 * n, 20 * n)
    for count in candidates:
        if count < n:
            raise QueryError(
                f"must be at least n={n}, or n items cannot be found",
                argument="candidates",
                value=count,
                remedy="ask for fewer items or allow more candidates",
            )
    return [*({"beam": beam} for beam in beams), *({"candidates": count} for count in candidates)]


def comparison_methods(
    model: HasVectors | LocalShards,
    train: Interactions,
    *,
    options: Sequence[Mapping[str, Any]],
    names: Sequence[str] = METHODS,
) -> list[Method]:
    """The model with each set of options, its brute force, and baselines fitted on the same training data."""
    if isinstance(model, LocalShards) and BruteForce.name in names:
        rule = f"{BruteForce.name} takes the vectors of all items, which no shard has"
        raise QueryError(rule, argument="methods", value=list(names), remedy=f"use {', '.join(SHARD_METHODS)}")
    for name in names:
        if name not in METHODS:
            rule = f"must be among {', '.join(METHODS)}{did_you_mean(name, METHODS)}"
            raise QueryError(rule, argument="methods", value=name)
    methods: list[Method] = []
    for name in METHODS:
        if name not in names:
            continue
        if name == DeepRetrieval.name:
            methods += [Method(name, model, one) for one in options]
        elif name == BruteForce.name:
            assert not isinstance(model, LocalShards)
            methods.append(Method(name, BruteForce(model)))
        else:
            methods.append(Method(name, make_estimator(name).fit(train)))
    return methods


def held_out_queries(split: Split, on: str) -> Queries:
    """The test or the validation queries of a split."""
    if on not in ("test", "valid"):
        raise QueryError("must be test or valid", argument="on", value=on)
    return split.test if on == "test" else split.valid
