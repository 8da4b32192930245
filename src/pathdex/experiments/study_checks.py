"""Whether the files of a study can be trusted: damage is one sentence with its remedy."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from pathdex.errors import PathdexError, RunError

if TYPE_CHECKING:
    import optuna

REMEDY = "restore it from a copy, or use another folder (--out)"


@contextmanager
def readable_study(file: Path, *, opening: bool = False) -> Iterator[None]:
    """`RunError` where the data base of a study fails; on opening, whatever Optuna raises for what it finds there."""
    from optuna.exceptions import StorageInternalError
    from sqlalchemy.exc import SQLAlchemyError

    expected: tuple[type[Exception], ...] = (Exception,) if opening else (SQLAlchemyError, StorageInternalError)
    try:
        yield
    except PathdexError:
        raise
    except expected as error:
        raise RunError(f"{file} cannot be used: {_reason(error)}; {REMEDY}") from error


def check_best(best: Path, trials: bool) -> None:
    """`RunError` if there is a result of which no trial is known: it would be replaced by a worse one."""
    if best.exists() and not trials:
        raise RunError(
            f"{best} exists, but the study beside it has no finished trial; move it away, restore the study, or use "
            "another folder (--out)"
        )


def check_values(file: Path, study: optuna.Study) -> None:
    """`RunError` if a finished trial has no figure."""
    from optuna.trial import TrialState

    lacking = [one.number for one in study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,)) if not one.values]
    if lacking:
        raise RunError(f"{file} is damaged: trial {lacking[0]} is finished but has no value; {REMEDY}")


def _reason(error: BaseException) -> str:
    """What the data base itself says, without the statement."""
    cause: BaseException | None = error
    while cause is not None:
        if (said := getattr(cause, "orig", None)) is not None:
            return str(said)
        cause = cause.__cause__
    return "it is damaged or not a study"
