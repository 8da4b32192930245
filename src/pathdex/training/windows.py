"""Cut sequences into windows that the encoder reads in one pass, and pack windows into batches.

There is one sample per interaction: the target is item t, the input is the items before it. Consecutive windows overlap
by half, and the loss of a window covers its second half. So every target has at least half of `length` items of
context (or its whole past, if shorter) and counts once per epoch.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pathdex.data.ragged import Ragged
from pathdex.model.dropout import BatchPart
from pathdex.storage.scratch import blocks, scratch_array
from pathdex.training.sample_order import WINDOW, is_large

START = -1
SORTED_BATCHES = 32
"""Windows are sorted by length within groups of this many batches, to reduce padding."""


@dataclass(frozen=True)
class Batch:
    """Padded windows and the samples in them."""

    inputs: NDArray[np.int64]
    """(window, time) item codes; `START` before a sequence's first item and as padding."""
    window: NDArray[np.int64]
    """(sample,) row of `inputs` whose state predicts the target."""
    time: NDArray[np.int64]
    """(sample,) its column."""
    position: NDArray[np.int64]
    """(sample,) position of the target in the sequences' values."""
    targets: NDArray[np.int64]
    """(sample,) item codes."""
    earliest: NDArray[np.int64]
    """(sample,) the first column whose state has read enough to predict."""
    mapped: NDArray[np.bool_] | None = None
    """(sample,) whether the sample's user vector is that of the other horizon; None if none is."""

    def share(self, number: int, size: int) -> BatchShare:
        """What worker `number` of `size` takes."""
        first, end = (len(self.inputs) * one // size for one in (number, number + 1))
        idle = first == end
        first, end = (0, 1) if idle else (first, end)
        samples = slice(*np.searchsorted(self.window, [first, end]).tolist())
        batch = Batch(
            self.inputs[first:end],
            self.window[samples] - first,
            self.time[samples],
            self.position[samples],
            self.targets[samples],
            self.earliest[samples],
            None if self.mapped is None else self.mapped[samples],
        )
        weight = 0.0 if idle else len(batch.targets) / max(1, len(self.targets))
        return BatchShare(batch, samples, BatchPart(first, len(self.inputs)), weight)

    def read_earlier(self, readers: NDArray[np.int64], mapped: NDArray[np.bool_] | None = None) -> Batch:
        """The same targets, each predicted by the history before `readers[position]`; `mapped` is by position as well.

        If the window's states do not reach back that far, the distance is taken modulo the distance that they reach.
        """
        back = self.position - readers[self.position]
        time = self.time - back % (self.time - self.earliest + 1)
        return replace(self, time=time, mapped=None if mapped is None else mapped[self.position])


class BatchShare(NamedTuple):
    """The windows of a batch that one worker takes. Where there are too few, it takes the first with weight 0."""

    batch: Batch
    samples: slice
    """Its samples among those of the batch."""
    part: BatchPart | None
    weight: float
    """The share of the samples, by which the mean losses of the workers add up to that of the batch."""


@dataclass(frozen=True)
class Windows:
    """Positions in `sequences.values`: a window reads from `context` and predicts `first` to `end`."""

    sequences: Ragged
    context: NDArray[np.int64]
    first: NDArray[np.int64]
    end: NDArray[np.int64]
    at_start: NDArray[np.bool_]
    """Whether the window's first input is the start token, not an item."""

    def take(self, numbers: NDArray[np.int64]) -> Windows:
        """The given windows."""
        context, first, end = self.context[numbers], self.first[numbers], self.end[numbers]
        return Windows(self.sequences, context, first, end, self.at_start[numbers])

    def batches(self, size: int, generator: np.random.Generator) -> list[NDArray[np.int64]]:
        """Window numbers of each batch, in random order. A batch has about `size` targets."""
        order = generator.permutation(len(self.context))
        targets = (self.end - self.first)[order]
        group = np.cumsum(targets) // (size * SORTED_BATCHES)
        length = (self.end - self.context)[order]
        order = order[np.lexsort((length, group))]
        cuts = np.cumsum((self.end - self.first)[order]) // size
        batches = np.split(order, np.flatnonzero(np.diff(cuts)) + 1)
        return [batches[number] for number in generator.permutation(len(batches))]

    def batch(self, numbers: NDArray[np.int64]) -> Batch:
        """Inputs and samples of the given windows."""
        context, first, end = self.context[numbers], self.first[numbers], self.end[numbers]
        time = np.arange(int((end - context).max()))
        # The state at column k has read the items before position context + k and predicts the item there.
        read = context[:, None] + time - 1
        inputs = self.sequences.values.take(read, mode="clip").astype(np.int64)
        inputs[self.at_start[numbers], 0] = START
        inputs[read >= end[:, None] - 1] = START
        position = read + 1
        window, column = np.nonzero((position >= first[:, None]) & (position < end[:, None]))
        chosen = position[window, column]
        # Where a window starts in the middle of a sequence, its first states have read less than a query would.
        earliest = np.where(self.at_start[numbers], 0, (first - context) // 2)[window]
        return Batch(inputs, window, column, chosen, self.sequences.values[chosen].astype(np.int64), earliest)


def cut_windows(sequences: Ragged, length: int, generator: np.random.Generator) -> Windows:
    """Windows over every sequence. The first cut of sequences longer than `length` is random."""
    stride = (length + 1) // 2
    lengths = sequences.lengths
    long = lengths > length
    shift = np.where(long, generator.integers(0, stride, len(lengths)), 0)
    count = np.where(long, -(-(lengths + shift) // stride), np.minimum(lengths, 1))
    sequence = np.repeat(np.arange(len(lengths)), count)
    number = np.arange(len(sequence)) - np.repeat(np.cumsum(count) - count, count)
    begin, total = sequences.offsets[:-1][sequence], lengths[sequence]
    first = np.maximum(number * stride - shift[sequence], 0)
    end = np.where(long[sequence], np.minimum((number + 1) * stride - shift[sequence], total), total)
    context = np.maximum(end - length, 0)
    context = np.where(long[sequence], np.minimum(context, first), 0)
    return Windows(sequences, begin + context, begin + first, begin + end, context == 0)


def draw_readers(sequences: Ragged, reach: int, generator: np.random.Generator) -> NDArray[np.int64]:
    """For each position, the position whose history predicts its item.

    Drawn from the position itself and the `reach - 1` before it in the same sequence, the one at distance d with a
    probability proportional to 1 / (d + 1): near items say most about each other.
    """
    offsets, count = sequences.offsets, len(sequences.values)
    harmonic = np.concatenate([[0.0], np.cumsum(1 / np.arange(1, reach + 1))])
    readers: NDArray[np.int64] = scratch_array(count, np.int64)
    for part in blocks(count):
        position = np.arange(part.start, part.stop)
        before = position - offsets[np.searchsorted(offsets, position, side="right") - 1]
        choices = np.minimum(before + 1, reach)
        drawn = generator.random(len(position)) * harmonic[choices]
        distance = np.searchsorted(harmonic, drawn, side="right") - 1
        readers[part] = position - np.minimum(distance, choices - 1)
    return readers


def sequential_batches(windows: Windows, size: int) -> Iterator[Batch]:
    """Every window once, sorted by length to reduce padding. For inference, not for training.

    Windows of large data are sorted within runs of consecutive ones, so that a batch reads and writes near places.
    """
    length, targets = windows.end - windows.context, windows.end - windows.first
    run = np.cumsum(targets) // WINDOW if is_large(len(windows.sequences.values)) else np.zeros_like(targets)
    order = np.lexsort((length, run))
    cuts = np.cumsum(targets[order]) // size
    for numbers in np.split(order, np.flatnonzero(np.diff(cuts)) + 1):
        yield windows.batch(numbers)
