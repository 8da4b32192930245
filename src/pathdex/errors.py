"""Every error that Pathdex raises on purpose.

    PathdexError
    ├── ConfigError (ValueError)         hyper-parameters or options break their rules; lists every problem at once
    ├── DataError (ValueError)           interactions cannot be read or used; lists every problem at once
    ├── QueryError (ValueError)          a query cannot be answered as asked
    ├── NotFittedError                   an estimator was queried before `fit`
    ├── BundleError                      a saved model cannot be opened
    ├── RunError                         a run folder is in the way, incomplete or not resumable
    ├── WorkerError                      a training on several workers cannot start, or has lost a worker
    │   └── LostWorkerError              another worker is gone; training can continue from the last checkpoint
    ├── StorageError (OSError)           writing failed (full disk, no permission); existing files are untouched
    ├── ServerError (ConnectionError)    a server is unreachable, refuses its client, or cannot answer now
    └── MissingExtraError (ImportError)  an optional package is not installed

    DataWarning (UserWarning)            a source looks wrong and is read all the same
    AccuracyWarning (UserWarning)        a trained model is below a simple baseline on held-out data
    IndexHealthWarning (UserWarning)     an M-step left the index in bad shape
                                         (docs/warnings.md explains the codes of these two)

Config, data and query errors hold `Problem`s: the argument, its value, the rule it breaks and the remedy. Messages are
written from these fields; nothing reads a field from a message.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

_SHOWN = 200
"""Characters of a value that a message repeats."""
_LONG_NUMBER = 10**40
"""Of such a number, a message says only how long it is."""


@dataclass(frozen=True)
class Problem:
    """One broken rule. `str()` gives `argument=value: rule; remedy`."""

    rule: str
    argument: str | None = None
    value: Any = None
    remedy: str | None = None

    def __str__(self) -> str:
        subject = "" if self.argument is None else f"{self.argument}={preview(self.value)}: "
        return f"{subject}{self.rule}" + ("" if self.remedy is None else f"; {self.remedy}")


class PathdexError(Exception):
    """Base of all errors raised on purpose."""


class _ProblemList(Exception):  # noqa: N818
    """An error with one `Problem` per broken rule. A string counts as a problem without an argument."""

    subject: str

    def __init__(self, problems: Iterable[Problem | str]) -> None:
        self.problems = tuple(one if isinstance(one, Problem) else Problem(one) for one in problems)
        super().__init__(_listing(self.subject, self.problems))

    def __reduce__(self) -> tuple[Any, ...]:
        return _with_problems, (type(self), self.problems)


def _with_problems(kind: type[_ProblemList], problems: tuple[Problem, ...]) -> _ProblemList:
    return kind(*problems) if issubclass(kind, DataError) else kind(problems)


class ConfigError(_ProblemList, PathdexError, ValueError):
    """A configuration breaks its rules."""

    subject = "configuration"


class DataError(_ProblemList, PathdexError, ValueError):
    """Interactions cannot be read or used."""

    subject = "data"

    def __init__(self, *problems: Problem | str) -> None:
        super().__init__(problems)


class QueryError(PathdexError, ValueError):
    """A query cannot be answered as asked."""

    def __init__(self, rule: str, *, argument: str | None = None, value: Any = None, remedy: str | None = None) -> None:
        self.problem = Problem(rule, argument, value, remedy)
        super().__init__(str(self.problem))

    @property
    def argument(self) -> str | None:
        return self.problem.argument

    @property
    def value(self) -> Any:
        return self.problem.value

    @property
    def rule(self) -> str:
        return self.problem.rule

    @property
    def remedy(self) -> str | None:
        return self.problem.remedy


class NotFittedError(PathdexError):
    """The estimator has not been fitted."""

    def __init__(self, estimator: object) -> None:
        name = type(estimator).__name__
        super().__init__(f"{name} is not fitted; call {name}.fit(data) or pathdex.load(path) first")


class BundleError(PathdexError):
    """A saved model is damaged, truncated, of a newer schema, or not a model."""


class RunError(PathdexError):
    """A run folder is in the way, incomplete, or cannot be resumed."""


class WorkerError(PathdexError):
    """A training on several workers cannot start, or has lost a worker."""


class LostWorkerError(WorkerError):
    """Another worker is gone or gives no sign of life; training can continue from the last checkpoint."""


class StorageError(PathdexError, OSError):
    """Writing to disk failed. Existing files are untouched."""


class ServerError(PathdexError, ConnectionError):
    """A server is unreachable, refuses its client, or cannot answer now. `status` is the HTTP status, if any."""

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


class MissingExtraError(PathdexError, ImportError):
    """An optional package is needed. The message holds the command that installs it."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        self.needed = package, extra, purpose
        super().__init__(f"{purpose} needs {package}; install it with: pip install 'pathdex[{extra}]'")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self.needed


class DataWarning(UserWarning):
    """A source looks wrong and is read all the same; `pathdex.validate` lists everything."""


class AccuracyWarning(UserWarning):
    """A trained model is below a simple baseline. The message begins with a code that docs/warnings.md explains."""


class IndexHealthWarning(UserWarning):
    """An M-step left the index in bad shape. The message begins with a code that docs/warnings.md explains."""


def did_you_mean(word: object, known: Iterable[object]) -> str:
    """`"; did you mean 'x'?"` for the closest known word, or an empty string."""
    close = difflib.get_close_matches(str(word), [str(one) for one in known], n=1)
    return f"; did you mean {close[0]!r}?" if close else ""


def preview(value: Any) -> str:
    """`repr(value)`, cut where it is long."""
    if isinstance(value, int) and abs(value) >= _LONG_NUMBER:
        digits = int(math.log10(abs(value)))  # `str` refuses very long numbers.
        return f"a number of {digits + (abs(value) >= 10**digits):,} digits"
    if isinstance(value, list):
        value = value[:_SHOWN]  # Writing out a list of a million ids to cut it would be slow.
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def _listing(subject: str, problems: Sequence[Problem]) -> str:
    if len(problems) == 1:
        return str(problems[0])
    return "\n".join([f"{len(problems)} problems in the {subject}:", *(f"  - {problem}" for problem in problems)])
