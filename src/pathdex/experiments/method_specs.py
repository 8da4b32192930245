"""The methods of the comparison: how each is made, asked, tuned and swept."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pathdex.errors import MissingExtraError, QueryError
from pathdex.recommenders.deep_retrieval import DeepRetrieval
from pathdex.recommenders.registry import make_estimator

Values = Mapping[str, Any]


@dataclass(frozen=True)
class MethodSpec:
    """What the comparison does with one method."""

    name: str
    trials: tuple[Values, ...] = ()
    """Hyper-parameters to try on the validation users besides the defaults; none: there is nothing to tune."""
    quick: Values = field(default_factory=dict)
    """Hyper-parameters of a first look."""
    width: str | None = None
    """The option of `rank` that trades time for accuracy."""
    budget: int = 1
    """`width` is so many times n in the comparison."""
    sweep: tuple[float, ...] = ()
    """`width` along the accuracy-time curve: times n, or for Deep Retrieval the beam itself."""

    def options(self, n: int) -> dict[str, Any]:
        """How `rank` is asked in the comparison."""
        return {} if self.width is None else {self.width: self.budget * n}

    def swept(self, n: int) -> list[dict[str, Any]]:
        """The options along the curve."""
        if self.name == DeepRetrieval.name:
            return [{"beam": int(beam)} for beam in self.sweep]
        return [{str(self.width): max(1, round(factor * n))} for factor in self.sweep]


_TREE: dict[str, Any] = {
    "trials": ({"embedding_dim": 64, "next_items": 10}, {"dropout": 0.4}, {"negatives": 50}),
    "width": "beam",
    # A beam of 5 n scores 10 n leaves, as many as Deep Retrieval's candidates.
    "budget": 5,
    "sweep": (1, 2, 5, 10, 20, 40),
}

METHOD_SPECS = {
    one.name: one
    for one in (
        MethodSpec("popularity"),
        MethodSpec("item-cf", ({"shrinkage": 20.0}, {"neighbours": 100}, {"neighbours": 100, "shrinkage": 20.0})),
        MethodSpec(
            "implicit-als",
            ({"factors": 128}, {"alpha": 2.0, "regularization": 1.0}, {"alpha": 40.0}),
            {"iterations": 5},
        ),
        MethodSpec(
            "youtube-dnn",
            ({"epochs": 16}, {"embedding_dim": 128}, {"next_items": 10}),
            {"epochs": 2},
        ),
        MethodSpec(
            "ffm-hnsw",
            (
                {"loss": "softmax"},
                {"loss": "softmax", "epochs": 10},
                {"loss": "softmax", "epochs": 10, "dropout": 0.5},
            ),
            {"epochs": 2},
            "ef_search",
            10,
            (2, 5, 10, 20, 50, 100),
        ),
        MethodSpec("tdm", quick={"epochs": 1}, **_TREE),
        MethodSpec("jtm", quick={"epochs": 1, "assignments": 1}, **_TREE),
        MethodSpec("otm", quick={"epochs": 1, "beam_epochs": 1}, **_TREE),
        MethodSpec(
            "deep-retrieval",
            (
                {"structure_hidden": 256, "epochs": 16},
                {
                    "structure_hidden": 256,
                    "epochs": 16,
                    "paths_per_item": 5,
                    "structure_batch_size": 1024,
                    "neighbours": 50,
                },
                {"embedding_dim": 128, "structure_hidden": 256, "neighbours": 50, "next_items": 10},
            ),
            {"epochs": 2, "rounds": 2, "final_epochs": 1},
            "candidates",
            10,
            (1, 2, 5, 10, 25, 50, 100, 200),
        ),
        MethodSpec("brute-force"),
    )
}
"""In the order of the tables, but that brute force is fitted after Deep Retrieval, whose vectors it searches. All that
have something to tune get the same number of trials."""

BUDGETS = (5, 10, 20)
"""Deep Retrieval is also asked with budgets of so many times n."""


def choose_methods(named: Sequence[str] | None) -> tuple[list[str], dict[str, str]]:
    """The methods to run, in the order of the tables, and those left out with the reason.

    A method whose package is not installed is left out, unless it is named: then it is an error.
    """
    for name in named or ():
        if name not in METHOD_SPECS:
            close = difflib.get_close_matches(name, METHOD_SPECS, n=1)
            hint = f"; did you mean {close[0]!r}?" if close else ""
            raise QueryError(f"methods={name!r}: must be among {', '.join(METHOD_SPECS)}{hint}")
    chosen, missing = [], {}
    for name in METHOD_SPECS:
        if named and name not in named:
            continue
        try:
            make_estimator(name)
        except MissingExtraError as error:
            if named:
                raise
            missing[name] = str(error)
        else:
            chosen.append(name)
    return chosen, missing
