"""The array types that compiled code works with."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float32]
"""Weights, vectors, scores and probabilities."""
Ints: TypeAlias = NDArray[np.int64]
"""Codes of items and paths, nodes, positions and offsets."""
Int32s: TypeAlias = NDArray[np.int32]
"""The same where memory counts."""
Int16s: TypeAlias = NDArray[np.int16]
"""Random bits."""
Mask: TypeAlias = NDArray[np.bool_]
"""One value per item of the catalogue."""
