"""Every error that Pathdex raises on purpose.

    PathdexError
    ├── ConfigError (ValueError)         a hyper-parameter or option is out of range; lists every problem at once
    ├── DataError (ValueError)           interactions cannot be read or used
    ├── QueryError (ValueError)          a request for recommendations cannot be answered
    ├── NotFittedError                   an estimator was asked before `fit`
    ├── BundleError                      a saved model cannot be opened
    ├── RunError                         a run folder is in the way, incomplete or not resumable
    ├── StorageError (OSError)           writing failed (full disk, no permission); nothing old was touched
    ├── ServerError (ConnectionError)    a server cannot be reached, refuses its client, or has no answer now
    └── MissingExtraError (ImportError)  an optional package is not installed

    IndexHealthWarning (UserWarning)     an M-step left a bad sign; its code stands in docs/warnings.md

Each message names the argument, its value, the rule and the way out.
"""

from __future__ import annotations

from collections.abc import Sequence


class PathdexError(Exception):
    """Base of all errors raised on purpose."""


class ConfigError(PathdexError, ValueError):
    """A configuration breaks its rules. `problems` holds one sentence per broken rule."""

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        super().__init__(_listing("configuration", self.problems))


class DataError(PathdexError, ValueError):
    """Interactions cannot be read or used. `problems` holds one sentence per finding."""

    def __init__(self, *problems: str) -> None:
        self.problems = problems
        super().__init__(_listing("data", problems))


class QueryError(PathdexError, ValueError):
    """A request for recommendations cannot be answered as asked."""


class NotFittedError(PathdexError):
    """The estimator has learned nothing yet."""

    def __init__(self, estimator: object) -> None:
        name = type(estimator).__name__
        super().__init__(f"{name} is not fitted; call {name}.fit(data) or pathdex.load(path) first")


class BundleError(PathdexError):
    """A saved model is damaged, truncated, of a newer schema, or not a model."""


class RunError(PathdexError):
    """A run folder is in the way, incomplete, or cannot be resumed."""


class StorageError(PathdexError, OSError):
    """Writing to disk failed. What was there before is untouched."""


class ServerError(PathdexError, ConnectionError):
    """A server cannot be reached, refuses its client, or has no answer now. `status` is that of HTTP, if any."""

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


class MissingExtraError(PathdexError, ImportError):
    """An optional package is needed. The message holds the command that installs it."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(f"{purpose} needs {package}; install it with: pip install 'pathdex[{extra}]'")


class IndexHealthWarning(UserWarning):
    """An M-step left a bad sign. The message begins with a code that docs/warnings.md explains."""


def _listing(subject: str, problems: Sequence[str]) -> str:
    if len(problems) == 1:
        return problems[0]
    return "\n".join([f"{len(problems)} problems in the {subject}:", *(f"  - {problem}" for problem in problems)])
