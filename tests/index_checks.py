"""What every assignment of items to paths must be."""

import numpy as np
from numpy.typing import NDArray


def assert_assignment(paths: NDArray[np.int64], num_nodes: int, depth: int) -> None:
    """Each item has J distinct paths below K^D."""
    assert paths.dtype == np.int64
    assert ((paths >= 0) & (paths < num_nodes**depth)).all()
    assert (np.diff(np.sort(paths, axis=1), axis=1) > 0).all()
