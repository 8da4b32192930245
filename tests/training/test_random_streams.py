"""Draws depend on the seed, the phase, the stream, the epoch and the step, and on nothing else."""

import itertools

from pathdex.training.random_streams import RandomStreams, Stream


def test_every_stream_epoch_and_phase_draws_its_own_numbers() -> None:
    keys = itertools.product((0, 1), (0, 1), Stream, (0, 1))
    drawn = [RandomStreams(seed, phase).generator(stream, epoch).random() for seed, phase, stream, epoch in keys]
    assert len(set(drawn)) == len(drawn)


def test_the_same_place_draws_the_same_numbers() -> None:
    streams = RandomStreams(5, 1)
    streams.generator(Stream.ORDER, 0).random(100)
    assert streams.generator(Stream.STEP, 2, 7).random() == RandomStreams(5, 1).generator(Stream.STEP, 2, 7).random()


def test_the_numbers_of_the_streams_are_fixed() -> None:
    """They enter the seed: another number is another model."""
    names = ["ORDER", "BATCHES", "STEP", "ASSIGNMENT", "SCORE_SAMPLES", "PROBE_QUERIES", "TARGETS", "SCORE_TARGETS"]
    assert [stream.name for stream in sorted(Stream)] == names
    assert [int(stream) for stream in sorted(Stream)] == list(range(8))
