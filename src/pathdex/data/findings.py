"""What checking data finds: one sentence each, with a level and a stable code.

D101  the source cannot be opened or read        D301  no rows are left after filtering
D102  the source has no rows                     D302  fewer users than the held-out split asks for
D103  a column that was asked for is missing     D401  rows that occur more than once
D104  no column was found for a role             D402  rows that are not in the order of time
D105  one column for two roles                   D403  users with one interaction
D201  ids are missing                            D404  ids that differ only by white space
D202  ids of a type that cannot be an id         D405  ids that differ only by how a number is written
D203  ids that are fractions or too large        D406  no time: the order of the rows counts
D204  timestamps are missing or NaN              D407  no order at all
D205  timestamps that cannot be understood       D408  all rows have the same time
D206  ratings are missing or NaN                 D409  ratings are there but not used
D207  ratings that are not numbers               D410  what would be read
D208  ratings below zero
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from pathdex.errors import DataError

Level: TypeAlias = Literal["error", "warning", "info"]


@dataclass(frozen=True)
class Finding:
    """One fact about a source. Errors stop `read`; warnings and infos do not."""

    level: Level
    code: str
    message: str

    def __str__(self) -> str:
        return f"{self.level} {self.code}: {self.message}"


def error(code: str, message: str) -> Finding:
    return Finding("error", code, message)


def raise_errors(findings: Iterable[Finding]) -> None:
    """One `DataError` with the message of every error among the findings."""
    messages = [finding.message for finding in findings if finding.level == "error"]
    if messages:
        raise DataError(*messages)
