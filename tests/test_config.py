"""Configuration: a `ConfigError` lists every broken rule at once."""

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pathdex.config import (
    PRESETS,
    Config,
    RunOptions,
    default_num_nodes,
    default_structure_batch_size,
    layered_values,
    preset_values,
)
from pathdex.errors import ConfigError


def problems_of(**values: Any) -> tuple[str, ...]:
    with pytest.raises(ConfigError) as caught:
        Config.from_dict(values)
    return tuple(map(str, caught.value.problems))


@pytest.mark.parametrize(
    ("values", "rule"),
    [
        ({"num_nodes": 1}, "num_nodes=1: must be at least 2; K, nodes per layer"),
        ({"depth": 0}, "depth=0: must be at least 1; D, number of layers"),
        ({"depth": 17}, "depth=17: must be at most 16"),
        ({"paths_per_item": 0}, "paths_per_item=0: must be at least 1; J, paths"),
        ({"candidate_paths": 0}, "candidate_paths=0: must be at least 1; S, scored paths"),
        ({"beam_size": 0}, "beam_size=0: must be at least 1; B, default number of paths"),
        ({"beam_size": 2.5}, "beam_size=2.5: must be a whole number"),
        ({"beam_size": True}, "beam_size=True: must be a whole number"),
        ({"beam_size": None}, "beam_size=None: must be set; leave it out for the default 50"),
        ({"beam_size": "50"}, "beam_size='50': must be a whole number"),
        ({"penalty": -1.0}, "penalty=-1.0: must be at least 0.0; alpha"),
        ({"penalty": float("nan")}, "penalty=nan: must be finite"),
        ({"learning_rate": 0.0}, "learning_rate=0.0: must be greater than 0.0"),
        ({"dropout": 1.0}, "dropout=1.0: must be at most 0.95"),
        ({"decay": 1.5}, "decay=1.5: must be at most 1.0; eta"),
        ({"shared_items": "yes"}, "shared_items='yes': must be true or false"),
        ({"encoder": "gro"}, "encoder='gro': must be one of gru, pooled, attention; did you mean 'gru'?"),
        ({"beam": 3}, "beam=3: is not a hyper-parameter"),
        ({"dept": 3}, "dept=3: is not a hyper-parameter; did you mean 'depth'?"),
        ({"num_nodes": 10**400}, "must be at most 2147483647"),
        ({"num_nodes": 2**21, "depth": 3}, "num_nodes=2097152: K^D with depth=3 must stay below 2^62"),
        ({"num_nodes": 2, "depth": 1, "paths_per_item": 3}, "paths_per_item=3: J must be at most K^D=2"),
        ({"candidate_paths": 2, "paths_per_item": 3}, "candidate_paths=2: S must be at least paths_per_item=3"),
        ({"schedule": "paper"}, "start='residual-kmeans': needs trained item vectors"),
    ],
)
def test_error_states_the_broken_rule(values: dict[str, Any], rule: str) -> None:
    problems = problems_of(**values)
    assert len(problems) == 1
    assert rule in problems[0]


def test_error_lists_all_broken_rules() -> None:
    problems = problems_of(depth=0, beam_size=0, encoder="x", unknown=1)
    assert [problem.split("=")[0] for problem in problems] == ["unknown", "encoder", "depth", "beam_size"]


def test_largest_path_code_fits_in_int64() -> None:
    assert Config(num_nodes=2**15, depth=4).num_nodes == 2**15


def test_integers_are_accepted_for_floats() -> None:
    assert Config(path_size=4, penalty=0).path_size == 4


def test_every_parameter_has_help() -> None:
    for spec in (*dataclasses.fields(Config), *dataclasses.fields(RunOptions)):
        assert spec.metadata["help"], spec.name


def test_dict_round_trip() -> None:
    config = Config(depth=2, penalty=0.5)
    assert Config.from_dict(config.to_dict()) == config


def test_replace_returns_a_checked_copy() -> None:
    config = Config()
    assert (config.replace(depth=2).depth, config.depth) == (2, 3)
    with pytest.raises(ConfigError, match="dept=2: is not a hyper-parameter; did you mean 'depth'"):
        config.replace(dept=2)


@pytest.mark.parametrize("name", PRESETS)
def test_presets_are_valid(name: str) -> None:
    config = Config.preset(name)
    assert all(getattr(config, key) == value for key, value in preset_values(name).items())


def test_preset_accepts_overrides() -> None:
    assert Config.preset("paper-movielens-20m", beam_size=10).beam_size == 10


@pytest.mark.parametrize("name", ["papr-amazon-books", 3])
def test_unknown_preset_lists_all_presets(name: Any) -> None:
    with pytest.raises(ConfigError, match=r"preset=.*: must be one of default, small, paper-movielens-20m"):
        Config.preset(name)


def test_unknown_preset_suggests_the_closest() -> None:
    with pytest.raises(ConfigError, match="did you mean 'paper-amazon-books'"):
        Config.preset("papr-amazon-books")


def test_toml_file_overrides_its_preset(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text('preset = "small"\nepochs = 5\n')
    config = Config.from_toml(file, rounds=1)
    assert (config.embedding_dim, config.epochs, config.rounds) == (32, 5, 1)


def test_overrides_win_over_file_over_preset(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text('preset = "small"\nepochs = 5\n')
    assert layered_values("paper-movielens-20m", file, {"epochs": 7})["epochs"] == 7
    assert layered_values("paper-movielens-20m", file)["epochs"] == 5
    assert layered_values("paper-movielens-20m", file)["num_nodes"] == 50
    assert layered_values(file=file)["num_nodes"] == 16
    assert layered_values() == {}


def test_unknown_toml_key_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text("epoch = 5\n")
    with pytest.raises(ConfigError, match="epoch=5: is not a hyper-parameter; did you mean 'epochs'"):
        Config.from_toml(tmp_path / "config.toml")


def test_missing_toml_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(
        ConfigError, match=r"nothing.toml: cannot be read \(No such file or directory\); check the path"
    ):
        Config.from_toml(tmp_path / "nothing.toml")


@pytest.mark.parametrize("content", [b"epochs = ", b"\xff\xfe"])
def test_invalid_toml_is_an_error(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "config.toml").write_bytes(content)
    with pytest.raises(ConfigError, match=r"config.toml: is not TOML \(.*\); fix that line"):
        Config.from_toml(tmp_path / "config.toml")


@pytest.mark.parametrize(
    ("values", "rule"),
    [
        ({"seed": -1}, "seed=-1: must be at least 0"),
        ({"threads": 0}, "threads=0: must be at least 1"),
        ({"device": 3}, "device=3: must be text"),
    ],
)
def test_run_options_are_checked(values: dict[str, Any], rule: str) -> None:
    with pytest.raises(ConfigError, match=rule):
        RunOptions(**values)


@pytest.mark.parametrize(("rows", "size"), [(0, 1024), (574_619, 1149), (1_500_000, 3000), (8_654_619, 4096)])
def test_a_structure_epoch_has_about_500_steps(rows: int, size: int) -> None:
    assert default_structure_batch_size(rows) == size


@given(
    items=st.integers(1, 10**8),
    paths=st.integers(1, 8),
    depth=st.integers(1, 5),
    size=st.floats(1, 100),
)
def test_default_num_nodes_leaves_seven_eighths_of_the_paths_free(
    items: int, paths: int, depth: int, size: float
) -> None:
    nodes = default_num_nodes(items, paths, depth, size)
    in_use = items * paths / size
    assert nodes >= 8
    # The root is computed in floating point, so it may be slightly too small.
    assert nodes**depth >= 8 * in_use * (1 - 1e-9)
    assert nodes == 8 or (nodes - 1) ** depth < 8 * in_use * (1 + 1e-9)
