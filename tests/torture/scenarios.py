"""Scenarios of models: bundles, runs, live folders, checkpoints and streams."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import pathdex
from pathdex.config import Config, RunOptions
from pathdex.data import Interactions, Ragged, Vocabulary, split_users
from pathdex.errors import StorageError
from pathdex.experiments import stream_folder
from pathdex.experiments.runs import Run
from pathdex.experiments.stream_folder import StreamFolder, read_stream_state
from pathdex.recommenders.deep_retrieval import DeepRetrieval
from pathdex.recommenders.live_publisher import LivePublisher
from pathdex.recommenders.live_reader import open_version
from pathdex.recommenders.stream_trainer import StreamTrainer
from pathdex.storage import atomic
from pathdex.storage.bundle import read_bundle
from pathdex.storage.checkpoint_chain import CheckpointChain, StoredCheckpoint
from pathdex.storage.live_folder import is_live_folder, read_current
from pathdex.training.stream.histories import UserHistories
from pathdex.training.stream.options import StreamOptions
from tests.random_deltas import random_delta
from tests.random_model import random_model
from tests.recommenders.stream_source import ListSource
from tests.tiny import TINY
from tests.torture.data_scenarios import ABSENT, PrepareData, ShardedCheckpoint, SplitModel
from tests.torture.event_scenarios import FirstLetters, Histories, Letters, OwnedStore, Sink, Store
from tests.torture.scenario import Scenario


@cache
def model(seed: int) -> DeepRetrieval:
    """A model that is made once: children inherit it."""
    return random_model(40, seed=seed, neighbours=3)


class SaveBundle(Scenario):
    """A model is saved to a new folder, then over that one, twice."""

    steps = 3

    def step(self, session: Any, number: int) -> None:
        model(number).save(session / "inner" / "model", overwrite=number > 0)

    def state(self, root: Path) -> str:
        path = root / "inner" / "model"
        if not path.exists() and not any(path.parent.glob(".model.*.staging/previous")):
            return ABSENT
        answers = pathdex.load(path).recommend([100, 101], 5)
        return f"{read_bundle(path, verify=True).version} {answers[0].id}"


class SaveWithoutExchange(SaveBundle):
    """The same on a system that cannot swap two folders."""

    def open(self, root: Path) -> Any:
        atomic.exchange = lambda *_: False
        return super().open(root)


class Sweep(Scenario):
    """Processes died while they replaced a folder: one left its files, another one has moved the old folder aside."""

    steps = 2
    # Reading does not fail because of what cannot be swept.
    messages = dict.fromkeys(["full disk", "failing disk"], "No space left|Input/output error|does not exist")

    def prepare(self, root: Path) -> None:
        moved, left = (root / "inner" / f".model.dead000{number}.staging" for number in range(2))
        model(0).save(moved / "previous")
        (left / "new").mkdir(parents=True)
        (left / "new" / "part").write_text("x")

    def step(self, session: Any, number: int) -> None:
        if number == 0:
            pathdex.load(session / "inner" / "model")
        else:
            model(1).save(session / "inner" / "model", overwrite=True)

    def state(self, root: Path) -> str:
        return str(read_bundle(root / "inner" / "model", verify=True).version)


class TrainRun(Scenario):
    """A run is created, trained with a checkpoint per epoch, and its model saved. Resuming gives the same bits."""

    steps = 2
    share = 0.25

    def __init__(self) -> None:
        random = np.random.default_rng(0)
        rows = Ragged.from_rows([random.integers(0, 20, 6) for _ in range(24)])
        data = Interactions(rows, Vocabulary(np.arange(24)), Vocabulary(np.arange(20)))
        self.split = split_users(data, test_users=4)

    def step(self, session: Any, number: int) -> None:
        path = session / "run"
        if number == 0:
            config = {**TINY, "epochs": 1, "rounds": 1, "neighbours": 0, "path_weight": 1.0}
            Run.create(path, self.split, Config.from_dict(config), RunOptions(threads=1))
        else:
            Run.open(path).train(self.split, callbacks=())

    def state(self, root: Path) -> str:
        path = root / "run"
        if not path.exists():
            return ABSENT
        run = Run.open(path)
        run.split()
        if not run.finished:
            return "created"
        bundle = read_bundle(run.bundle, verify=True)
        phases = [json.loads(line)["phase"] for line in run.log.read_text().splitlines()]
        # The records hold times; everything else must be the same to the bit.
        weights = {**bundle.arrays, **bundle.weights}
        return f"trained {digest(weights)} {phases}"


class PublishLive(Scenario):
    """A live folder: a base, deltas, a compaction, a rollback, and a delta after it."""

    KINDS = ("base", "delta", "delta", "compact", "delta", "compact", "rollback", "late base", "delta")
    steps = len(KINDS)

    def prepare(self, root: Path) -> None:
        left = root / "live" / "deltas" / ".000000001.dead0000.staging" / "new"
        left.mkdir(parents=True)
        (left / "part").write_text("x")

    def open(self, root: Path) -> Any:
        return LivePublisher(root / "live")

    def step(self, session: Any, number: int) -> None:
        kind = self.KINDS[number]
        if kind == "base":
            session.publish_base(model(0))
        elif kind == "compact":
            session.compact()
        elif kind == "rollback":
            session.rollback()
        elif kind == "late base":
            gone = dataclasses.replace(session.version, digest="of a state before the rollback")
            try:
                session._writer.add_base(model(1).save, at=gone)
            except StorageError as error:
                if "was rolled back while a base was written" not in str(error):
                    raise
        else:
            current, _ = open_version(session.path, session.version)
            session.publish(random_delta(current, np.random.default_rng(number)))

    def close(self, session: Any) -> None:
        session.close()

    def state(self, root: Path) -> str:
        path = root / "live"
        if not is_live_folder(path):
            return ABSENT
        version = read_current(path)
        _, position = open_version(path, version)
        pathdex.load(path).recommend([], 5)
        return f"{position.delta} {position.digest} after {version.first_delta}, {len(version.bases)} bases"


class CheckpointFiles(Scenario):
    """A chain of checkpoints: a full one, changes, a merge, changes after it, another full one."""

    steps = 6
    KINDS = ("full", "changes", "changes", "merge", "changes", "full")

    def open(self, root: Path) -> Any:
        chain = CheckpointChain(root / "state")
        chain.load()
        return chain

    def step(self, session: Any, number: int) -> None:
        kind = self.KINDS[number]
        if kind == "merge":
            last = session.load()[-1]
            arrays = {"sum": np.array([last.number * (last.number + 1) // 2])}
            session.replace(StoredCheckpoint(last.number, last.link, last.values, arrays))
            return
        at = number + 1 if number < 3 else number
        if kind == "full":
            arrays = {"sum": np.array([at * (at + 1) // 2]), "rest": np.arange(3000)}
        else:
            arrays = {"sum": np.array([at])}
        session.save(at, {"position": at}, arrays, full=kind == "full")

    def state(self, root: Path) -> str:
        found = CheckpointChain(root / "state").load()
        # A merge changes nothing but the files.
        total = sum(int(one.arrays["sum"][0]) for one in found)
        return f"{found[-1].number if found else 0} {total}"


class MergingFolder(StreamFolder):
    """Waits for merges, so that the calls of one thread follow those of the other."""

    def _merge_if_due(self, committed: int) -> None:
        super()._merge_if_due(committed)
        self.finish_merging()


class Stream(Scenario):
    """A stream learns, writes checkpoints, merges them at once and publishes. Continuing gives the same bits."""

    steps = 3
    share = 0.3
    EVENTS = 48
    folder: type[StreamFolder] = MergingFolder

    def __init__(self) -> None:
        self.rows = [(row % 12, (row % 12 + row // 12) % 10, float(row)) for row in range(self.steps * self.EVENTS)]

    def open(self, root: Path) -> Any:
        stream_folder.MAX_CHANGES = 1
        return root

    def step(self, session: Any, number: int) -> None:
        small = {"embedding_dim": 8, "history_length": 6, "num_nodes": 5, "depth": 2, "path_size": 4}
        options = StreamOptions(batch_events=24, m_step_events=40)
        with self.folder.open(session / "stream", {"source": "list"}) as keeper:
            trainer = StreamTrainer(
                ListSource(self.rows[: (number + 1) * self.EVENTS]),
                pathdex.DeepRetrieval(**small, structure_hidden=16, threads=1),
                options=options,
                keeper=keeper,
                checkpoint_seconds=1e9,
                publish_seconds=1e9,
            )
            try:
                trainer.run()
            finally:
                trainer.online.state.histories.close()

    def state(self, root: Path) -> str:
        path = root / "stream"
        if is_live_folder(path):
            pathdex.load(path).recommend([1], 3)
        if CheckpointChain(path / stream_folder.STATE).is_empty:
            return "0"
        state = read_stream_state(path)
        events = state.values["counters"]["events"]
        if not events:
            return "0"
        arrays = {name: one for name, one in state.arrays.items() if not name.startswith("histories.")}
        histories = UserHistories(6, path / stream_folder.STATE / "histories.sqlite")
        journal = {name.removeprefix("histories."): one for name, one in state.arrays.items() if name not in arrays}
        histories.recover(journal, state.values["checkpoint"])
        kept = [histories.tokens(str(user)) for user in range(12)]
        histories.close()
        return f"{events} {digest(arrays)} {hashlib.sha256(json.dumps(kept).encode()).hexdigest()}"


class ConcurrentStream(Stream):
    """The same, with merges in the background."""

    folder = StreamFolder
    is_repeatable = False


def digest(arrays: dict[str, Any]) -> str:
    content = hashlib.sha256()
    for name in sorted(arrays):
        content.update(name.encode() + np.ascontiguousarray(arrays[name]).tobytes())
    return content.hexdigest()[:16]


def all_scenarios() -> list[Scenario]:
    for seed in range(SaveBundle.steps):
        model(seed)
    return [
        SaveBundle(),
        SaveWithoutExchange(),
        Sweep(),
        TrainRun(),
        PublishLive(),
        CheckpointFiles(),
        Stream(),
        ConcurrentStream(),
        Store(),
        OwnedStore(),
        Histories(),
        Sink(),
        Letters(),
        FirstLetters(),
        PrepareData(),
        SplitModel(),
        ShardedCheckpoint(),
    ]
