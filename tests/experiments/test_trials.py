"""Results of a study."""

import pytest

from pathdex.errors import RunError
from pathdex.experiments.trials import TuneProgress, TuneResult, TuneTrial

TRIALS = (
    TuneTrial(0, "finished", {"dropout": 0.5}, 0.10, 1.0),
    TuneTrial(1, "finished", {"dropout": 0.2}, 0.12, 1.0),
    TuneTrial(2, "pruned", {"dropout": 0.0}, None, 0.5),
    TuneTrial(3, "finished", {"dropout": 0.3}, 0.12, 1.0),
)


def test_the_earliest_of_the_best_trials_is_selected() -> None:
    found = TuneResult(TRIALS, {"depth": 2})
    assert found.best.number == 1
    assert (found.config.dropout, found.config.depth) == (0.2, 2)
    assert found.to_dict()["best"] == 1
    frame = found.to_frame()
    assert frame.columns == ["trial", "state", "f_measure", "seconds", "dropout"]
    assert frame["f_measure"].to_list() == [0.10, 0.12, None, 0.12]


def test_without_a_finished_trial_there_is_no_best_one() -> None:
    with pytest.raises(RunError, match="no trial is finished yet; allow more trials or minutes"):
        _ = TuneResult(TRIALS[2:3]).best
    with pytest.raises(RunError, match="no trial is finished: out of memory"):
        _ = TuneResult((TuneTrial(0, "failed", {}, None, 0.1, "out of memory"),)).best
    assert TuneResult(TRIALS[2:3]).to_dict()["best"] is None


def test_all_methods_of_a_follower_are_optional() -> None:
    one = TuneProgress()
    one.on_begin(0, 2)
    one.on_trial_begin(0, {})
    one.on_epoch({})
    one.on_trial_end(TRIALS[0], None)
