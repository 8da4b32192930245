"""Every video that was shown, in columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Impressions:
    """One row per video on a page, in the order of time."""

    time: NDArray[np.float64]
    """Seconds since the simulation began."""
    page: NDArray[np.int64]
    """The page it was on."""
    user: NDArray[np.int64]
    arm: NDArray[np.int64]
    """The arm of the user, also in the warm-up, where no arm answers."""
    video: NDArray[np.int64]
    position: NDArray[np.int64]
    chosen: NDArray[np.bool_]
    """The arm chose it; otherwise it filled the slot for new uploads, or it is of the warm-up."""
    finished: NDArray[np.bool_]
    seconds: NDArray[np.float64]
    """View time."""
    expected: NDArray[np.float64]
    """The planted probability that it is finished."""

    def __len__(self) -> int:
        return len(self.time)

    def where(self, mask: NDArray[np.bool_]) -> Impressions:
        """The rows of a mask."""
        return Impressions(**{name: column[mask] for name, column in vars(self).items()})


class ImpressionRecorder:
    """Collects rows tick by tick."""

    def __init__(self) -> None:
        self._parts: list[dict[str, NDArray[Any]]] = []

    def add(self, **columns: NDArray[Any]) -> None:
        """Columns of equal length, named as the fields of `Impressions`."""
        self._parts.append(columns)

    def collect(self) -> Impressions:
        """Everything so far."""
        names = self._parts[0]
        return Impressions(**{name: np.concatenate([part[name] for part in self._parts]) for name in names})
