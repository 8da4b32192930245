"""What validation reports about a source: findings with a level, a stable code and a problem.

D101  the source cannot be opened or read        D402  rows that are not in time order
D102  the source has no rows                     D403  users with one interaction
D103  a named column is missing                  D404  ids that differ only by white space
D104  no column was found for a role             D405  ids that differ only by how a number is written
D105  one column for two roles                   D406  no time: the row order is used
D201  ids are missing                            D407  no order
D202  ids of a type that cannot be an id         D408  all rows have the same time
D203  ids that are fractions or too large        D409  ratings are present but not used
D204  timestamps are missing or NaN              D410  summary of what is read
D205  timestamps that cannot be parsed           D411  a name twice in the header
D206  ratings are missing or NaN                 D412  rows with more fields than the header
D207  ratings that are not numbers               D413  ids such as 12.0, read as whole numbers
D301  no rows are left after filtering           D414  several columns for a role
D302  fewer users than the split holds out       D415  the columns that are read
D401  rows that occur more than once             D416  ratings below zero
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from pathdex.errors import DataError, Problem

Level: TypeAlias = Literal["error", "warning", "info"]


@dataclass(frozen=True)
class Finding:
    """One fact about a source. `read` raises errors and warns of what looks wrong; `validate` lists all."""

    level: Level
    code: str
    problem: Problem

    @property
    def message(self) -> str:
        return str(self.problem)

    def __str__(self) -> str:
        return f"{self.level} {self.code}: {self.message}"


def finding(
    level: Level, code: str, rule: str, *, argument: str | None = None, value: Any = None, remedy: str | None = None
) -> Finding:
    return Finding(level, code, Problem(rule, argument, value, remedy))


def raise_errors(findings: Iterable[Finding]) -> None:
    """Raise one `DataError` with the problem of every error among the findings."""
    problems = [finding.problem for finding in findings if finding.level == "error"]
    if problems:
        raise DataError(*problems)
