"""Tasks in this process and on Ray."""

from __future__ import annotations

import importlib.util
import socket

import numpy as np
import polars as pl
import pytest

from pathdex.data import prepare
from pathdex.data.ray_runner import runner
from pathdex.errors import ConfigError

HAS_RAY = importlib.util.find_spec("ray") is not None and importlib.util.find_spec("cloudpickle") is not None
needs_ray = pytest.mark.skipif(not HAS_RAY, reason="needs the extra ray")


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def test_tasks_in_this_process_give_results_in_order():
    reports: list[int] = []
    with runner(None) as run:
        assert list(run(lambda task, report: (report(task), -task)[1], [3, 1, 2], reports.append)) == [-3, -1, -2]
    assert reports == [3, 1, 2]


@needs_ray
def test_an_address_that_does_not_answer_leaves_no_files(tmp_path):
    pl.DataFrame({"user": [1], "item": [2]}).write_csv(tmp_path / "log.csv")
    with pytest.raises(ConfigError, match=r"does not answer .*Connection refused.*; check that the cluster runs"):
        prepare(tmp_path / "log.csv", tmp_path / "out", ray=f"127.0.0.1:{free_port()}")
    assert [file.name for file in tmp_path.iterdir()] == ["log.csv"]


@needs_ray
@pytest.mark.slow
# Ray warns of its own settings.
@pytest.mark.filterwarnings("ignore::Warning")
def test_ray_writes_the_same_files(tmp_path):
    generator = np.random.default_rng(0)
    frame = pl.DataFrame({name: generator.integers(0, 50, 3000) for name in ("user", "item", "time")})
    (tmp_path / "in").mkdir()
    for number in range(3):
        frame[1000 * number : 1000 * (number + 1)].write_parquet(tmp_path / "in" / f"{number}.parquet")
    calls: list[tuple[int, int | None]] = []
    options = {"shard_rows": 500, "min_interactions": 50}
    here = prepare(tmp_path / "in", tmp_path / "here", **options)
    there = prepare(
        tmp_path / "in", tmp_path / "there", ray="local", **options, progress=lambda *call: calls.append(call)
    )
    assert calls[-1] == (6000, 6000)
    for file in here.iterdir():
        assert file.read_bytes() == (there / file.name).read_bytes()
