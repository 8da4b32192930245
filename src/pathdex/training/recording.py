"""What a training keeps for people to look at later: the paths of sampled items after every M-step, and sample
histories. Arrays in a folder of the run, not part of the model.

items       (item,) codes of the sampled items, ascending
rounds      (round + 1, item, path) their paths: at the start, then after each M-step
recall      (round + 1,) the share of held-out items that the beam reaches on the paths of a round, once the network has
            learned them; empty if no queries were held out
histories   (entry,) the items of the sampled histories, and `offsets` (history + 1,)
next        (history,) the item that followed each history
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pathdex.data.interactions import Interactions
from pathdex.data.ragged import Ragged
from pathdex.errors import RunError
from pathdex.kernels.types import Ints
from pathdex.storage.array_folder import FolderFormat, open_folder, read_arrays, repair, write_arrays, write_folder
from pathdex.storage.array_spec import ArraySpec, array_problems, index_spec, offsets_spec
from pathdex.storage.bundle_rules import listed

RECORDING_FORMAT = FolderFormat(
    "pathdex-recording",
    "recording of a training",
    "`pathdex train`",
    RunError,
    keys={"num_items": int, "num_nodes": int, "depth": int},
    closed=True,
)
MAX_ITEMS, MAX_HISTORIES, MAX_LENGTH = 100_000, 1_000, 50
"""Items whose paths are recorded, histories that are recorded, and the latest items of each."""


@dataclass(frozen=True, eq=False)
class Recording:
    """What one training recorded."""

    num_items: int
    num_nodes: int
    depth: int
    items: Ints
    rounds: NDArray[np.int64]
    recall: NDArray[np.float64]
    histories: Ragged
    next: Ints

    @property
    def num_rounds(self) -> int:
        """M-steps that were recorded."""
        return max(0, len(self.rounds) - 1)

    def fits(self, paths: NDArray[np.int64], num_nodes: int, depth: int) -> bool:
        """Whether it is that of the training that gave these paths (item, path)."""
        same = (self.num_items, self.num_nodes, self.depth) == (len(paths), num_nodes, depth)
        return same and (not len(self.rounds) or np.array_equal(self.rounds[-1], paths[self.items]))

    def save(self, folder: Path) -> None:
        """Write it to a new folder, or replace the recording there."""
        facts = {"num_items": self.num_items, "num_nodes": self.num_nodes, "depth": self.depth}
        arrays: dict[str, NDArray[Any]] = {
            "items": self.items,
            "rounds": self.rounds,
            "recall": self.recall,
            "histories": self.histories.values.astype(np.int32),
            "offsets": self.histories.offsets,
            "next": self.next,
        }
        write_folder(folder, RECORDING_FORMAT, facts, lambda path: write_arrays(path, arrays), overwrite=True)

    @classmethod
    def load(cls, folder: Path) -> Recording:
        """Open what `save` wrote; `RunError` for a damaged one."""
        opened, manifest = open_folder(folder, RECORDING_FORMAT)
        with opened:
            arrays = read_arrays(opened, RECORDING_FORMAT, manifest["files"], mmap=False)
        size, nodes, depth = (int(manifest[name]) for name in ("num_items", "num_nodes", "depth"))
        problems = array_problems(arrays, _specs(size, nodes**depth if nodes < 2**31 and depth < 64 else 0))
        if not problems and len(arrays["recall"]) not in (0, len(arrays["rounds"])):
            problems = [f"recall: has {len(arrays['recall'])} values for {len(arrays['rounds'])} rounds"]
        if problems:
            raise RunError(f"{folder} is damaged: {listed(problems)}; {repair(RECORDING_FORMAT)}")
        histories = Ragged(arrays["histories"], arrays["offsets"])
        return cls(size, nodes, depth, arrays["items"], arrays["rounds"], arrays["recall"], histories, arrays["next"])


NO_RECORDING = Recording(
    0,
    0,
    0,
    np.empty(0, np.int64),
    np.empty((0, 0, 0), np.int64),
    np.empty(0),
    Ragged.from_rows([]),
    np.empty(0, np.int64),
)


class Recorder:
    """Records during a training; part of its checkpoint."""

    def __init__(self, data: Interactions, num_nodes: int, depth: int, seed: int) -> None:
        self._data, self._nodes, self._depth, self._seed = data, num_nodes, depth, seed
        drawn = np.random.default_rng(seed).permutation(data.num_items)[:MAX_ITEMS]
        self.items: Ints = np.sort(drawn).astype(np.int64)
        self._rounds: list[NDArray[np.int64]] = []
        self._recalls: list[float] = []

    def add(self, paths: NDArray[np.int64]) -> None:
        """Record the paths (item, path) of this moment."""
        self._rounds.append(paths[self.items].copy())

    def measured(self, recall: float | None) -> None:
        """Record the recall of the paths that were added last, if it is known."""
        if recall is not None:
            self._recalls.append(recall)

    @property
    def is_empty(self) -> bool:
        return not self._rounds

    def arrays(self) -> dict[str, NDArray[Any]]:
        """For a checkpoint."""
        rounds: dict[str, NDArray[Any]] = {f"recorded.{number}": one for number, one in enumerate(self._rounds)}
        return {**rounds, "recall-by-round": np.array(self._recalls)}

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """What `arrays` gave; a checkpoint without them leaves the recording empty."""
        count = sum(name.startswith("recorded.") for name in arrays)
        self._rounds = [np.asarray(arrays[f"recorded.{number}"]) for number in range(count)]
        self._recalls = arrays["recall-by-round"].tolist() if "recall-by-round" in arrays else []

    def finish(self, paths: NDArray[np.int64], recall: float | None = None) -> Recording:
        """The recording of a training that ended with these paths and this recall; rounds only if all were recorded."""
        self.measured(recall)
        rounds: Sequence[NDArray[np.int64]] = self._rounds
        complete = len(rounds) > 1 and np.array_equal(rounds[-1], paths[self.items])
        stacked = np.stack(rounds) if complete else np.empty((0, len(self.items), paths.shape[1]), np.int64)
        recalls = np.array(self._recalls if len(self._recalls) == len(stacked) else [], np.float64)
        sampled = sample_histories(self._data, self._seed)
        return Recording(self._data.num_items, self._nodes, self._depth, self.items, stacked, recalls, *sampled)


def sample_histories(data: Interactions, seed: int) -> tuple[Ragged, Ints]:
    """Beginnings of sequences of some users, the latest items of each, and the items that followed. No user ids."""
    random = np.random.default_rng(seed)
    sequences = data.sequences
    users = random.permutation(np.flatnonzero(sequences.lengths > 1))[:MAX_HISTORIES]
    lengths = sequences.lengths[users]
    cuts = random.integers(1, lengths) if len(users) else lengths
    rows = [sequences[int(user)] for user in users]
    begun = [row[max(0, cut - MAX_LENGTH) : cut] for row, cut in zip(rows, cuts, strict=True)]
    following = np.array([row[cut] for row, cut in zip(rows, cuts, strict=True)], np.int64)
    return Ragged.from_rows(begun), following


def _specs(num_items: int, num_paths: int) -> dict[str, ArraySpec]:
    return {
        "items": ArraySpec(dtype="int64", shape=("items",), low=0, high=num_items - 1, order="ascending"),
        "rounds": index_spec("rounds", "items", "paths", below=num_paths, dtype="int64", low=-1),
        "recall": ArraySpec(dtype="float64", shape=("measured",), low=0, high=1),
        "histories": index_spec("entries", below=num_items),
        "offsets": offsets_spec("histories+1", "entries", step=1),
        "next": index_spec("histories", below=num_items, dtype="int64"),
    }
