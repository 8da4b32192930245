"""A full M-step that runs beside the stream, on a copy of the scores."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from pathdex.config import Config
from pathdex.index.scores import ScoreTable
from pathdex.training.loop import TrainingState
from pathdex.training.m_step import MStep, m_step

_SLOTS, _PATHS = "slots", "paths"


class BackgroundMStep:
    """Algorithm 2 over the items in `slots`, in a thread.

    Its result depends on the arguments alone. Whoever starts it decides by the number of events when to take the
    result, and waits for it if need be, so the stream depends on its events and not on the speed of the machine.
    """

    def __init__(self, slots: NDArray[np.int64], *arguments: Any, **options: Any) -> None:
        """`arguments` and `options` are those of `m_step`; the arrays must be copies."""
        self.slots = slots
        self._result: MStep | None = None
        self._failure: BaseException | None = None
        threads = numba.get_num_threads()

        def work() -> None:
            numba.set_num_threads(threads)
            try:
                self._result = m_step(*arguments, **options)
            except BaseException as error:
                self._failure = error

        self._thread: threading.Thread | None = threading.Thread(target=work, name="pathdex-m-step", daemon=True)
        self._thread.start()

    @classmethod
    def begin(
        cls,
        slots: NDArray[np.int64],
        table: ScoreTable,
        counts: NDArray[np.int64],
        paths: NDArray[np.int64],
        config: Config,
        **options: Any,
    ) -> BackgroundMStep:
        """Start on a copy of the rows of these slots. `options` are those of `m_step`."""
        scores = ScoreTable(table.codes[slots], table.scores[slots])
        return cls(slots, scores, counts[slots], paths[slots], config, **options)

    def result(self) -> MStep:
        """The result; waits until it is there."""
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        if self._failure is not None:
            raise self._failure
        assert self._result is not None
        return self._result

    def state_dict(self) -> TrainingState:
        """The result, for a checkpoint."""
        found = self.result()
        values = {"penalty": found.penalty, "figures": found.figures}
        return TrainingState(values, {_SLOTS: self.slots, _PATHS: found.paths})

    @classmethod
    def from_state_dict(cls, values: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> BackgroundMStep:
        """The inverse of `state_dict`."""
        finished = cls.__new__(cls)
        finished.slots, finished._thread, finished._failure = arrays[_SLOTS], None, None
        finished._result = MStep(arrays[_PATHS], values["penalty"], dict(values["figures"]))
        return finished
