"""One worker of `python -m benchmarks distributed`: `python -m benchmarks.distributed_worker PART JSON`."""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import torch

from pathdex.config import Config, RunOptions
from pathdex.data.interactions import Interactions
from pathdex.data.ragged import Ragged
from pathdex.data.vocabulary import Vocabulary
from pathdex.recommenders.deep_retrieval import DeepRetrieval
from pathdex.recommenders.sharded_fit import fit_shard
from pathdex.recommenders.trained_shard import save_shards
from pathdex.training.callbacks import Callback
from pathdex.training.determinism import deterministic
from pathdex.training.distributed.group import Group, Traffic
from pathdex.training.distributed.item_table import ShardedItemTable, ShardedLazyAdam
from pathdex.training.distributed.launch import joined, worker_place
from pathdex.training.distributed.parts import sharded_parts
from pathdex.training.setup import prepare
from pathdex.training.trainer import Trainer, resolve, training_parts


def made_up(users: int, items: int, length: int = 20) -> Interactions:
    """Users who take items of one of 50 groups."""
    random = np.random.default_rng(0)
    groups = min(50, items)
    values = random.integers(0, items // groups, (users, length)) * groups + np.arange(users)[:, None] % groups
    sequences = Ragged.from_rows(list(values.astype(np.int32)))
    return Interactions(sequences, Vocabulary(np.arange(users)), Vocabulary(np.arange(items)))


def resident() -> float:
    """Resident memory of this process that is no file, in MB."""
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("RssAnon")) / 1024


def memory(group: Group | None, options: dict[str, Any]) -> dict[str, Any]:
    """Memory for what has a row per item, and the cost of encoder steps."""
    data, run = made_up(options["users"], options["items"]), RunOptions(threads=1)
    prepare(data, run)
    config = resolve(Config(next_items=1, history_length=20, batch_size=options["batch"]), data)
    before = resident()
    parts = (
        training_parts(config, run, data, None, [], None)
        if group is None
        else sharded_parts(config, run, data, None, [], group, None)
    )
    network, assigner, encoder, _ = parts
    rows = encoder.reranker.rows
    for lazy in (rows.first, rows.second):
        lazy.fill_(1e-12)  # Memory that nothing has written is not resident.
    assigner.table.scores.fill(0.5)
    sharded = sum(one.nbytes for one in (network.items.rows.numpy(), rows.first.numpy(), rows.second.numpy())) + sum(
        one.nbytes for one in (assigner.table.codes, assigner.table.scores, assigner.paths)
    )
    after = resident()
    taken: list[int] = []
    network.items.take = counted(network.items.take, taken)  # type: ignore[method-assign]
    if group is not None:
        group.traffic = Traffic()
    with deterministic(torch.device("cpu")):
        encoder.begin()
        encoder.begin_epoch(0)
        encoder.step(0, 0)
        started, traffic = time.monotonic(), Traffic() if group is None else Traffic(**vars(group.traffic))
        for step in range(1, options["steps"] + 1):
            encoder.step(0, step)
        seconds = time.monotonic() - started
    found: dict[str, Any] = {
        "sharded_mb": sharded / 2**20,
        "resident_before_mb": before,
        "resident_mb": after,
        "step_ms": 1e3 * seconds / options["steps"],
        "rows_taken_per_step": float(np.mean(taken[1:])),
        "dense_parameters": sum(one.numel() for one in [network.start, *network.encoder.parameters()]),
    }
    if group is not None:
        now = group.traffic
        found["kb_sent_per_step"] = (now.bytes - traffic.bytes) / options["steps"] / 1024
        found["collectives_per_step"] = (now.calls - traffic.calls) / options["steps"]
        found["share_of_time_in_collectives"] = (now.seconds - traffic.seconds) / seconds
    return found


def counted(take: Callable[[torch.Tensor], torch.Tensor], taken: list[int]) -> Any:
    """`take` that also appends how many rows it takes."""

    def taking(numbers: torch.Tensor) -> torch.Tensor:
        taken.append(len(numbers))
        return take(numbers)

    return taking


def curve(group: Group | None, options: dict[str, Any]) -> dict[str, Any]:
    """The losses of every epoch and every step of a whole training; with `exact`, no gradient is drawn."""
    config = Config(
        batch_size=options["batch"],
        structure_batch_size=options["batch"],
        next_items=1,
        epochs=3,
        rounds=2,
        **options.get("parameters", {}),
    )
    trainer = Trainer(config, RunOptions(threads=1), made_up(options["users"], options["items"]), group=group)
    steps: list[float] = []
    for phase in (trainer.encoder, trainer.structure):
        phase.step = recorded(phase.step, steps)  # type: ignore[method-assign]
    started = time.monotonic()
    with whole_gradients(trainer) if options.get("exact") else nullcontext():
        trainer.run()
    seconds = time.monotonic() - started
    trainer.gather()
    losses = [one.get("softmax", one.get("structure")) for one in trainer.records]
    paths = trainer.paths.tolist() if group is None or group.is_first else None
    return {"losses": losses, "steps": steps, "seconds": seconds, "paths": paths}


def recorded(step: Callable[[int, int], Mapping[str, float]], losses: list[float]) -> Any:
    """`step` that also appends its loss."""

    def taken(epoch: int, number: int) -> Mapping[str, float]:
        found = step(epoch, number)
        losses.append(next(iter(found.values())))
        return found

    return taken


@contextmanager
def whole_gradients(trainer: Trainer) -> Iterator[None]:
    """Compute both losses by autograd over all items and nodes, as for networks without a compiled loss."""
    trainer.encoder.reranker.compiled_loss = False
    none = type(None)
    with patch("pathdex.training.e_step.MLPStructure", none), patch("pathdex.model.path_loss.MLPStructure", none):
        yield


def lookup(group: Group | None, options: dict[str, Any]) -> dict[str, Any]:
    """Fetch rows and update them by their gradient, with `all_to_all_single` and with TorchRec."""
    assert group is not None
    items, rows, dim = options["items"], options["rows"], 64
    table = ShardedItemTable(group, items, dim, shared=True)
    adam = ShardedLazyAdam(table, 0.03)
    torchrec_step = torchrec_table(items, dim + 1)
    random, found = np.random.default_rng(group.rank), {"plain": [], "torchrec": []}

    def plain_step(codes: torch.Tensor) -> None:
        taken = table.take(codes).requires_grad_()
        (taken * taken).sum().backward()
        adam.step(codes, taken.grad)

    for number in range(options["steps"] + 3):
        codes = torch.from_numpy(np.unique(random.integers(0, items, rows)))
        for name, step in (("plain", plain_step), ("torchrec", torchrec_step)):
            group.largest(0)
            started, cpu = time.monotonic(), time.process_time()
            step(codes)
            if number >= 3:
                found[name].append((time.monotonic() - started, time.process_time() - cpu))
    return {
        f"{name}_{kind}_ms": 1e3 * float(np.median([one[place] for one in times]))
        for name, times in found.items()
        for place, kind in enumerate(("wall", "cpu"))
    }


def torchrec_table(items: int, width: int) -> Any:
    """A step of TorchRec's row-wise sharded `EmbeddingCollection` with a fused row-wise Adagrad."""
    import torch.distributed as dist
    from fbgemm_gpu.split_embedding_configs import EmbOptimType
    from torchrec import EmbeddingCollection, EmbeddingConfig, KeyedJaggedTensor
    from torchrec.distributed.embedding import EmbeddingCollectionSharder
    from torchrec.distributed.model_parallel import DistributedModelParallel
    from torchrec.distributed.sharding_plan import construct_module_sharding_plan, row_wise
    from torchrec.distributed.types import ShardingEnv, ShardingPlan

    width = -(-width // 4) * 4
    config = EmbeddingConfig(name="item_rows", embedding_dim=width, num_embeddings=items, feature_names=["item"])
    module = EmbeddingCollection(device=torch.device("meta"), tables=[config])
    # fbgemm with Adam: "Optimizer adam is not supported in CPU mode."
    sharder = EmbeddingCollectionSharder(
        fused_params={"optimizer": EmbOptimType.EXACT_ROWWISE_ADAGRAD, "learning_rate": 0.03, "eps": 1e-8}
    )
    plan = construct_module_sharding_plan(
        module,
        {"item_rows": row_wise(compute_kernel="fused")},
        sharder,
        local_size=dist.get_world_size(),
        device_type="cpu",
    )
    model = DistributedModelParallel(
        module,
        env=ShardingEnv.from_process_group(dist.group.WORLD),
        device=torch.device("cpu"),
        plan=ShardingPlan({"": plan}),
        sharders=[sharder],
    )

    def step(codes: torch.Tensor) -> None:
        given = KeyedJaggedTensor(keys=["item"], values=codes, lengths=torch.tensor([len(codes)]))
        taken = model(given)["item"].values()
        (taken * taken).sum().backward()

    return step


def bundle(group: Group | None, options: dict[str, Any]) -> dict[str, Any]:
    """Peaks of memory until EM is over, and from there until the model is saved: as a bundle, or `sharded`."""
    data = made_up(options["users"], options["items"])
    config = Config(
        history_length=20, next_items=1, epochs=1, rounds=1, structure_epochs=1, final_epochs=0, neighbours=50
    )
    run, watch, before = RunOptions(threads=1), PeakOfEm(), resident()
    given: dict[str, Any] = {"callbacks": [watch]}
    folder = Path(tempfile.mkdtemp()) if group is None or group.is_first else Path()
    if options["sharded"] and group is not None:
        folder = Path(group.describe(str(folder))[0])
        save_shards(group, fit_shard(config, run, data, group, **given), folder / "shards")
    else:
        model = DeepRetrieval(config, threads=1).fit(data, group=group, **given)
        if model.is_fitted:
            model.save(folder / "bundle")
        if group is not None:
            group.largest(0)
    watch.stop()
    if group is None or group.is_first:
        shutil.rmtree(folder)
    return {"resident_before_mb": before, "peak_of_em_mb": watch.of_em, "peak_mb": watch.peak}


class PeakOfEm(Callback):
    """The peak of this process until EM is over and after it, looked at every 10 ms."""

    def __init__(self) -> None:
        self.of_em = self.peak = 0.0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        while not self._over.wait(0.01):
            self.peak = max(self.peak, resident())

    def on_epoch_end(self, record: dict[str, Any]) -> None:
        if record["phase"] == "structure":
            self.of_em, self.peak = max(self.of_em, self.peak), 0.0

    def stop(self) -> None:
        self._over.set()
        self._thread.join()


PARTS = {"memory": memory, "curve": curve, "lookup": lookup, "bundle": bundle}


def main(part: str, options: dict[str, Any]) -> None:
    with joined(worker_place(), "cpu") as group:
        found = PARTS[part](group, options)
        every = [found] if group is None else group.describe(found)
        if group is None or group.is_first:
            print(json.dumps(every))


if __name__ == "__main__":
    main(sys.argv[1], json.loads(sys.argv[2]))
