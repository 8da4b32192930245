"""Deep Retrieval's training: the phases of each schedule and their shared state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pathdex.config import Config, EncoderConfig, RunOptions, default_num_nodes, default_structure_batch_size
from pathdex.data.interactions import Interactions
from pathdex.data.splits import Queries
from pathdex.errors import ConfigError, DataError, Problem
from pathdex.model.network import ITEM_ROWS, Network
from pathdex.training.callbacks import Callback
from pathdex.training.candidate_target import first_path_size
from pathdex.training.checkpointing import Checkpointer
from pathdex.training.choices import chosen, next_items
from pathdex.training.encoder_phase import EncoderPhase, JointPhase
from pathdex.training.loop import TrainingLoop
from pathdex.training.path_assigner import PathAssigner
from pathdex.training.random_streams import RandomStreams
from pathdex.training.recording import Recording
from pathdex.training.setup import prepare
from pathdex.training.structure_phase import StructurePhase
from pathdex.training.warm_start import SHARED, WarmStart, check_same

if TYPE_CHECKING:
    from pathdex.training.distributed.group import Group


class Trainer:
    """Trains the network and the paths on one data set.

    The schedule `warm` trains encoder and reranker first, then runs EM on the structure model over frozen user vectors,
    since joint training from random paths slows the encoder down. The schedule `paper` runs joint epochs, then EM
    rounds with the softmax frozen (Section 4).
    """

    def __init__(
        self,
        config: Config,
        options: RunOptions,
        data: Interactions,
        *,
        held_out: Queries | None = None,
        callbacks: Sequence[Callback] | None = (),
        checkpoint: Path | None = None,
        group: Group | None = None,
        start: WarmStart | None = None,
        record: bool = False,
    ) -> None:
        """`held_out` are queries to choose hyper-parameters by that the configuration leaves open; `record` keeps what
        `recording` returns.

        With a `group`, every worker has a trainer, and each method is called by all of them. `start` is an earlier
        model to continue from; new items are placed once they have vectors.
        """
        prepare(data, options)
        if start is not None and config.num_nodes is None:
            config = config.replace(num_nodes=start.config.num_nodes)
        self.config, self.options, self.data, self.held_out = resolve(config, data), options, data, held_out
        self.records: list[dict[str, Any]] = []
        self.group = group
        self._whole: WholeModel | None = None
        self._was_gathered = False
        if start is not None:
            start.check(self.config)
        saved = checkpointer(checkpoint, self.config.to_dict(), options, data, held_out, start)
        if group is not None:
            from pathdex.training.distributed.parts import sharded_checkpointer, sharded_parts

            parts: Parts = sharded_parts(self.config, options, data, held_out, self.records, group, start)
            saved = sharded_checkpointer(saved, group, data.num_items)
        else:
            parts = training_parts(self.config, options, data, held_out, self.records, start, record)
        self.network, self.assigner, self.encoder, self.structure = parts
        self.loop = TrainingLoop(
            [self.encoder, self.structure], callbacks, saved, records=self.records, device=options.device
        )

    @property
    def chosen_config(self) -> Config:
        """The configuration with the choices of the training."""
        return self.config.replace(**{"next_items": next_items(self.config, self.records), **chosen(self.records)})

    @property
    def is_first(self) -> bool:
        """Whether this is the worker that gets the model; always so in one process."""
        return self.group is None or self.group.is_first

    @property
    def paths(self) -> NDArray[np.int64]:
        return self.assigner.paths if self.group is None else self._gathered[1]

    @property
    def weights(self) -> dict[str, NDArray[np.float32]]:
        """All weights by name, including the item table."""
        return self.network.export() if self.group is None else self._gathered[0]

    @property
    def _gathered(self) -> WholeModel:
        assert self._whole is not None, "`gather` comes first, and only the first worker has the whole"
        return self._whole

    def gather(self) -> None:
        """Bring rows and paths of all items to the first worker, once EM is over; nothing in one process."""
        if self.group is not None and not self._was_gathered:
            from pathdex.training.distributed.parts import gather_model

            self._whole = gather_model(self.group, self.network, self.assigner.paths)
            self._was_gathered = True

    def recording(self) -> Recording | None:
        """The paths of sampled items and the recall after each M-step, and sample histories; None without `record`."""
        recorder = self.assigner.recorder
        return None if recorder is None else recorder.finish(self.paths, self.assigner.recall())

    def run(self) -> None:
        """Train to the end."""
        self.loop.run()

    def resume(self) -> None:
        """Continue from the checkpoint."""
        self.loop.resume()

    def adopt_encoder(self, config: Config, weights: Mapping[str, NDArray[np.float32]]) -> None:
        """Skip the encoder epochs: use the encoder and item table of a network trained with `config`.

        With the same seed, data and encoder settings, the result equals that of a full training.
        """
        if self.group is not None:
            raise ConfigError([Problem("cannot be used by several workers", "encoder_of", remedy="leave it out")])
        if self.config.schedule != "warm":
            rule = "trains the encoder jointly with the paths"
            raise ConfigError([Problem(rule, "schedule", self.config.schedule, "use 'warm'")])
        check_same(config, self.config, SHARED)
        if len(weights[ITEM_ROWS]) != self.data.num_items:
            raise DataError(
                f"data has {self.data.num_items:,} items and the trained encoder {len(weights[ITEM_ROWS]):,}: "
                "must have the same catalogue"
            )
        current = self.network.export()
        trained = {name: value for name, value in weights.items() if not name.startswith("structure.")}
        self.network.restore({**current, **trained})
        self.encoder.reranker.rows.table = self.network.items.rows
        self.loop.skip_to(self.structure)


WholeModel = tuple[dict[str, NDArray[np.float32]], NDArray[np.int64]]
"""Weights by name and paths (item, path)."""
Parts = tuple[Network, PathAssigner, EncoderPhase, StructurePhase]


def training_parts(
    config: Config,
    options: RunOptions,
    data: Interactions,
    held_out: Queries | None,
    records: list[dict[str, Any]],
    start: WarmStart | None,
    record: bool,
) -> Parts:
    """Network, paths and phases of a training in one process."""
    network = Network(config, data.num_items, config).place(options.device)
    assigner = PathAssigner(network, config, data, records, seed=options.seed, record=record, held_out=held_out)
    first, second = (RandomStreams(options.seed, phase) for phase in range(2))
    encoder = (
        EncoderPhase(network, config, data, first, records, held_out, start=start)
        if config.schedule == "warm"
        else JointPhase(network, config, data, first, assigner, start)
    )
    structure = StructurePhase(network, config, data, second, assigner, seed=options.seed, start=start)
    return network, assigner, encoder, structure


def train_encoder(
    config: EncoderConfig,
    options: RunOptions,
    data: Interactions,
    *,
    network: Network,
    callbacks: Sequence[Callback] | None = None,
    checkpoint: Path | None = None,
    resume: bool = False,
) -> list[dict[str, Any]]:
    """Train a network without a structure model, in place; returns the records.

    Call `prepare` before creating the network, since it seeds torch.
    """
    phase = EncoderPhase(network, config, data, RandomStreams(options.seed, 0))
    saved = checkpointer(checkpoint, config.to_dict(), options, data)
    loop = TrainingLoop([phase], callbacks, saved, device=options.device)
    if resume:
        loop.resume()
    loop.run()
    return loop.records


def checkpointer(
    path: Path | None,
    config: Mapping[str, Any],
    options: RunOptions,
    data: Interactions,
    held_out: Queries | None = None,
    start: WarmStart | None = None,
) -> Checkpointer | None:
    """A checkpointer for this training; None without a path."""
    if path is None:
        return None
    shape = [data.num_users, data.num_items, data.num_interactions]
    queries = (
        []
        if held_out is None
        else [len(held_out), *(int(one.values.sum()) for one in (held_out.history, held_out.truth))]
    )
    identity = {"config": dict(config), "seed": options.seed, "data": shape, "validation": queries}
    if start is not None:
        identity["start"] = start.identity()
    return Checkpointer(path, identity)


def resolve(config: Config, data: Interactions) -> Config:
    """The configuration with what follows from the size of the data, where it is not set."""
    nodes = default_num_nodes(data.num_items, config.paths_per_item, config.depth, first_path_size(config))
    derived = {
        "num_nodes": nodes,
        "structure_batch_size": default_structure_batch_size(data.num_interactions),
    }
    return config.replace(**{name: value for name, value in derived.items() if getattr(config, name) is None})
