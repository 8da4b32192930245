"""What each worker of a group checks by itself. `program.py` runs all of them; tests look at the outcomes."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from pathdex.config import Config, RunOptions
from pathdex.errors import WorkerError
from pathdex.index.coordinate_descent import assign_paths
from pathdex.index.health import health
from pathdex.index.initialization import random_paths
from pathdex.model.item_table import ItemTable
from pathdex.model.lazy_adam import LazyAdam
from pathdex.training.distributed import path_assigner
from pathdex.training.distributed.agreement import check_agreement, facts
from pathdex.training.distributed.group import Group
from pathdex.training.distributed.health import sharded_health
from pathdex.training.distributed.item_table import ShardedItemTable, ShardedLazyAdam
from pathdex.training.distributed.positions import PositionShard, ShardedPositionVectors
from pathdex.training.distributed.rows import RowShard, gather_items, item_lookup
from pathdex.training.distributed.structure_phase import sharded_kmeans_paths
from pathdex.training.e_step import sum_gradients


def group(one: Group) -> None:
    """Everything that travels arrives."""
    rank, size = one.rank, one.size
    rows = torch.full((size * (size + 1) // 2, 2), rank)
    found, counts = one.exchange(rows, list(range(1, size + 1)))
    assert counts == [rank + 1] * size
    assert found[:, 0].tolist() == [sender for sender in range(size) for _ in range(rank + 1)]
    assert one.total(np.array([1, rank])).tolist() == [size, sum(range(size))]
    assert one.largest(rank) == size - 1
    assert [part.tolist() for part in one.gather(np.arange(rank))] == [list(range(r)) for r in range(size)]
    assert one.gather(np.array([True] * rank, np.bool_))[size - 1].dtype == np.bool_
    assert one.describe({"rank": rank}) == [{"rank": r} for r in range(size)]
    assert one.agree(rank == 0)
    assert not one.agree(rank != 0)
    parts = one.gather_first(np.full(rank, rank))
    assert (parts is None) == (rank > 0)
    assert one.traffic.bytes > 0
    assert one.traffic.calls > 0


def first_only(one: Group) -> None:
    """The result is the first worker's; its error stops all."""
    assert one.first_only(lambda: 7) == (7 if one.is_first else None)

    def fail() -> None:
        raise ValueError("no space")

    with pytest.raises(ValueError if one.is_first else WorkerError, match="no space"):
        one.first_only(fail)


def together(one: Group) -> None:
    """A failure of one worker stops all; nothing to send is nothing received."""
    assert one.together(lambda: one.rank, "cannot count") == one.rank
    with pytest.raises(ZeroDivisionError if one.rank == 1 else WorkerError, match=r"worker 1 cannot count|zero"):
        one.together(lambda: 1 // (one.rank - 1) if one.rank == 1 else 0, "cannot count")
    assert [part.shape for part in one.gather(np.empty((0, 3), np.float32))] == [(0, 3)] * one.size


def agreement(one: Group) -> None:
    """Whoever differs, all workers get the same error."""
    check_agreement(one, {"data": 1})
    with pytest.raises(WorkerError, match=r"worker 1 has another data .*give all workers the same"):
        check_agreement(one, {"data": int(one.rank == 1)})
    with pytest.raises(WorkerError, match=r"worker 1 has another seed \(3, worker 0 None\)"):
        check_agreement(one, {"seed": 3} if one.rank == 1 else {})
    from tests.training.distributed.program import made_up

    known = facts(Config(), RunOptions(), made_up(), None)
    assert known != facts(Config(), RunOptions(), made_up(seed=1), None)
    assert known != facts(Config(epochs=3), RunOptions(), made_up(), None)
    check_agreement(one, known)


def rows(one: Group) -> None:
    """Rows come from their owners, in the order asked for, and values go back."""
    whole = np.arange(20) * 10
    shard = RowShard(one.rank, one.size, 20)
    own = torch.from_numpy(whole[shard.codes])
    assert len(own) == shard.length
    codes = np.random.default_rng(one.rank).permutation(20)[: 5 + one.rank]
    lookup = item_lookup(one, codes)
    assert lookup.fetch(lambda places: own[places]).tolist() == whole[codes].tolist()
    returned = lookup.send_back(torch.from_numpy(codes))
    assert returned.tolist() == (lookup.wanted * one.size + one.rank).tolist()
    gathered = gather_items(one, own.numpy(), 20)
    assert gathered is None if one.rank else gathered.tolist() == whole.tolist()


def item_table(one: Group) -> None:
    """The rows are those of one process, before and after a step; the best items as well."""
    torch.manual_seed(5)
    whole = ItemTable(9001, 3, shared=True)
    after = torch.rand(1)
    torch.manual_seed(5)
    table = ShardedItemTable(one, 9001, 3, shared=True)
    assert torch.equal(after, torch.rand(1))
    assert torch.equal(table.rows, whole.rows[one.rank :: one.size])
    assert torch.equal(table.all_rows(), whole.rows)
    bias = np.arange(9001, dtype=np.float32)
    whole.set_bias(bias)
    table.set_bias(bias)

    adam, sharded = LazyAdam(whole.rows, 0.1), ShardedLazyAdam(table, 0.1)
    for used in ([4, 8, 3], [8, 0, 8999]):
        numbers = torch.tensor(used)
        taken = table.take(numbers)
        assert torch.equal(taken, whole.take(numbers))
        gradient = torch.arange(12.0).view(3, 4)
        sharded.step(numbers, gradient * (one.rank + 1))
        adam.step(numbers, gradient * sum(range(1, one.size + 1)))
    table.all_rows()
    sharded.step(None, torch.ones(9001, 4))
    adam.step(None, torch.full((9001, 4), float(one.size)))
    torch.testing.assert_close(table.rows, whole.rows[one.rank :: one.size])

    scores = torch.randn(4, 9001, generator=torch.Generator().manual_seed(1))
    values, codes = table.best(scores[:, one.rank :: one.size], 6)
    expected = scores.topk(6, dim=1)
    assert torch.equal(values, expected.values)
    assert torch.equal(codes, expected.indices)
    own, places = table.find(torch.arange(10))
    assert torch.equal(places[own] * one.size + one.rank, torch.arange(10)[own])


def gradients(one: Group) -> None:
    """Gradients and losses are summed; a missing gradient counts as 0."""
    first, second = torch.zeros(2, requires_grad=True), torch.zeros(1, requires_grad=True)
    first.grad = torch.tensor([1.0, one.rank])
    losses = sum_gradients(one, [first, second], {"softmax": 0.5})
    assert losses == {"softmax": 0.5 * one.size}
    assert first.grad.tolist() == [one.size, sum(range(one.size))]
    assert second.grad is not None


def positions(one: Group) -> None:
    """Sequences are whole, and every worker gets any vector."""
    from tests.training.distributed.program import made_up

    sequences = made_up().sequences
    shard = PositionShard.of(sequences, one.rank, one.size)
    assert set(shard.starts.tolist()) <= set(sequences.offsets.tolist())
    whole = np.arange(len(sequences.values), dtype=np.float32)[:, None]
    vectors = ShardedPositionVectors(one, shard, whole[shard.first : shard.end])
    wanted = np.random.default_rng(one.rank).integers(0, len(whole), 50)
    np.testing.assert_array_equal(vectors.at(wanted), whole[wanted])
    assert shard.owns(np.arange(len(whole))).sum() == shard.end - shard.first


def path_health(one: Group) -> None:
    """The figures are those of the whole."""
    now, before = (random_paths(50, 2, 4, 2, seed) for seed in range(2))
    own = slice(one.rank, None, one.size)
    found = sharded_health(one, now[own], before[own], 4, 2)
    assert found == pytest.approx(health(now, 4, 2, previous=before).summary())


def assigner(one: Group) -> None:
    """Large catalogues take the sharded M-step, small ones gather; both give the paths of `assign_paths`."""
    from pathdex.model.network import Network
    from pathdex.training.random_streams import RandomStreams, Stream
    from tests.tiny import TINY
    from tests.training.distributed.program import made_up

    data, config = made_up(), Config.from_dict({**TINY, "penalty": 0.01})
    random, given = RandomStreams(0, 1), np.random.default_rng(0)
    assigners = [
        path_assigner.ShardedPathAssigner(Network(config, data.num_items, config), config, data, [], one, seed=0)
        for _ in range(2)
    ]
    codes = np.argsort(given.random((data.num_items, 16)), axis=1)[:, :8]
    scores = -np.sort(-given.random(codes.shape), axis=1).astype(np.float32)
    start = random_paths(data.num_items, 2, 4, 2, 0)
    seed = int(random.generator(Stream.ASSIGNMENT, 0).integers(2**31))
    wanted = assign_paths(codes, scores, data.item_counts(), start, penalty=0.01, seed=seed)
    own, figures = slice(one.rank, None, one.size), []
    for limit, each in zip((0, 100), assigners, strict=True):
        each.table.codes[:], each.table.scores[:] = codes[own], scores[own]
        path_assigner.GATHERED = limit
        figures.append(each.m_step(random, 0))
        np.testing.assert_array_equal(each.paths, wanted[own])
        nodes = each.nodes(np.array([3, 1, 3])).numpy()
        np.testing.assert_array_equal(nodes @ [4, 1], wanted[[3, 1, 3]])
    path_assigner.GATHERED = 65_536
    assert {k: v for k, v in figures[0].items() if k != "m_step_seconds"} == pytest.approx(
        {k: v for k, v in figures[1].items() if k != "m_step_seconds"}
    )


def kmeans(one: Group) -> None:
    """The first paths are those of one process."""
    from pathdex.index.initialization import residual_kmeans_paths
    from pathdex.model.network import Network

    config = Config(num_nodes=4, depth=2, paths_per_item=2, embedding_dim=8, candidate_paths=8)
    torch.manual_seed(0)
    whole = Network(config, 60, config)
    torch.manual_seed(0)
    own = Network(config, 60, config, items=lambda n, dim, shared: ShardedItemTable(one, n, dim, shared=shared))
    vectors = whole.items.outputs(whole.items.rows).numpy()
    expected = residual_kmeans_paths(vectors, 2, 4, 2, seed=3)
    np.testing.assert_array_equal(sharded_kmeans_paths(own, config, one, seed=3), expected[one.rank :: one.size])


CHECKS = (
    group,
    first_only,
    together,
    agreement,
    rows,
    item_table,
    gradients,
    positions,
    path_health,
    assigner,
    kmeans,
)
