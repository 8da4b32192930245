"""The learner of a stream: growth, removal, learning, and resuming to the same bits."""

import numpy as np
import pytest

from pathdex.config import Config
from pathdex.index.online_assignment import PathSizes
from pathdex.index.postings import NO_PATH
from pathdex.training.loop import TrainingState
from pathdex.training.stream.growing import FIRST_CAPACITY
from pathdex.training.stream.learner import Samples, StreamLearner

CONFIG = Config(
    num_nodes=6,
    depth=2,
    paths_per_item=2,
    embedding_dim=8,
    structure_hidden=16,
    candidate_paths=8,
    score_beam=6,
    history_length=4,
    next_items=1,
    neighbours=0,
    dropout=0.0,
    path_size=4,
)


def learner_of(num_items, config=CONFIG):
    learner = StreamLearner(config)
    for slot in range(num_items):
        learner.add_item(slot)
    return learner


def samples(generator, num_items, number=32):
    """Pairs: item v is followed by v + 1 if v is even."""
    first = generator.integers(0, num_items // 2, number) * 2
    return Samples([[int(one)] for one in first], first + 1)


def copied(learner):
    state = learner.state_dict()
    return TrainingState(dict(state.values), {name: np.array(one) for name, one in state.arrays.items()})


def sizes_are_exact(learner):
    counted = PathSizes(learner.paths)
    return [one.tolist() for one in learner.sizes.items()] == [one.tolist() for one in counted.items()]


def test_it_learns_what_follows_and_puts_it_on_likely_paths():
    learner, generator = learner_of(20), np.random.default_rng(0)
    losses = [learner.learn(samples(generator, 20)) for _ in range(150)]
    assert np.mean([one["softmax"] for one in losses[-10:]]) < 0.5 < losses[0]["softmax"]
    assert np.mean([one["structure"] for one in losses[-10:]]) < 0.7 * losses[0]["structure"]
    assert sizes_are_exact(learner)


def test_a_full_m_step_keeps_every_item_on_distinct_paths():
    learner, generator = learner_of(20), np.random.default_rng(0)
    learner.learn(samples(generator, 20))
    figures = learner.full_m_step()
    assert learner.penalty == figures["penalty"]
    assert all(len(set(row)) == 2 and NO_PATH not in row for row in learner.paths.tolist())
    assert sizes_are_exact(learner)


def test_an_empty_learner_has_nothing_to_assign():
    assert StreamLearner(CONFIG).full_m_step() == {}


def test_a_new_item_starts_near_the_items_before_it():
    learner = learner_of(3)
    learner.add_item(3, like=[0, 2])
    near = learner.rows[[0, 2], :-1].mean(axis=0)
    cosine = np.dot(learner.rows[3, :-1], near) / np.linalg.norm(learner.rows[3, :-1]) / np.linalg.norm(near)
    assert cosine > 0.5
    assert learner.paths[3].tolist() == learner.paths[2].tolist()
    assert sizes_are_exact(learner)


def test_the_tables_grow_without_losing_what_was_learned():
    learner, generator = learner_of(20), np.random.default_rng(0)
    learner.learn(samples(generator, 20))
    before = copied(learner)
    learner.add_item(FIRST_CAPACITY + 5)
    for name in ("rows", "first", "second", "codes", "scores", "paths", "counts"):
        assert np.array_equal(learner.state_dict().arrays[f"items.{name}"][:20], before.arrays[f"items.{name}"])
    learner.learn(Samples([[0]], np.array([FIRST_CAPACITY + 5])))
    assert learner.counts[FIRST_CAPACITY + 5] == 1


def test_a_removed_item_leaves_its_paths_and_a_later_one_in_its_slot_starts_from_scratch():
    learner, generator = learner_of(20), np.random.default_rng(0)
    learner.learn(samples(generator, 20))
    learner.remove_item(1)
    assert learner.paths[1].tolist() == [NO_PATH, NO_PATH]
    assert not learner.used[1]
    assert sizes_are_exact(learner)
    learner.full_m_step()
    assert learner.paths[1].tolist() == [NO_PATH, NO_PATH]
    learner.add_item(1)
    arrays = learner.state_dict().arrays
    assert learner.counts[1] == 0
    assert not arrays["items.first"][1].any()
    assert not arrays["items.scores"][1].any()
    assert (arrays["items.codes"][1] == -1).all()
    assert sizes_are_exact(learner)


@pytest.mark.parametrize("full", [False, True])
def test_a_restored_learner_continues_to_the_same_bits(full):
    learner, generator = learner_of(20), np.random.default_rng(0)
    for _ in range(3):
        learner.learn(samples(generator, 20))
    learner.remove_item(4)
    restored = StreamLearner(CONFIG)
    restored.load_state_dict(copied(learner))
    for one in (learner, restored):
        generator = np.random.default_rng(1)
        one.add_item(4)
        one.learn(samples(generator, 20))
        if full:
            one.full_m_step()
        one.learn(samples(generator, 20))
    states = [copied(one) for one in (learner, restored)]
    assert states[0].values == states[1].values
    assert states[0].arrays.keys() == states[1].arrays.keys()
    assert all(np.array_equal(one, states[1].arrays[name]) for name, one in states[0].arrays.items())


def test_a_fixed_penalty_is_used_throughout():
    learner = learner_of(4, CONFIG.replace(penalty=0.25))
    assert learner.current_penalty == 0.25
    learner.full_m_step()
    assert learner.current_penalty == 0.25


def test_a_new_item_starts_beside_full_paths():
    learner = learner_of(0)
    learner.add_item(0)
    for slot in range(1, 9):
        learner.add_item(slot, like=[0])
    assert max(learner.sizes.items()[1]) == CONFIG.path_size
    assert (learner.paths[1] == learner.paths[0]).all()
    assert (learner.paths[8] // CONFIG.num_nodes == learner.paths[0] // CONFIG.num_nodes).any()
    assert sizes_are_exact(learner)


def test_replayed_histories_are_learned_from():
    learner, generator = learner_of(20), np.random.default_rng(0)
    for _ in range(150):
        follows = samples(generator, 20)
        replayed = [[int(one), int(one) + 1] for one in range(0, 20, 2)]
        learner.learn(Samples([[0]], np.array([1]), replayed))
    losses = learner.learn(follows)
    assert losses["softmax"] < 1.0


@pytest.mark.parametrize(("wanted", "steps"), [(1, 2), (2, 3), (3, 4), (9, 5)])
def test_replayed_histories_can_share_several_steps(wanted, steps, monkeypatch):
    learner, seen = learner_of(20), []
    learner.replay_steps = wanted
    step = learner._step
    monkeypatch.setattr(learner, "_step", lambda batch, generator: seen.append(batch) or step(batch, generator))
    learner.learn(Samples([[0]], np.array([1]), [[2, 3], [4, 5], [6, 7], [8, 9]]))
    assert len(seen) == steps
    assert sorted(np.concatenate([batch.targets for batch in seen[:-1]]).tolist()) == list(range(2, 10))


def test_the_rate_scales_the_learning_rates():
    moved = []
    for rate in (1.0, 0.1):
        learner = StreamLearner(CONFIG, rate=rate)
        for slot in range(20):
            learner.add_item(slot)
        before = learner.rows.copy()
        learner.learn(samples(np.random.default_rng(0), 20))
        moved.append(np.abs(learner.rows - before).max())
    assert moved[1] == pytest.approx(0.1 * moved[0], rel=1e-3)


def test_a_new_item_is_on_the_path_that_its_first_user_is_most_likely_led_to():
    learner = StreamLearner(CONFIG)
    for slot in range(20):
        learner.add_item(slot)
    learner.penalty = 1e9  # Every item would rather be alone.
    learner.learn(Samples([[1, 2], [3], [3]], np.array([7, 8, 8])))
    for slot in (7, 8):
        assert learner.table.codes[slot, 0] in learner.paths[slot]
        assert learner.table.scores[slot, 0] == learner.table.scores[slot].max()
    counted = PathSizes(learner.paths)
    assert all(learner.sizes[path] == counted[path] for path in np.unique(learner.paths))
