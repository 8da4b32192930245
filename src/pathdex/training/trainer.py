"""The EM loop as a program of phases that can stop after any step and go on to the same result.

Every random choice is drawn from (seed, phase, epoch, step), so a checkpoint needs no generator state.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pathdex.config import Config, RunOptions, default_num_nodes
from pathdex.data.interactions import Interactions
from pathdex.errors import ConfigError, DataError, IndexHealthWarning, RunError
from pathdex.index.initialization import random_paths, residual_kmeans_paths
from pathdex.index.paths import decode_paths
from pathdex.index.scores import ScoreTable
from pathdex.model.network import ITEM_ROWS, Network
from pathdex.storage.checkpoint import load_checkpoint, save_checkpoint
from pathdex.system import check_device
from pathdex.training.callbacks import Callback, CallbackList
from pathdex.training.candidate_target import (
    QUERIES,
    TOLERANCE,
    TRIALS,
    candidates_per_query,
    first_path_size,
)
from pathdex.training.determinism import deterministic, set_threads
from pathdex.training.e_step import RerankerStep, StructureStep, position_vectors
from pathdex.training.health_checks import index_warnings
from pathdex.training.m_step import MStep, m_step
from pathdex.training.malloc import keep_freed_memory
from pathdex.training.schedule import Phase, cosine_rate, phases
from pathdex.training.scoring import ItemSamples, collect_item_scores, stream_scores
from pathdex.training.windows import cut_windows, draw_readers

ENCODER = ("encoder", "embedding_dim", "history_length", "shared_items")
"""The hyper-parameters that say which encoder a set of weights fits."""
CHECKPOINT_SECONDS = 300.0
"""A long epoch is checkpointed at least this often."""


@dataclass
class Cursor:
    """Where the program stands: the next step to take, and the losses of the running epoch so far."""

    phase: int = 0
    epoch: int = 0
    step: int = 0
    sums: dict[str, float] | None = None
    seconds: float = 0.0


class Trainer:
    """Learns the network and the paths of one data set."""

    def __init__(
        self,
        config: Config,
        options: RunOptions,
        data: Interactions,
        *,
        checkpoint: Path | None = None,
        listener: Callback | None = None,
    ) -> None:
        if data.num_interactions == 0:
            raise DataError("data: has no interactions; training needs at least one user with one item")
        check_device(options.device)
        set_threads(options.threads)
        keep_freed_memory()
        self.config = resolve(config, data)
        self.options, self.data, self.checkpoint = options, data, checkpoint
        self.listener = listener or CallbackList()
        self.counts = data.item_counts()
        torch.manual_seed(options.seed)
        self.network = Network(self.config, data.num_items).place(options.device)
        self.reranker = RerankerStep(self.network, self.config, self.counts)
        self.structure = StructureStep(self.network, self.config)
        self.table = ScoreTable.empty(data.num_items, self.config.candidate_paths)
        self.paths = self._random_start()
        self.penalty: float | None = None
        self.cursor = Cursor()
        self.records: list[dict[str, Any]] = []
        self._vectors: NDArray[np.float32] | None = None
        self._saved = time.monotonic()

    def adopt_encoder(self, config: Config, weights: Mapping[str, NDArray[np.float32]]) -> None:
        """Go on behind the encoder epochs, with the encoder and the item table of a network trained with `config`.

        With the same seed, data and encoder settings this gives what training from the beginning gives.
        """
        if self.config.schedule != "warm":
            raise ConfigError(
                [f"schedule={self.config.schedule!r}: trains the encoder along with the paths; use 'warm'"]
            )
        differing = [name for name in ENCODER if getattr(config, name) != getattr(self.config, name)]
        if differing:
            raise ConfigError(
                [
                    f"{name}={getattr(self.config, name)!r}: the trained encoder has {getattr(config, name)!r}; "
                    "choose the same, or train from the beginning"
                    for name in differing
                ]
            )
        if len(weights[ITEM_ROWS]) != self.data.num_items:
            raise DataError(
                f"data has {self.data.num_items:,} items and the trained encoder {len(weights[ITEM_ROWS]):,}: "
                "must be of the same catalogue"
            )
        own = self.network.export()
        trained = {name: value for name, value in weights.items() if not name.startswith("structure.")}
        self.network.restore({**own, **trained})
        self.reranker.rows.table = self.network.items.rows
        self._move(phase=1, epoch=0)

    def run(self) -> None:
        """Go through the program from where the cursor stands to its end."""
        program = phases(self.config)
        with deterministic(self.network.device):
            for number in range(self.cursor.phase, len(program)):
                self._run_phase(program[number])
                self._move(phase=number + 1, epoch=0)
                self._save()

    def _run_phase(self, phase: Phase) -> None:
        if phase.kind == "structure" and self.config.start == "residual-kmeans" and self._at_beginning():
            self.paths = self._coded_start()
        for epoch in range(self.cursor.epoch, phase.epochs):
            started = time.monotonic() - self.cursor.seconds
            steps = self._structure_epoch(phase) if phase.kind == "structure" else self._encoder_epoch(phase)
            sums = self.cursor.sums or {}
            for done, total, losses in steps:
                sums = {name: sums.get(name, 0.0) + loss for name, loss in losses.items()}
                means = {name: value / done for name, value in sums.items()}
                self.listener.on_step_end(phase.kind, epoch + 1, phase.epochs, done, total, means)
                self.cursor.step, self.cursor.sums = done, sums
                self.cursor.seconds = time.monotonic() - started
                if time.monotonic() - self._saved > CHECKPOINT_SECONDS:
                    self._save()
            figures = {name: value / self.cursor.step for name, value in sums.items()}
            if epoch in phase.m_steps:
                figures.update(self._m_step(phase))
            record = {"phase": phase.kind, "number": epoch + 1, **figures, "seconds": time.monotonic() - started}
            self.records.append(record)
            self._move(phase=self.cursor.phase, epoch=epoch + 1)
            self._save()
            self.listener.on_epoch_end(record)

    def _encoder_epoch(self, phase: Phase) -> Iterator[tuple[int, int, dict[str, float]]]:
        """Gradient steps on the reranker's loss and, in a joint phase, on the structure's; yields after each."""
        joint = phase.kind == "joint"
        cursor, config = self.cursor, self.config
        windows = cut_windows(self.data.sequences, config.history_length, self._random())
        batches = windows.batches(config.batch_size, self._random(1))
        readers = self._readers(6)
        scored = min(1.0, config.score_samples * self.data.num_items / self.data.num_interactions)
        for step in range(cursor.step, len(batches)):
            random = self._random(2, step)
            torch.manual_seed(int(random.integers(2**62)))
            batch = windows.batch(batches[step]).read_earlier(readers)
            paths = self._nodes(batch.targets) if joint else None
            rate = cosine_rate((cursor.epoch + step / len(batches)) / phase.epochs) if phase.anneal else 1.0
            losses, users = self.reranker(batch, random, paths, rate)
            if joint:
                chosen = random.permutation(len(users))[: int(np.ceil(scored * len(users)))]
                self._stream(users[torch.from_numpy(chosen)], batch.targets[chosen])
            yield step + 1, len(batches), losses

    def _structure_epoch(self, phase: Phase) -> Iterator[tuple[int, int, dict[str, float]]]:
        """Gradient steps on the structure's loss over user vectors that stand still; yields after each."""
        cursor, config = self.cursor, self.config
        vectors, targets, readers = self._position_vectors(), self.data.sequences.values, self._readers(6)
        order = self._random().permutation(len(targets))
        size = config.structure_batch_size
        total = -(-len(order) // size)
        polish = range(phase.epochs - config.final_epochs, phase.epochs)
        for step in range(cursor.step, total):
            chosen = order[step * size : (step + 1) * size]
            done = (cursor.epoch - polish.start + step / total) / max(1, config.final_epochs)
            rate = cosine_rate(done) if cursor.epoch in polish else 1.0
            users = torch.from_numpy(vectors[readers[chosen]]).to(self.network.device)
            loss = self.structure(users, self._nodes(targets[chosen]), rate)
            yield step + 1, total, {"structure": loss}

    def _m_step(self, phase: Phase) -> dict[str, Any]:
        started = time.monotonic()
        if phase.kind == "structure":
            self._collect_scores()
        scored = time.monotonic()
        step, path_size, figures = self._assign(phase)
        self.paths, self.penalty = step.paths, step.penalty
        before = next((record for record in reversed(self.records) if "used_paths" in record), None)
        found = index_warnings(step.figures, before, path_size if self.config.penalty is None else None)
        for text in found:
            warnings.warn(text, IndexHealthWarning, stacklevel=2)
        figures |= {**step.figures, **({"warnings": found} if found else {})}
        return {**figures, "score_seconds": scored - started, "m_step_seconds": time.monotonic() - scored}

    def _assign(self, phase: Phase) -> tuple[MStep, float, dict[str, Any]]:
        """New paths, the path size they were made for and, where candidates per query are wanted, figures about these.

        The candidates that a path size gives are counted, not foreseen, so the M-step is repeated with a size nearer to
        what is wanted; both are about proportional.
        """
        config, wanted = self.config, self.config.candidates_per_query
        path_size = first_path_size(config) if wanted is None else self._last_path_size()
        seed = int(self._random(3).integers(2**31))
        for trial in range(TRIALS):
            step = m_step(
                self.table,
                self.counts,
                self.paths,
                config,
                path_size=path_size,
                last_penalty=self.penalty,
                seed=seed,
            )
            if wanted is None or phase.kind != "structure":
                return step, path_size, {}
            chosen = self._random(5).permutation(self.data.num_interactions)[:QUERIES]
            found = candidates_per_query(self.network.structure, self._position_vectors()[chosen], step.paths, config)
            if abs(found - wanted) <= TOLERANCE * wanted or trial == TRIALS - 1:
                break
            path_size = max(1.0, path_size * wanted / max(found, 1.0))
        return step, path_size, {"candidates_per_query": found, "wanted_path_size": path_size}

    def _last_path_size(self) -> float:
        sizes = [record["wanted_path_size"] for record in self.records if "wanted_path_size" in record]
        return float(sizes[-1]) if sizes else first_path_size(self.config)

    def _collect_scores(self) -> None:
        config, vectors = self.config, self._position_vectors()
        if config.next_items > 1:
            vectors = vectors[self._readers(7)]
        samples, random = ItemSamples(self.data.sequences.values, self.data.num_items), self._random(4)
        if config.scoring == "item":
            collect_item_scores(
                self.network.structure,
                vectors,
                samples,
                self.table,
                self.paths,
                beam_size=config.score_beam,
                most=config.score_samples,
                generator=random,
                device=self.network.device,
            )
            return
        chosen = np.concatenate([places.ravel() for _, places in samples.draw(config.score_samples, random)])
        chosen = random.permutation(chosen)
        for begin in range(0, len(chosen), config.structure_batch_size):
            part = chosen[begin : begin + config.structure_batch_size]
            users = torch.from_numpy(vectors[part]).to(self.network.device)
            self._stream(users, self.data.sequences.values[part].astype(np.int64))

    def _stream(self, users: Tensor, targets: NDArray[np.int64]) -> None:
        config = self.config
        stream_scores(self.network.structure, users, targets, self.table, config.score_beam, config.decay)

    def _nodes(self, items: NDArray[np.integer]) -> Tensor:
        """The paths of each item as nodes: (item, path, layer)."""
        assert self.config.num_nodes is not None
        nodes = decode_paths(self.paths[items], self.config.num_nodes, self.config.depth)
        return torch.from_numpy(nodes).to(self.network.device)

    def _readers(self, stamp: int) -> NDArray[np.int64]:
        """For each interaction the one whose history predicts it; with `next_items` 1 that is its own."""
        return draw_readers(self.data.sequences, self.config.next_items, self._random(stamp))

    def _position_vectors(self) -> NDArray[np.float32]:
        if self._vectors is None:
            self._vectors = position_vectors(self.network, self.data, self.config.structure_batch_size)
        return self._vectors

    def _random_start(self) -> NDArray[np.int64]:
        config = self.config
        assert config.num_nodes is not None
        return random_paths(
            self.data.num_items, config.paths_per_item, config.num_nodes, config.depth, self.options.seed
        )

    def _coded_start(self) -> NDArray[np.int64]:
        config = self.config
        assert config.num_nodes is not None
        vectors = self.network.items.outputs(self.network.items.rows).cpu().numpy()
        return residual_kmeans_paths(
            vectors, config.paths_per_item, config.num_nodes, config.depth, seed=self.options.seed
        )

    def _random(self, *stamp: int) -> np.random.Generator:
        return np.random.default_rng([self.options.seed, self.cursor.phase, self.cursor.epoch, *stamp])

    def _at_beginning(self) -> bool:
        return self.cursor.epoch == 0 and self.cursor.step == 0

    def _move(self, *, phase: int, epoch: int) -> None:
        self.cursor = Cursor(phase, epoch)

    def _save(self) -> None:
        self._saved = time.monotonic()
        if self.checkpoint is None:
            return
        state = {
            "config": self.config.to_dict(),
            "seed": self.options.seed,
            "data": _shape(self.data),
            "cursor": vars(self.cursor),
            "penalty": self.penalty,
            "records": self.records,
            "row_steps": self.reranker.rows.steps,
        }
        arrays: dict[str, NDArray[Any]] = {f"network.{key}": value for key, value in self.network.export().items()}
        arrays |= {"paths": self.paths, "table.codes": self.table.codes, "table.scores": self.table.scores}
        arrays |= {"rows.first": self.reranker.rows.first.cpu().numpy()}
        arrays |= {"rows.second": self.reranker.rows.second.cpu().numpy()}
        for name, optimiser in self._optimisers().items():
            for number, values in optimiser.state_dict()["state"].items():
                arrays |= {f"{name}.{number}.{key}": value.cpu().numpy() for key, value in values.items()}
        save_checkpoint(self.checkpoint, state, arrays)

    def resume(self) -> None:
        """Go back to where the checkpoint was written."""
        if self.checkpoint is None or not self.checkpoint.exists():
            raise RunError(f"there is no checkpoint at {self.checkpoint}; train without --resume")
        state, arrays = load_checkpoint(self.checkpoint)
        asked = {"config": self.config.to_dict(), "seed": self.options.seed, "data": _shape(self.data)}
        differing = [name for name, value in asked.items() if state[name] != value]
        if differing:
            raise RunError(
                f"the checkpoint {self.checkpoint} was written with another {' and '.join(differing)}; "
                "resume with the same ones, or train into a new folder"
            )
        weights = {name[8:]: array for name, array in arrays.items() if name.startswith("network.")}
        device = self.network.device
        self.network.restore(weights)
        rows = self.reranker.rows
        rows.table, rows.steps = self.network.items.rows, state["row_steps"]
        rows.first = torch.from_numpy(arrays["rows.first"]).to(device)
        rows.second = torch.from_numpy(arrays["rows.second"]).to(device)
        self.paths = arrays["paths"]
        self.table = ScoreTable(arrays["table.codes"], arrays["table.scores"])
        for name, optimiser in self._optimisers().items():
            held: dict[int, dict[str, Tensor]] = {}
            for key, array in arrays.items():
                if key.startswith(f"{name}."):
                    _, number, part = key.split(".")
                    held.setdefault(int(number), {})[part] = torch.from_numpy(array)
            optimiser.load_state_dict({**optimiser.state_dict(), "state": held})
        self.cursor, self.penalty, self.records = Cursor(**state["cursor"]), state["penalty"], state["records"]

    def _optimisers(self) -> dict[str, torch.optim.Adam]:
        return {
            "dense-adam": self.reranker.dense,
            "joint-adam": self.reranker.structure,
            "structure-adam": self.structure.optimiser,
        }


def resolve(config: Config, data: Interactions) -> Config:
    """The configuration with everything that depends on the catalogue filled in."""
    if config.num_nodes is not None:
        return config
    nodes = default_num_nodes(data.num_items, config.paths_per_item, config.depth, first_path_size(config))
    return config.replace(num_nodes=nodes)


def _shape(data: Interactions) -> list[int]:
    return [data.num_users, data.num_items, data.num_interactions]
