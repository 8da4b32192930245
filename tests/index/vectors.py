"""Item vectors with a known structure."""

import numpy as np
from numpy.typing import NDArray


def clustered(clusters: int = 6, items: int = 40, dim: int = 5, seed: int = 0) -> NDArray[np.float64]:
    """Items around well separated centres, cluster by cluster."""
    random = np.random.default_rng(seed)
    centres = random.normal(size=(clusters, dim)) * 20
    return np.repeat(centres, items, axis=0) + random.normal(size=(clusters * items, dim))
