"""Requests of training runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from pathdex.errors import ConfigError, RunError
from pathdex.experiments.run_request import RunRequest, TrainOptions, check_resume, make_run_request


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    file = tmp_path / "rows.csv"
    file.write_text("user,item\n" + "".join(f"{n % 10},{n % 7}\n" for n in range(70)))
    return file


def test_a_request_reads_and_splits_the_data(rows: Path) -> None:
    request = make_run_request(
        TrainOptions(rows, {"min_interactions": 2}, {"test_users": 3}, {"epochs": 1}, {"seed": 4, "threads": 1})
    )
    split = request.prepare()
    assert (split.train.num_users, len(split.valid), len(split.test)) == (6, 1, 3)
    assert request.config.epochs == 1
    assert request.options.seed == 4
    assert request.to_dict() == {
        "source": str(rows),
        "reading": {"min_interactions": 2},
        "held_out": {"kind": "users", "test_users": 3},
    }


def test_the_seed_draws_the_held_out_users(rows: Path) -> None:
    given = [TrainOptions(rows, split={"test_users": 3}, options={"seed": seed}) for seed in (1, 1, 2)]
    drawn = [make_run_request(one).prepare().test.users.ids(range(3)) for one in given]
    assert drawn[0] == drawn[1]
    assert drawn[0] != drawn[2]


def test_other_kinds_of_split_have_their_own_options(rows: Path) -> None:
    request = make_run_request(TrainOptions(rows, split={"kind": "leave-last", "k": 2}))
    assert request.prepare().test.truth.lengths.tolist() == [2] * 10


def test_all_problems_are_in_one_error() -> None:
    with pytest.raises(ConfigError) as caught:
        make_run_request(
            TrainOptions(
                None,
                {"min_interactions": 0},
                {"kind": "temporal", "test_users": 5},
                {"depth": 0, "epoch": 1},
                {"seed": -1, "device": "tpu"},
            )
        )
    starts = [problem.split(":")[0].split(";")[0] for problem in map(str, caught.value.problems)]
    assert starts == [
        "epoch=1",
        "depth=0",
        "seed=-1",
        "device='tpu'",
        "min_interactions=0",
        "DATA is missing",
        "test_users=5",
    ]


class TestResume:
    @pytest.fixture
    def request_kept(self, rows: Path) -> dict[str, object]:
        request: RunRequest = make_run_request(
            TrainOptions(rows, {"min_rating": 4.0}, {"test_users": 3}, {"epochs": 1})
        )
        return {"config": request.config.to_dict(), "options": vars(request.options), **request.to_dict()}

    def test_equal_or_absent_options_are_accepted(self, request_kept: dict[str, object], rows: Path) -> None:
        check_resume(request_kept, TrainOptions())
        check_resume(
            request_kept, TrainOptions(rows, {"min_rating": 4.0}, {"test_users": 3}, {"epochs": 1}, {"seed": 0})
        )

    def test_each_difference_is_listed(self, request_kept: dict[str, object], rows: Path) -> None:
        given = TrainOptions(rows.with_name("b.csv"), {}, {"kind": "temporal"}, {"epochs": 2}, {"seed": 7})
        with pytest.raises(RunError) as caught:
            check_resume(request_kept, given)
        text = str(caught.value)
        assert f"DATA='{rows.with_name('b.csv')}', but the run has '{rows}'" in text
        assert "kind='temporal', but the run has 'users'" in text
        assert "epochs=2, but the run has 1; seed=7, but the run has 0" in text
