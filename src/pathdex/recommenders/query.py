"""A history with its filters, in ids and in codes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from pathdex.data.ragged import Ragged
from pathdex.data.vocabulary import UNKNOWN, Id, Vocabulary
from pathdex.errors import QueryError
from pathdex.kernels.types import Ints, Mask
from pathdex.recommenders.arguments import check_ids
from pathdex.retrieval.filters import Filters

History: TypeAlias = Sequence[Id]


@dataclass(frozen=True)
class Query:
    """A history and its filters, in ids. Use it for batches whose queries have different filters."""

    history: History
    exclude_seen: bool = True
    """Exclude the items of the history."""
    deny: Iterable[Id] = ()
    """Items to exclude."""
    allow: Iterable[Id] | None = None
    """The only items to recommend; None for all."""
    where: Mapping[str, Any] | None = None
    """Conditions on columns of the attached catalogue table; all must match."""

    def __post_init__(self) -> None:
        check_ids("deny", self.deny)
        if self.allow is not None:
            check_ids("allow", self.allow)
        if not isinstance(self.exclude_seen, bool | np.bool_):
            raise QueryError("must be true or false", argument="exclude_seen", value=self.exclude_seen)


def code_filters(
    queries: Sequence[Query], histories: Ragged, items: Vocabulary, where: Sequence[Mask | None]
) -> Filters:
    """Filters of queries in codes; `where` are the masks of their conditions.

    Queries that share a list share its codes.
    """
    codes: dict[int, Ints] = {}
    none = np.empty(0, np.int64)

    def known(ids: Iterable[Id]) -> Ints:
        if isinstance(ids, list | tuple) and not ids:
            return none
        if id(ids) not in codes:
            found = items.codes(ids)
            codes[id(ids)] = np.unique(found[found != UNKNOWN])
        return codes[id(ids)]

    deny = [known(query.deny) for query in queries]
    if all(query.exclude_seen for query in queries) and not any(map(len, deny)):
        excluded = histories
    else:
        excluded = Ragged.from_rows(
            np.concatenate([history, denied]) if query.exclude_seen else denied
            for query, history, denied in zip(queries, histories, deny, strict=True)
        )
    allow = [None if query.allow is None else known(query.allow) for query in queries]
    return Filters(
        excluded if len(excluded.values) else None,
        allow if any(one is not None for one in allow) else None,
        where if any(one is not None for one in where) else None,
    )
