"""What a bundle must hold: the arrays and weights that an estimator declares, and how they must fit together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pathdex.storage.array_spec import ArraySpec, array_problems

Relation: TypeAlias = Callable[[Mapping[str, NDArray[Any]]], Sequence[str]]
REMOVED, NONE_REMOVED = "items.removed", np.empty(0, np.int64)
SHOWN = 20
"""Problems that a message lists."""


@dataclass(frozen=True)
class BundleRules:
    """The rules of one estimator with given settings and a catalogue of a given size."""

    arrays: Mapping[str, ArraySpec] = field(default_factory=dict)
    weights: Mapping[str, ArraySpec] = field(default_factory=dict)
    together: Sequence[str] = ()
    """Optional arrays of which all are there or none."""
    ignored_weights: str | None = None
    """Weights whose names begin so are not read, whatever they hold: earlier versions stored them."""
    removes_items: bool = False
    """Whether codes may have no id. The estimator must then never recommend them."""
    relation: Relation | None = None
    """Problems between arrays that are each valid by themselves; reads every value, so it is as slow as they are."""

    def problems(
        self,
        arrays: Mapping[str, NDArray[Any]],
        weights: Mapping[str, NDArray[Any]],
        *,
        removed: NDArray[Any] = NONE_REMOVED,
        values: bool = True,
    ) -> list[str]:
        """Everything that is wrong; without `values`, only names, dtypes and shapes are checked.

        `removed` are the codes without an id, which the relation finds under `REMOVED`.
        """
        prefix = self.ignored_weights
        read = {name: one for name, one in weights.items() if prefix is None or not name.startswith(prefix)}
        problems = array_problems(arrays, self.arrays, values=values)
        problems += [f"weight {one}" for one in array_problems(read, self.weights, values=values)]
        there = [name for name in self.together if name in arrays]
        if there and len(there) < len(self.together):
            problems.append(f"{there[0]}: needs {', '.join(name for name in self.together if name not in arrays)}")
        if len(removed) and not self.removes_items:
            problems.append(f"{REMOVED}: must be empty, since this estimator could recommend removed items")
        if values and not problems and self.relation is not None:
            problems += self.relation({**arrays, REMOVED: removed})
        return problems


def listed(problems: Sequence[str]) -> str:
    """Problems as one message: one on the same line, several below each other."""
    if len(problems) == 1:
        return problems[0]
    more = [f"and {len(problems) - SHOWN} more"] if len(problems) > SHOWN else []
    return "\n  - ".join([f"{len(problems)} problems", *problems[:SHOWN], *more])
