"""Checks of query arguments: ids, and the whole numbers `n`, `beam`, `candidates` and their like."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from pathdex.data.vocabulary import UNKNOWN, Id, Vocabulary
from pathdex.errors import QueryError

MOST_PADDING = 10_000
"""Places of an answer in codes beyond the catalogue, which are filled with -1."""
LARGEST = 2**63 - 1
"""The largest whole number that compiled code takes."""


def check_ids(argument: str, ids: Any) -> None:
    """Raise unless `ids` is a collection of ids. A string would be read as one id per letter."""
    if isinstance(ids, str | bytes):
        remedy = f"pass [{ids!r}]"
        raise QueryError("must be a list of ids, not a string", argument=argument, value=ids, remedy=remedy)
    if not isinstance(ids, Iterable):
        one = isinstance(ids, int | np.integer) and not isinstance(ids, bool)
        remedy = f"pass [{ids}]" if one else "pass strings or integers"
        if one and argument == "history":
            remedy += " for a history of that item; a model knows no users, so pass the items of a user"
        raise QueryError("must be a list of ids", argument=argument, value=ids, remedy=remedy)


def id_list(argument: str, ids: Iterable[Id]) -> list[Id]:
    """The ids as a list; a `QueryError` for anything else than a collection."""
    check_ids(argument, ids)
    return list(ids)


def check_n(n: Any, num_items: int) -> int:
    """The number of items to return, capped by the catalogue; raises `QueryError` unless it is valid."""
    return min(check_positive("n", n, "ask for one item or more"), max(1, num_items))


def check_width(n: Any, num_items: int) -> None:
    """Raise `QueryError` unless n is a number of places that `rank` can fill or pad."""
    most = max(num_items, MOST_PADDING)
    if check_positive("n", n, "ask for one item or more") > most:
        raise QueryError(f"must be at most {most:,}", argument="n", value=n, remedy="ask for fewer items")


def check_positive(argument: str, value: Any, remedy: str) -> int:
    """The value as an integer; raises `QueryError` unless it is a whole number of at least 1 and below 2^63."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise QueryError("must be a whole number of at least 1", argument=argument, value=value, remedy=remedy)
    if value > LARGEST:
        raise QueryError("must be below 2^63", argument=argument, value=value, remedy=remedy)
    return int(value)


def too_few_candidates(n: int, candidates: int) -> QueryError:
    """The error of a limit that is below the number of items to return."""
    return QueryError(
        f"must be at least n={n}, or n items cannot be found",
        argument="candidates",
        value=candidates,
        remedy="ask for fewer items or allow more candidates",
    )


def unknown_history(number: int, history: Sequence[Id], num_ids: int) -> QueryError:
    """The error of history `number` of a batch, if it has no known item."""
    return QueryError(
        f"history {number} ({_preview(history)}) has no item of the catalogue of {num_ids:,} items",
        remedy="pass at least one known id, or an empty history for a new user",
    )


def unknown_item(argument: str, item: Any, num_ids: int) -> QueryError:
    """The error of an item that is not in the catalogue."""
    rule = f"is not in the catalogue of {num_ids:,} items"
    return QueryError(rule, argument=argument, value=item, remedy="pass a known id")


def _preview(history: Sequence[Id]) -> str:
    shown = ", ".join(repr(one) for one in list(history)[:3])
    return shown + (", ..." if len(history) > 3 else "")


def known_code(items: Vocabulary, item: Id, argument: str = "item") -> int:
    """The code of an item; `QueryError` if the catalogue does not have it."""
    code = items.code(item)
    if code == UNKNOWN:
        raise unknown_item(argument, item, items.num_ids)
    return code
