"""Deep Retrieval beside what a user would pick instead, on the users that a run held out."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import Any

from pathdex.data.interactions import Interactions
from pathdex.data.splits import Queries, Split
from pathdex.errors import QueryError
from pathdex.evaluation.protocol import Method
from pathdex.recommenders.brute_force import BruteForce
from pathdex.recommenders.deep_retrieval import DeepRetrieval
from pathdex.recommenders.item_cf import ItemCF
from pathdex.recommenders.popularity import Popularity

METHODS = (DeepRetrieval.name, BruteForce.name, ItemCF.name, Popularity.name)


def retrieval_settings(n: int, *, beams: Sequence[int] = (), candidates: Sequence[int] = ()) -> list[dict[str, Any]]:
    """The options that Deep Retrieval is asked with; where none is named, budgets of 5, 10 and 20 times n."""
    if not beams and not candidates:
        candidates = (5 * n, 10 * n, 20 * n)
    short = [budget for budget in candidates if budget < n]
    if short:
        raise QueryError(
            f"candidates={', '.join(map(str, short))}: must be at least n={n}, or n items cannot be found; "
            "ask for fewer items or allow more candidates"
        )
    return [*({"beam": beam} for beam in beams), *({"candidates": budget} for budget in candidates)]


def comparison_methods(
    model: DeepRetrieval,
    train: Interactions,
    *,
    settings: Sequence[dict[str, Any]],
    names: Sequence[str] = METHODS,
) -> list[Method]:
    """Deep Retrieval at every setting, its brute force, and baselines fitted on the same training data."""
    for name in names:
        if name not in METHODS:
            close = difflib.get_close_matches(name, METHODS, n=1)
            hint = f"; did you mean {close[0]!r}?" if close else ""
            raise QueryError(f"methods={name!r}: must be among {', '.join(METHODS)}{hint}")
    methods: list[Method] = []
    if DeepRetrieval.name in names:
        methods += [Method(DeepRetrieval.name, model, setting) for setting in settings]
    if BruteForce.name in names:
        methods.append(Method(BruteForce.name, BruteForce(model)))
    if ItemCF.name in names:
        methods.append(Method(ItemCF.name, ItemCF().fit(train)))
    if Popularity.name in names:
        methods.append(Method(Popularity.name, Popularity().fit(train)))
    return methods


def held_out_queries(split: Split, on: str) -> Queries:
    """The test or the validation queries of a split."""
    if on not in ("test", "valid"):
        raise QueryError(f"on={on!r}: must be test or valid")
    return split.test if on == "test" else split.valid
