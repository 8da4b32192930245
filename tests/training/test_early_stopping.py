import numpy as np
import torch

from pathdex.config import Config
from pathdex.model.network import ITEM_ROWS, Network
from pathdex.training.early_stopping import PATIENCE, BestWeights


def network() -> Network:
    torch.manual_seed(0)
    return Network(Config(num_nodes=2, embedding_dim=4), 5)


def test_the_best_epoch_is_kept() -> None:
    trained = network()
    best = BestWeights(trained)
    for epoch, figure in enumerate([0.1, 0.3, 0.2]):
        trained.items.rows.fill_(epoch)
        trained.start.data.fill_(epoch)
        best.update(figure, epoch)
    best.restore()
    assert best.epoch == 1
    assert (trained.export()[ITEM_ROWS] == 1).all()
    assert (trained.start == 1).all()


def test_training_stops_when_nothing_got_better_for_some_epochs() -> None:
    best = BestWeights(network())
    assert not best.stops(10), "nothing was measured"
    best.update(0.5, 2)
    assert [epoch for epoch in range(3, 9) if best.stops(epoch)] == list(range(3 + PATIENCE, 9))


def test_without_figures_the_weights_stay() -> None:
    trained = network()
    before = trained.export()[ITEM_ROWS].copy()
    BestWeights(trained).restore()
    np.testing.assert_array_equal(trained.export()[ITEM_ROWS], before)


def test_the_state_survives_a_checkpoint() -> None:
    trained, again = network(), network()
    best, resumed = BestWeights(trained), BestWeights(again)
    trained.items.rows.fill_(7)
    best.update(0.25, 4)
    trained.items.rows.fill_(8)
    resumed.load_state_dict(best.state_dict())
    assert (resumed.figure, resumed.epoch) == (0.25, 4)
    resumed.restore()
    assert (again.items.rows == 7).all()


def test_an_empty_state_loads() -> None:
    best = BestWeights(network())
    best.load_state_dict(best.state_dict())
    assert best.epoch == -1
