"""How each method of the registry is tuned and queried in the comparison."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pathdex.errors import MissingExtraError, QueryError, did_you_mean
from pathdex.recommenders.registry import ESTIMATORS, make_estimator

Values = Mapping[str, Any]


@dataclass(frozen=True)
class MethodSpec:
    """What the comparison does with one method."""

    trials: tuple[Values, ...] = ()
    """Hyper-parameters to try on validation data besides the defaults; empty if there is nothing to tune."""
    quick: Values = field(default_factory=dict)
    """Hyper-parameters of `--quick`."""
    option: str | None = None
    """The query option that trades time for accuracy."""
    factor: int = 1
    """The comparison sets `option` to this many times n."""
    curve: tuple[float, ...] = ()
    """Values of `option` along the accuracy-time curve, as multiples of n."""
    curve_beams: tuple[int, ...] = ()
    """Beams along the curve, instead of `curve`."""

    def query_options(self, n: int) -> dict[str, Any]:
        """The query options of the comparison."""
        return {} if self.option is None else {self.option: self.factor * n}

    def curve_options(self, n: int) -> list[dict[str, Any]]:
        """The query options along the curve."""
        if self.curve_beams:
            return [{"beam": beam} for beam in self.curve_beams]
        return [{str(self.option): max(1, round(factor * n))} for factor in self.curve]


_TREE: dict[str, Any] = {
    "trials": ({"embedding_dim": 64, "next_items": 10}, {"dropout": 0.4}, {"negatives": 50}),
    "option": "beam",
    # A beam of 5 n scores 10 n leaves, as many as Deep Retrieval's candidates.
    "factor": 5,
    "curve": (1, 2, 5, 10, 20, 40),
}

_WIDE = {"structure_hidden": 256, "epochs": 16}

METHOD_SPECS: dict[str, MethodSpec] = {
    "popularity": MethodSpec(),
    "item-cf": MethodSpec(({"shrinkage": 20.0}, {"neighbours": 100}, {"neighbours": 100, "shrinkage": 20.0})),
    "implicit-als": MethodSpec(
        ({"factors": 128}, {"alpha": 2.0, "regularization": 1.0}, {"alpha": 40.0}), {"iterations": 5}
    ),
    "youtube-dnn": MethodSpec(({"epochs": 16}, {"embedding_dim": 128}, {"next_items": 10}), {"epochs": 2}),
    "ffm-hnsw": MethodSpec(
        ({"loss": "softmax"}, {"loss": "softmax", "epochs": 10}, {"loss": "softmax", "epochs": 10, "dropout": 0.5}),
        {"epochs": 2},
        option="ef_search",
        factor=10,
        curve=(2, 5, 10, 20, 50, 100),
    ),
    "tdm": MethodSpec(quick={"epochs": 1}, **_TREE),
    "jtm": MethodSpec(quick={"epochs": 1, "assignments": 1}, **_TREE),
    "otm": MethodSpec(quick={"epochs": 1, "beam_epochs": 1}, **_TREE),
    "deep-retrieval": MethodSpec(
        (
            _WIDE,
            {**_WIDE, "paths_per_item": 5, "structure_batch_size": 1024},
            {"embedding_dim": 128, "structure_hidden": 256},
        ),
        option="candidates",
        factor=10,
        curve_beams=(1, 2, 5, 10, 25, 50, 100, 200),
    ),
    "brute-force": MethodSpec(),
}
"""One entry per registered estimator. All methods with something to tune get the same number of trials."""

CANDIDATE_FACTORS = (5, 10, 20)
"""Deep Retrieval is evaluated with these multiples of n as `candidates`."""


def choose_methods(named: Sequence[str] | None) -> tuple[list[str], dict[str, str]]:
    """The methods to run, in the order of the registry, and those left out with the reason.

    A method whose package is not installed is left out; if it is named, that is an error.
    """
    for name in named or ():
        if name not in ESTIMATORS:
            rule = f"must be among {', '.join(ESTIMATORS)}{did_you_mean(name, ESTIMATORS)}"
            raise QueryError(rule, argument="methods", value=name)
    chosen, missing = [], {}
    for name in ESTIMATORS:
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
