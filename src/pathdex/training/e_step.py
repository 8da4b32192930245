"""E-step: gradient steps on the network with assignments fixed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pathdex.config import Config, EncoderConfig
from pathdex.data.interactions import Interactions
from pathdex.kernels.gather import RowNumbering
from pathdex.model.adam import Adam
from pathdex.model.lazy_adam import LazyAdam
from pathdex.model.losses import negative_scores
from pathdex.model.network import Network
from pathdex.model.parallel import own_threads
from pathdex.model.path_loss import mean_path_loss, set_path_gradients
from pathdex.model.rerankers import RERANKERS, rerank_scores
from pathdex.model.sampled_softmax import sampled_softmax_loss
from pathdex.model.structure import MLPStructure
from pathdex.storage.scratch import scratch_array
from pathdex.training.horizon import HorizonMap
from pathdex.training.negatives import NegativeSampler
from pathdex.training.windows import Batch, BatchShare, cut_windows, sequential_batches

if TYPE_CHECKING:
    from pathdex.training.distributed.group import Group

FULL_SOFTMAX_LIMIT = 2000
"""Largest catalogue for which `softmax="auto"` is the full softmax."""


class RerankerStep:
    """A gradient step on encoder, item table and, with paths, structure model: Q_softmax (+ Q_str)."""

    def __init__(
        self, network: Network, config: EncoderConfig, counts: NDArray[np.int64], group: Group | None = None
    ) -> None:
        """With a `group`, each worker takes its share of every batch; all take the step."""
        self.network, self.config, self.group = network, config, group
        full = config.softmax == "full" or (config.softmax == "auto" and network.num_items <= FULL_SOFTMAX_LIMIT)
        self.sampler = NegativeSampler("full" if full else config.negatives, counts, config.num_negatives)
        self.loss = RERANKERS[config.reranker]
        self.compiled_loss = config.reranker == "softmax" and network.device.type == "cpu"
        self.numbering = RowNumbering(network.num_items)
        self.rows = _row_optimizer(network, config.item_learning_rate)
        self.other_horizon = HorizonMap(len(network.start)).to(network.device)
        dense = [network.start, *network.encoder.parameters(), *self.other_horizon.parameters()]
        self.dense = Adam(dense, config.learning_rate, weight_decay=config.weight_decay, fused=True)
        self.updated_rows: Tensor | None = None
        """The rows of the item table that the last step changed; None: all of them."""
        self.structure: Adam | None = None
        if isinstance(config, Config) and network.has_structure:
            self.structure = Adam(network.structure.parameters(), config.structure_learning_rate, fused=True)

    def __call__(
        self, batch: Batch, generator: np.random.Generator, paths: Tensor | None = None, rate: float = 1.0
    ) -> tuple[dict[str, float], Tensor]:
        """Take a step at `rate` times the learning rate; returns the losses and the user vector of each sample."""
        with own_threads(enabled=self.network.is_compiled):
            return self._step(batch, generator, paths, rate)

    def _step(
        self, batch: Batch, generator: np.random.Generator, paths: Tensor | None, rate: float
    ) -> tuple[dict[str, float], Tensor]:
        network = self.network
        network.train()
        negatives = self.sampler.draw(batch.targets, generator)
        points = draw_offsets(len(batch.targets), generator) if self.compiled_loss else torch.empty(0)
        share = BatchShare(batch, slice(None), None, 1.0)
        if self.group is not None:
            share = batch.share(self.group.rank, self.group.size)
        total, (batch, samples, part, weight) = len(batch.targets), share
        if negatives.log_inclusion is None:  # The whole catalogue.
            rows, inputs, targets = None, batch.inputs, batch.targets
            table = network.items.all_rows().requires_grad_()
        else:
            used, (_, inputs, targets) = self.numbering(negatives.items, batch.inputs, batch.targets)
            rows = self._tensor(used)
            table = network.items.take(rows).requires_grad_()
        # Negatives are numbered first, so they are the first rows of the table.
        wanted, number = self._tensor(targets), len(negatives.items)
        window, time = self._tensor(batch.window), self._tensor(batch.time)
        users = network.encode_samples(table, self._tensor(inputs), window, time, part)
        predicting = users if batch.mapped is None else self._map(users, self._tensor(batch.mapped))
        correction = None if negatives.log_inclusion is None else self._tensor(negatives.log_inclusion)
        if self.compiled_loss:
            offset = None if correction is None else -correction
            rows_out = network.items.output_rows(table)
            loss = sampled_softmax_loss(predicting, rows_out, wanted, number, offset, points[samples])
        else:
            outputs, bias = network.items.outputs(table), network.items.bias(table)
            positive = (predicting * outputs[wanted]).sum(dim=1) + bias[wanted]
            scores = rerank_scores(predicting, outputs[:number], bias[:number])
            items = torch.arange(number, device=network.device)
            loss = self.loss(positive, negative_scores(scores, items, wanted, correction))
        losses = {"softmax": float(loss.detach())}
        if paths is not None:
            offsets = draw_offsets(total, generator)[samples]
            path_loss = mean_path_loss(network.structure, users, paths, offsets)
            losses["structure"] = float(path_loss.detach())
            loss = loss + path_loss

        self.dense.zero_grad(set_to_none=True)
        if self.structure is not None:
            self.structure.zero_grad(set_to_none=True)
        if self.group is None:
            loss.backward()  # type: ignore[no-untyped-call]
        else:
            (loss * weight).backward()  # type: ignore[no-untyped-call]
            losses = self._combine(losses, weight, mapped=batch.mapped is not None, joint=paths is not None)
        self.rows.learning_rate = self.config.item_learning_rate * rate
        self.dense.param_groups[0]["lr"] = self.config.learning_rate * rate
        assert table.grad is not None
        self.rows.step(rows, table.grad)
        self.updated_rows = rows
        self.dense.step()
        if self.structure is not None and paths is not None:
            self.structure.step()
        return losses, users.detach()

    def _combine(self, losses: dict[str, float], weight: float, *, mapped: bool, joint: bool) -> dict[str, float]:
        """Sum the workers' gradients of dense weights, and their shares of the losses."""
        assert self.group is not None
        network = self.network
        parameters = [network.start, *network.encoder.parameters()]
        parameters += [*self.other_horizon.parameters()] if mapped else []
        parameters += [*network.structure.parameters()] if joint else []
        return sum_gradients(self.group, parameters, {name: weight * loss for name, loss in losses.items()})

    def bind(self, rows: Tensor, first: Tensor, second: Tensor) -> None:
        """Continue on another item table and its moments, after the catalogue has grown."""
        if len(rows) > len(self.numbering.numbers):
            self.numbering = RowNumbering(max(len(rows), 2 * len(self.numbering.numbers)))
        self.network.num_items, self.network.items.rows = len(rows), rows
        self.rows.table, self.rows.first, self.rows.second = rows, first, second

    def _map(self, users: Tensor, mapped: Tensor) -> Tensor:
        """User vectors, the `mapped` ones those of the other horizon."""
        return torch.where(mapped[:, None], self.other_horizon(users), users)

    def _tensor(self, array: NDArray[np.generic]) -> Tensor:
        return torch.from_numpy(array).to(self.network.device)


class StructureStep:
    """A gradient step on the structure model over frozen user vectors."""

    def __init__(self, network: Network, config: Config) -> None:
        self.network = network
        self.rate = config.structure_learning_rate
        self.optimizer = Adam(network.structure.parameters(), self.rate, fused=True)

    def __call__(self, users: Tensor, paths: Tensor, generator: np.random.Generator, rate: float = 1.0) -> float:
        """Take a step for users (sample, dim) and their targets' paths (sample, path, layer); returns the loss."""
        return self.step(users, paths, draw_offsets(len(users), generator), rate)

    def step(
        self,
        users: Tensor,
        paths: Tensor,
        offsets: Tensor,
        rate: float,
        combine: Callable[[float], float] | None = None,
    ) -> float:
        """As `__call__`, with the samples' random numbers; `combine` sums gradients and losses of several workers."""
        structure = self.network.structure
        self.optimizer.param_groups[0]["lr"] = self.rate * rate
        if isinstance(structure, MLPStructure) and users.device.type == "cpu":
            with own_threads():
                loss = set_path_gradients(structure, users, paths, offsets)
                loss = loss if combine is None else combine(loss)
                self.optimizer.step()
            return loss
        found = mean_path_loss(structure, users, paths, offsets)
        self.optimizer.zero_grad()
        found.backward()  # type: ignore[no-untyped-call]
        loss = float(found.detach())
        loss = loss if combine is None else combine(loss)
        self.optimizer.step()
        return loss


def sum_gradients(group: Group, parameters: Sequence[Tensor], losses: Mapping[str, float]) -> dict[str, float]:
    """Replace gradients by their sums over the workers, in one message with the losses; returns the summed losses."""
    names = list(losses)
    gradients = [torch.zeros_like(one) if one.grad is None else one.grad for one in parameters]
    values = torch.tensor([losses[name] for name in names], device=gradients[0].device)
    summed = group.sum(torch.cat([*(one.reshape(-1) for one in gradients), values]))
    end = 0
    for parameter, gradient in zip(parameters, gradients, strict=True):
        begin, end = end, end + gradient.numel()
        parameter.grad = summed[begin:end].view_as(gradient)
    return dict(zip(names, summed[end:].tolist(), strict=True))


def _row_optimizer(network: Network, learning_rate: float) -> LazyAdam:
    from pathdex.training.distributed.item_table import ShardedItemTable, ShardedLazyAdam

    if isinstance(network.items, ShardedItemTable):
        return ShardedLazyAdam(network.items, learning_rate)
    return LazyAdam(network.items.rows, learning_rate)


def draw_offsets(samples: int, generator: np.random.Generator) -> Tensor:
    """The random numbers of a drawn gradient (`kernels/draws.py`): one per sample, uniform in [0, 1)."""
    return torch.from_numpy(generator.random(samples, np.float32))


@torch.no_grad()
def position_vectors(network: Network, data: Interactions, batch_size: int) -> NDArray[np.float32]:
    """The user vector before each interaction, (interaction, dim), in the order of `data.sequences.values`."""
    network.eval()
    windows = cut_windows(data.sequences, network.history_length, np.random.default_rng(0))
    vectors: NDArray[np.float32] = scratch_array(
        (data.num_interactions, len(network.start)), np.float32, scattered=True
    )
    numbering = RowNumbering(network.num_items)
    for batch in sequential_batches(windows, batch_size):
        vectors[batch.position] = encode_batch(network, batch, numbering)
    return vectors


@torch.no_grad()
def encode_batch(network: Network, batch: Batch, numbering: RowNumbering) -> NDArray[np.float32]:
    """The user vector of each sample."""
    used, (inputs,) = numbering(batch.inputs)
    rows = network.items.take(torch.from_numpy(used).to(network.device))
    codes, window, time = (torch.from_numpy(one).to(network.device) for one in (inputs, batch.window, batch.time))
    with own_threads(enabled=network.is_compiled):
        vectors: NDArray[np.float32] = network.encode_samples(rows, codes, window, time).cpu().numpy()
    return vectors
