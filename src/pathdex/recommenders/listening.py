"""Who hears of the training of a baseline: a progress bar where somebody watches, and whoever else asked."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pathdex.training.callbacks import Callback, CallbackList, ProgressBar, interactive


@contextmanager
def listening(progress: bool | None, listener: Callback | None) -> Iterator[Callback]:
    """A listener that passes on to the given one and, with `progress`, to a bar on standard error.

    `progress=None` shows the bar where standard error is a terminal.
    """
    heard = [] if listener is None else [listener]
    if interactive() if progress is None else progress:
        with ProgressBar() as bar:
            yield CallbackList(*heard, bar)
    else:
        yield CallbackList(*heard)
