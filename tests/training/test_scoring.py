import itertools

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from pathdex.index.item_scores import score_item_paths
from pathdex.index.paths import decode_paths, encode_paths
from pathdex.index.scores import ScoreTable
from pathdex.kernels.structure import StructureWeights
from pathdex.model.structure import MLPStructure, path_log_probabilities
from pathdex.training.position_vectors import PositionVectors
from pathdex.training.scoring import (
    ItemSamples,
    collect_item_scores,
    score_items,
    score_paths,
    stream_scores,
)


def make() -> tuple[MLPStructure, torch.Tensor]:
    torch.manual_seed(0)
    return MLPStructure(4, 3, 2, 8, 3), torch.randn(5, 6, 4)  # (item, sample, dim)


def test_wide_beam_gives_exact_sums_over_samples() -> None:
    structure, users = make()
    nodes, scores = score_items(structure, users, beam_size=9, keep=9)
    paths = torch.tensor(list(itertools.product(range(3), repeat=2)))
    each = path_log_probabilities(structure, users.flatten(0, 1), paths.expand(30, -1, -1)).exp()
    expected = each.view(5, 6, 9).sum(dim=1)  # (item, path)
    found = expected.gather(1, nodes[..., 0] * 3 + nodes[..., 1])
    torch.testing.assert_close(scores, found)
    torch.testing.assert_close(scores, expected.sort(dim=1, descending=True).values)


@settings(max_examples=25, deadline=None)
@given(
    nodes=st.integers(2, 20),
    depth=st.integers(1, 3),
    samples=st.integers(1, 30),
    beam=st.integers(1, 12),
    seed=st.integers(0, 99),
)
def test_compiled_scores_agree_with_torch(nodes: int, depth: int, samples: int, beam: int, seed: int) -> None:
    torch.manual_seed(seed)
    structure = MLPStructure(4, nodes, depth, 8, 3)
    users = torch.randn(3, samples, 4)
    expected_nodes, expected = score_items(structure, users, beam, keep=6)
    with torch.no_grad():
        sums = structure.begin(users).numpy()
    own = np.random.default_rng(seed).integers(nodes, size=(3, 2, depth))
    weights = StructureWeights.from_layers(*structure.layer_arrays())
    codes, scores, of_own = score_item_paths(sums, weights, beam, 6, own, negligible=0.0)
    number = expected.shape[1]
    np.testing.assert_allclose(scores[:, :number], expected.numpy(), rtol=2e-4)
    assert (codes[:, number:] == -1).all()
    same = codes[:, :number] == encode_paths(expected_nodes.numpy(), nodes)
    assert same.mean() > 0.9  # all but ties
    np.testing.assert_allclose(of_own, score_paths(structure, users, own), rtol=1e-4)

    codes, scores, _ = score_item_paths(sums, weights, beam, 6, own, negligible=0.5)
    exact = score_paths(structure, users, decode_paths(np.maximum(codes, 0), nodes, depth))
    assert (scores <= exact * 1.0001)[codes >= 0].all()  # skipped samples only lower the score


def test_drawn_samples_belong_to_their_item_and_respect_the_limit() -> None:
    targets = np.array([3, 1, 1, 3, 1, 0, 1, 1], np.int32)
    drawn = {
        int(item): places.tolist()
        for items, samples in ItemSamples(targets, 5).draw(3, np.random.default_rng(0))
        for item, places in zip(items, samples, strict=True)
    }
    assert sorted(drawn) == [0, 1, 3]
    assert {item: len(places) for item, places in drawn.items()} == {0: 1, 1: 3, 3: 2}
    for item, places in drawn.items():
        assert set(targets[places]) == {item}
        assert len(set(places)) == len(places)


def collect(paths: np.ndarray, candidates: int, beam_size: int) -> ScoreTable:
    structure, users = make()
    table = ScoreTable.empty(7, candidates)
    collect_item_scores(
        structure,
        PositionVectors(users.flatten(0, 1).numpy()),
        ItemSamples(np.repeat(np.arange(5, dtype=np.int32), 6), 7),
        table,
        paths,
        beam_size=beam_size,
        max_samples=6,
        generator=np.random.default_rng(0),
        device=torch.device("cpu"),
    )
    return table


def test_only_items_with_samples_are_scored() -> None:
    structure, users = make()
    nodes, scores = score_items(structure, users, beam_size=9, keep=4)
    best = np.zeros((7, 1), np.int64)
    best[:5, 0] = encode_paths(nodes.numpy(), 3)[:, 0]
    table = collect(best, candidates=5, beam_size=9)
    np.testing.assert_allclose(table.scores[:5, :4], scores.numpy(), rtol=1e-5)
    assert (table.codes[5:] == -1).all()


def test_current_paths_are_always_scored() -> None:
    structure, users = make()
    nodes, scores = score_items(structure, users, beam_size=9, keep=9)
    worst = np.zeros((7, 2), np.int64)
    worst[:5] = encode_paths(nodes.numpy(), 3)[:, -2:]
    table = collect(worst, candidates=3, beam_size=1)
    assert table.codes[:5, 1:].tolist() == worst[:5].tolist()
    np.testing.assert_allclose(table.scores[:5, 1:], scores.numpy()[:, -2:], rtol=1e-4)


def test_streaming_without_decay_equals_item_centred_scores() -> None:
    structure, users = make()
    table = ScoreTable.empty(5, 9)
    targets = np.repeat(np.arange(5), 6)
    stream_scores(structure, users.flatten(0, 1), targets, table, beam_size=9, decay=1.0)
    _, scores = score_items(structure, users, beam_size=9, keep=9)
    np.testing.assert_allclose(np.sort(table.scores)[:, ::-1], scores.numpy(), rtol=1e-5)


def test_samples_are_grouped_in_blocks_as_in_one_sort(monkeypatch):
    targets = np.random.default_rng(0).integers(0, 6, 50).astype(np.int32)
    monkeypatch.setattr("pathdex.training.scoring.BLOCK", 7)
    samples = ItemSamples(targets, 7)
    assert samples.order.tolist() == np.argsort(targets, kind="stable").tolist()
    assert np.diff(samples.offsets).tolist() == np.bincount(targets, minlength=7).tolist()
