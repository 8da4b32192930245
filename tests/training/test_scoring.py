import itertools

import numpy as np
import torch

from pathdex.index.scores import ScoreTable
from pathdex.model.structure import MLPStructure, path_log_probabilities
from pathdex.training.scoring import ItemSamples, collect_item_scores, score_items, stream_scores


def make() -> tuple[MLPStructure, torch.Tensor]:
    torch.manual_seed(0)
    return MLPStructure(4, 3, 2, 8, 3), torch.randn(5, 6, 4)  # (item, sample, dim)


def test_a_wide_beam_gives_the_exact_sums_over_an_items_samples() -> None:
    structure, users = make()
    nodes, scores = score_items(structure, users, beam_size=9, keep=9)
    paths = torch.tensor(list(itertools.product(range(3), repeat=2)))
    each = path_log_probabilities(structure, users.flatten(0, 1), paths.expand(30, -1, -1)).exp()
    expected = each.view(5, 6, 9).sum(dim=1)  # (item, path)
    found = expected.gather(1, nodes[..., 0] * 3 + nodes[..., 1])
    torch.testing.assert_close(scores, found)
    torch.testing.assert_close(scores, expected.sort(dim=1, descending=True).values)


def test_samples_belong_to_their_item_and_are_at_most_as_many_as_asked() -> None:
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


def test_collecting_fills_the_rows_of_items_with_samples() -> None:
    structure, users = make()
    targets = np.repeat(np.arange(5, dtype=np.int32), 6)
    table = ScoreTable.empty(7, 4)
    collect_item_scores(
        structure,
        users.flatten(0, 1).numpy(),
        ItemSamples(targets, 7),
        table,
        beam_size=9,
        most=6,
        generator=np.random.default_rng(0),
        device=torch.device("cpu"),
        width=8,
    )
    _, scores = score_items(structure, users, beam_size=9, keep=4)
    np.testing.assert_allclose(table.scores[:5], scores.numpy(), rtol=1e-5)
    assert (table.codes[5:] == -1).all()


def test_streaming_without_decay_and_with_room_sums_like_item_centred_scores() -> None:
    structure, users = make()
    table = ScoreTable.empty(5, 9)
    targets = np.repeat(np.arange(5), 6)
    stream_scores(structure, users.flatten(0, 1), targets, table, beam_size=9, decay=1.0)
    _, scores = score_items(structure, users, beam_size=9, keep=9)
    np.testing.assert_allclose(np.sort(table.scores)[:, ::-1], scores.numpy(), rtol=1e-5)
