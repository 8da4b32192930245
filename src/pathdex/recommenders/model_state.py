"""The learned state of Deep Retrieval, shared by training, bundles and queries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Self

from pathdex.config import Config
from pathdex.data.interactions import Interactions
from pathdex.data.ragged import Ragged
from pathdex.errors import ConfigError, Problem
from pathdex.index.postings import NO_PATH, Postings
from pathdex.index.postings_checks import postings_problems
from pathdex.kernels.neighbours import Neighbours
from pathdex.kernels.types import Floats, Int32s, Ints
from pathdex.recommenders.base import EstimatorState
from pathdex.recommenders.bundle_checks import MAX_COUNT, check_names, check_object
from pathdex.recommenders.weight_specs import network_specs, row_width
from pathdex.retrieval.retriever import Retriever
from pathdex.retrieval.score_weights import ScoreWeights
from pathdex.storage.array_spec import ArraySpec, blocks, index_spec, offsets_spec, weight_spec
from pathdex.storage.bundle_rules import REMOVED, BundleRules

if TYPE_CHECKING:
    from pathdex.model.network import Network
    from pathdex.training.trainer import Trainer

SHRINKAGE = 20.0
"""Lowers the similarity of rare items, which is high for few shared users."""
NEIGHBOURS_KEPT = 50
"""Neighbours per item unless their number is set."""
LEAST_PATH_SHARE = 0.1
"""The share of a candidate budget for which paths are followed if neighbours bring all the rest."""
NEIGHBOURS = ("neighbours.offsets", "neighbours.items", "neighbours.similarities")
"""Names of the arrays in a bundle."""

LARGEST_SIMILARITY = 100.0
"""Cosine similarities are at most 1; this leaves room for others, and the sums over a history stay finite."""


@dataclass(frozen=True)
class ModelState:
    """A trained network and the paths of all items."""

    config: Config
    weights: Mapping[str, NDArray[Any]]
    """Network weights by name, without the item table."""
    rows: Floats
    """The item table: (item, [input vector | output vector | bias])."""
    paths: NDArray[np.int64]
    counts: NDArray[np.int64]
    postings: Postings
    log_shares: Floats
    records: list[dict[str, Any]]
    neighbours: Neighbours | None = None

    @classmethod
    def from_trainer(cls, trainer: Trainer, data: Interactions | None = None) -> Self:
        """The state of a trainer. Neighbours are those in `data`; default: the training data."""
        from pathdex.model.network import ITEM_ROWS
        from pathdex.training.encoder_phase import centred_log_counts

        config, weights = with_defaults(trainer.chosen_config), dict(trainer.weights)
        assert config.num_nodes is not None
        postings = Postings.from_paths(trainer.paths, config.num_nodes, config.depth)
        counts = trainer.assigner.counts
        rows, shares = weights.pop(ITEM_ROWS), postings.log_shares(counts)
        if config.popularity_weight:
            rows = rows.copy()
            rows[:, -1] += np.float32(config.popularity_weight) * centred_log_counts(counts)
        near = learn_neighbours(data or trainer.data, config.neighbours, trainer.options.threads)
        return cls(config, weights, rows, trainer.paths, counts, postings, shares, trainer.records, near)

    def without_neighbours(self) -> Self:
        """The same state, to answer without neighbours."""
        return replace(self, config=self.config.replace(neighbours=0), neighbours=None)

    @staticmethod
    def rules(settings: Mapping[str, Any], num_items: int) -> BundleRules:
        """What `from_state` may rely on; `ConfigError` for bad settings."""
        check_names("settings", settings, ("config", "records"))
        records = settings["records"]
        if not isinstance(records, list) or not all(isinstance(one, dict) for one in records):
            raise ConfigError([Problem("must be a list of objects", "records", records)])
        check_object("config", settings["config"])
        config = Config.from_stored(settings["config"])
        if config.num_nodes is None:
            raise ConfigError([Problem("must be set in a trained model", "num_nodes")])
        paths = config.num_nodes**config.depth
        arrays = {
            "rows": weight_spec(num_items, row_width(config)),
            "paths": index_spec(num_items, config.paths_per_item, below=paths, dtype="int64", low=NO_PATH),
            "counts": index_spec(num_items, below=MAX_COUNT, dtype="int64"),
            "postings.paths": ArraySpec(dtype="int64", shape=("paths",), low=0, high=paths - 1, order="ascending"),
            "postings.offsets": offsets_spec("paths+1", "entries", step=1),
            "postings.items": index_spec("entries", below=num_items),
            "postings.log_shares": ArraySpec(dtype="float32", shape=("entries",), low=-100.0, high=0.0),
            **neighbour_specs(num_items),
        }
        weights = network_specs(config, config)
        return BundleRules(arrays, weights, together=NEIGHBOURS, removes_items=True, relation=_relation)

    @classmethod
    def from_state(cls, state: EstimatorState) -> Self:
        """The state in a bundle. Arrays stay memory-mapped."""
        config, arrays = Config.from_stored(state.settings["config"]), state.arrays
        assert config.num_nodes is not None
        postings = Postings.from_sorted(
            arrays["postings.paths"],
            arrays["postings.offsets"],
            arrays["postings.items"],
            len(arrays["counts"]),
            config.num_nodes,
            config.depth,
        )
        return cls(
            config,
            state.weights,
            arrays["rows"],
            arrays["paths"],
            arrays["counts"],
            postings,
            arrays["postings.log_shares"],
            state.settings["records"],
            Neighbours(*(arrays[name] for name in NEIGHBOURS)) if NEIGHBOURS[0] in arrays else None,
        )

    def state(self) -> EstimatorState:
        """The state for a bundle. Durations are dropped, so that the same training gives the same bundle."""
        from pathdex.index.neighbours import without_hidden

        postings, log_shares = self.postings.packed(self.log_shares)
        near = self.neighbours
        if near is not None and len(near.hidden):
            near = without_hidden(near, len(self.counts))
        records = [{name: value for name, value in one.items() if not name.endswith("seconds")} for one in self.records]
        return EstimatorState(
            settings={"config": self.config.to_dict(), "records": records},
            arrays={
                "rows": self.rows,
                "paths": self.paths,
                "counts": self.counts,
                "postings.paths": postings.paths,
                "postings.offsets": postings.offsets,
                "postings.items": postings.items,
                "postings.log_shares": log_shares,
                **({} if near is None else dict(zip(NEIGHBOURS, near[:3], strict=True))),
            },
            weights=dict(self.weights),
        )

    def network(self) -> Network:
        """The network as a torch module."""
        from pathdex.model.network import Network

        network = Network(self.config, len(self.counts), self.config)
        network.restore(self.all_weights())
        return network.eval()

    def all_weights(self) -> dict[str, NDArray[Any]]:
        """Network weights by name, including the item table."""
        from pathdex.model.network import ITEM_ROWS

        return {**self.weights, ITEM_ROWS: self.rows}

    def beam_for(self, candidates: int) -> int:
        """A beam that finds about twice so many candidates as neighbours do not bring, counted with repetitions.

        Neighbours cannot always bring their share, so paths bring a part in any case.
        """
        share = 0.0 if self.neighbours is None else self.config.neighbour_share or 0.0
        return beam_for(candidates, share, self.postings.num_entries, len(self.postings))

    def retriever(self) -> Retriever:
        """The compiled query engine."""
        return Retriever(
            self.config,
            self.weights,
            self.rows,
            self.postings,
            self.log_shares,
            self.paths,
            self.counts,
            TorchEncoder(self),
            self.neighbours,
        )


def beam_for(candidates: int, share: float, num_entries: int, num_paths: int) -> int:
    """See `ModelState.beam_for`; neighbours bring a `share`, and `num_paths` hold `num_entries` items."""
    size = num_entries / max(1, num_paths)
    return max(1, round(2 * candidates * max(1.0 - share, LEAST_PATH_SHARE) / max(1.0, size)))


def _relation(arrays: Mapping[str, NDArray[Any]]) -> list[str]:
    problems = _removed_problems(arrays[REMOVED], arrays["paths"], arrays.get("neighbours.items"))
    return problems or postings_problems(
        arrays["paths"], arrays["postings.paths"], arrays["postings.offsets"], arrays["postings.items"]
    )


def neighbour_specs(num_items: int) -> dict[str, ArraySpec]:
    """The arrays of neighbours, which all are there or none."""
    similarities = ArraySpec(dtype="float32", shape=("near",), low=0.0, high=LARGEST_SIMILARITY, optional=True)
    return {
        "neighbours.offsets": offsets_spec(num_items + 1, "near", optional=True),
        "neighbours.items": replace(index_spec("near", below=num_items), optional=True),
        "neighbours.similarities": similarities,
    }


def _removed_problems(removed: Ints, paths: Ints, neighbours: Int32s | None) -> list[str]:
    """Removed items must not be found: neither on paths nor among neighbours."""
    if not len(removed):
        return []
    if (paths[removed] != NO_PATH).any():
        return [f"paths: a removed item must have none; fill its row with {NO_PATH}"]
    gone = np.zeros(len(paths), np.bool_)
    gone[removed] = True
    if neighbours is not None and any(gone[neighbours[part]].any() for part in blocks(len(neighbours))):
        return ["neighbours.items: must hold no removed item"]
    return []


def with_defaults(config: Config) -> Config:
    """The configuration with the default of every part of the final score that nothing chose."""
    neighbours = NEIGHBOURS_KEPT if config.neighbours is None else config.neighbours
    return config.replace(neighbours=neighbours, **ScoreWeights.from_config(config).to_config())


def learn_neighbours(
    data: Interactions, k: int | None, threads: int | None, items: Ints | None = None
) -> Neighbours | None:
    """The `k` nearest neighbours of each item, or only of some, by shared users; None if `k` is 0."""
    if not k:
        return None
    from pathdex.data.matrix import interaction_matrix
    from pathdex.index.neighbours import nearest_items

    matrix = interaction_matrix(data.sequences, data.num_items, binary=True)
    return nearest_items(matrix, k, shrinkage=SHRINKAGE, threads=threads, items=items)


class TorchEncoder:
    """Encodes histories with torch.

    Holds the state, not the model: without a reference cycle, a replaced model is freed at once.
    """

    def __init__(self, state: ModelState) -> None:
        self.state = state
        self.network: Network | None = None

    def __call__(self, histories: Ragged) -> Floats:
        self.network = self.network or self.state.network()
        vectors: Floats = self.network.user_vectors(histories).cpu().numpy()
        return vectors
