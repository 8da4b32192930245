"""M-step: assign items to paths with the network fixed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pathdex.config import Config
from pathdex.index.coordinate_descent import assign_paths, assignment_objective
from pathdex.index.health import health
from pathdex.index.penalty import penalty_for_path_size
from pathdex.index.scores import ScoreTable


@dataclass(frozen=True)
class MStep:
    """New paths (item, path), the penalty in use, and figures for the log."""

    paths: NDArray[np.int64]
    penalty: float
    figures: dict[str, Any]


def m_step(
    table: ScoreTable,
    counts: NDArray[np.int64],
    paths: NDArray[np.int64],
    config: Config,
    *,
    path_size: float,
    last_penalty: float | None,
    seed: int,
) -> MStep:
    """Maximize sum_v N_v log(sum_j s[v, pi_j(v)]) - alpha sum_c f(|c|) over the paths (Algorithm 2).

    Differs from the paper: unless `config.penalty` is set, alpha is searched so that the path of an average item holds
    `path_size` items.
    """
    assert config.num_nodes is not None
    options: dict[str, Any] = {
        "penalty_degree": config.penalty_degree,
        "iterations": config.descent_iterations,
        "seed": seed,
    }
    if config.penalty is None:
        found = penalty_for_path_size(
            table.codes, table.scores, counts, paths, path_size=path_size, start=last_penalty, **options
        )
        penalty, new = found.penalty, found.paths
    else:
        penalty = config.penalty
        new = assign_paths(table.codes, table.scores, counts, paths, penalty=penalty, **options)
    objective = assignment_objective(
        table.codes, table.scores, counts, new, penalty=penalty, penalty_degree=config.penalty_degree
    )
    state = health(new, config.num_nodes, config.depth, previous=paths)
    return MStep(new, penalty, {"objective": objective, "penalty": penalty, **state.summary()})
