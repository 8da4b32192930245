"""Who hears of the training of a baseline: a progress bar where somebody watches, and whoever else asked."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pathdex.training.progress import Listener, Listeners, ProgressBar, interactive


@contextmanager
def listening(progress: bool | None, listener: Listener | None) -> Iterator[Listener]:
    """A listener that passes on to the given one and, with `progress`, to a bar on standard error.

    `progress=None` shows the bar where standard error is a terminal.
    """
    heard = [] if listener is None else [listener]
    if interactive() if progress is None else progress:
        with ProgressBar() as bar:
            yield Listeners(*heard, bar)
    else:
        yield Listeners(*heard)
