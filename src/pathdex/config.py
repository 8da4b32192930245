"""Hyper-parameters, kept apart from run options.

`Config` holds the hyper-parameters of Deep Retrieval and is saved in the bundle. `EncoderConfig` is the part of it that
models without an index share. `RunOptions` holds the device, the seed and the number of threads.
"""

from __future__ import annotations

import dataclasses
import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from typing_extensions import Self

from pathdex.errors import ConfigError, Problem, did_you_mean
from pathdex.parameters import SearchChoices, SearchRange, check_fields, from_keywords, parameter

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_BEFORE = {
    "bias_start": "zero",
    "popularity_weight": 0.0,
    "neighbour_smoothing": 0.02,
    "neighbour_share": 0.2,
    "neighbour_recency": 0.0,
}
"""What earlier versions did where they had no such hyper-parameter."""
MAX_PATHS = 2**62
"""Upper bound of K^D: a path is one int64 code."""


@dataclass(frozen=True, kw_only=True)
class EncoderConfig:
    """Hyper-parameters of the encoder, the item vectors and the reranker, and of their training."""

    encoder: str = parameter("gru", "user encoder", choices=("gru", "pooled", "attention"))
    embedding_dim: int = parameter(64, "dimension of item and user vectors", low=1, search=SearchChoices((32, 64, 128)))
    history_length: int = parameter(69, "number of latest items the encoder reads", low=1)
    shared_items: bool = parameter(True, "use one vector per item for both encoding and scoring")
    dropout: float = parameter(
        0.5, "dropout on the encoder's item vectors", low=0.0, high=0.95, search=SearchRange(0.0, 0.7)
    )
    reranker: str = parameter("softmax", "reranker loss", choices=("softmax", "logistic"))
    softmax: str = parameter(
        "auto",
        "full or sampled softmax loss; auto: full for small catalogues",
        choices=("auto", "full", "sampled"),
    )
    negatives: str = parameter(
        "uniform",
        "distribution of sampled negatives; mixed: half uniform, half in-batch",
        choices=("uniform", "popularity", "in-batch", "mixed"),
    )
    num_negatives: int = parameter(1000, "sampled negatives per batch", low=1)
    next_items: int | None = parameter(
        None,
        "targets: one of this many next items, near ones more often; 1: always the next item; default: chosen on "
        "held-out data by Deep Retrieval, 1 for other models",
        low=1,
        high=10_000,
    )
    bias_start: str = parameter(
        "log-count",
        "initial item biases: the centred log of the item's count, or zero",
        choices=("log-count", "zero"),
    )
    epochs: int = parameter(10, "encoder epochs (warm schedule) or joint epochs (paper schedule)", low=0)
    batch_size: int = parameter(
        1024, "interactions per encoder step", low=1, search=SearchChoices((256, 512, 1024, 2048))
    )
    learning_rate: float = parameter(
        3e-3, "learning rate of the encoder (Adam)", above=0.0, search=SearchRange(5e-4, 1e-2, log=True)
    )
    item_learning_rate: float = parameter(
        0.03,
        "learning rate of item vectors (lazy Adam); higher, since a step updates only the rows it touches",
        above=0.0,
        search=SearchRange(3e-3, 0.1, log=True),
    )
    weight_decay: float = parameter(0.0, "L2 weight decay of dense weights", low=0.0)

    def __post_init__(self) -> None:
        check_fields(self, self._cross_checks)

    def _cross_checks(self) -> list[Problem]:
        return []

    def replace(self, **changes: Any) -> Self:
        """A copy with some fields changed; raises `ConfigError` for unknown names."""
        return type(self).from_dict({**self.to_dict(), **changes})

    def to_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """From values by name; raises one `ConfigError` that lists unknown names and all other problems."""
        return from_keywords(cls, values)

    @classmethod
    def from_stored(cls, values: Mapping[str, Any]) -> Self:
        """From the values in a bundle or a run, perhaps of a version that lacked some hyper-parameters."""
        names = {spec.name for spec in dataclasses.fields(cls)}
        return cls.from_dict({**{name: value for name, value in _BEFORE.items() if name in names}, **values})


@dataclass(frozen=True, kw_only=True)
class Config(EncoderConfig):
    """Hyper-parameters of Deep Retrieval. Letters are those of the paper."""

    # Structure.
    num_nodes: int | None = parameter(None, "K, nodes per layer; default: derived from the catalogue size", low=2)
    depth: int = parameter(3, "D, number of layers", low=1, high=16)
    paths_per_item: int = parameter(3, "J, paths per item", low=1, high=64, search=SearchRange(2, 5))
    structure: str = parameter("mlp", "layer network", choices=("mlp", "recurrent"))
    structure_hidden: int = parameter(128, "hidden units of the layer network", low=1)
    node_dim: int = parameter(32, "dimension of node embeddings", low=1)

    # E-step.
    schedule: str = parameter(
        "warm",
        "warm: train the encoder, then run EM; paper: joint epochs, then EM with the softmax frozen",
        choices=("warm", "paper"),
    )
    rounds: int = parameter(4, "EM rounds after these epochs; each is an E-step and an M-step", low=0)
    structure_epochs: int = parameter(2, "structure epochs per E-step", low=1)
    final_epochs: int = parameter(2, "structure epochs on the final paths", low=0)
    structure_batch_size: int | None = parameter(
        None, "interactions per structure step; default: derived from the number of interactions", low=1
    )
    structure_learning_rate: float = parameter(3e-3, "learning rate of the structure model (Adam)", above=0.0)

    # M-step.
    start: str = parameter(
        "residual-kmeans",
        "initial paths: random (paper), or residual k-means codes of the item vectors",
        choices=("random", "residual-kmeans"),
    )
    candidate_paths: int = parameter(50, "S, scored paths kept per item", low=1)
    scoring: str = parameter(
        "item",
        "item: one beam per item over its summed samples; streaming: one beam per sample (paper)",
        choices=("item", "streaming"),
    )
    score_beam: int = parameter(15, "beam size for collecting scores", low=1)
    score_samples: int = parameter(16, "samples scored per item and round", low=1)
    decay: float = parameter(0.999, "eta, decay of streaming scores", above=0.0, high=1.0)
    descent_iterations: int = parameter(4, "T, coordinate descent iterations", low=1)
    path_size: float = parameter(
        16.0,
        "target: items on the path of an average item; determines the penalty",
        low=1.0,
        search=SearchRange(4.0, 64.0, log=True),
    )
    candidates_per_query: int | None = parameter(
        None, "target instead of `path_size`: candidates of a query at `beam_size`", low=1
    )
    penalty: float | None = parameter(None, "alpha, fixed; default: derived from `path_size`", low=0.0)
    penalty_degree: int = parameter(4, "degree of the penalty f(|c|) = |c|^degree / degree", low=2, high=8)

    # Retrieval.
    beam_size: int = parameter(50, "B, default number of paths per query", low=1)
    path_weight: float | None = parameter(
        None,
        "weight of the log path probability in the final score; default: fitted on held-out data",
        low=0.0,
        high=1000.0,
    )
    popularity_weight: float | None = parameter(
        None,
        "weight of the log item count, added to the item bias after training; default: fitted on held-out data",
        low=-1000.0,
        high=1000.0,
    )
    neighbours: int | None = parameter(
        None,
        "co-occurrence neighbours per item; 0: off; default: 50 if they help on held-out data, else 0",
        low=0,
        high=10_000,
    )
    neighbour_weight: float | None = parameter(
        None,
        "weight of the log neighbour similarity in the final score; default: fitted on held-out data",
        low=0.0,
        high=1000.0,
    )
    neighbour_smoothing: float | None = parameter(
        None, "added to similarities before the logarithm; default: fitted on held-out data", low=1e-6
    )
    neighbour_share: float | None = parameter(
        None, "share of the candidates that neighbours provide; default: fitted on held-out data", low=0.0, high=1.0
    )
    neighbour_recency: float | None = parameter(
        None,
        "the similarity to an item followed by a others in the history counts (1 + a)^-recency; default: fitted on "
        "held-out data",
        low=0.0,
        high=10.0,
    )

    def _cross_checks(self) -> list[Problem]:
        problems = []
        if self.start == "residual-kmeans" and self.schedule == "paper":
            problems.append(
                Problem(
                    "needs trained item vectors, but schedule='paper' starts untrained",
                    "start",
                    self.start,
                    "choose start='random' or schedule='warm'",
                )
            )
        if self.candidates_per_query is not None and self.penalty is not None:
            problems.append(
                Problem(
                    f"cannot be reached with a fixed penalty={self.penalty}",
                    "candidates_per_query",
                    self.candidates_per_query,
                    "set only one of them",
                )
            )
        if self.candidate_paths < self.paths_per_item:
            problems.append(
                Problem(
                    f"S must be at least paths_per_item={self.paths_per_item}, so that an item can fill its paths",
                    "candidate_paths",
                    self.candidate_paths,
                    "raise candidate_paths or lower paths_per_item",
                )
            )
        if self.num_nodes is not None:
            paths = self.num_nodes**self.depth
            if paths > MAX_PATHS:
                problems.append(
                    Problem(
                        f"K^D with depth={self.depth} must stay below 2^62, since a path is one integer",
                        "num_nodes",
                        self.num_nodes,
                        "lower num_nodes or depth",
                    )
                )
            if paths < self.paths_per_item:
                problems.append(
                    Problem(
                        f"J must be at most K^D={paths}",
                        "paths_per_item",
                        self.paths_per_item,
                        "raise num_nodes or depth, or lower paths_per_item",
                    )
                )
        return problems

    @classmethod
    def from_toml(cls, path: str | Path, **overrides: Any) -> Self:
        """Read a flat TOML file. The key `preset` names a preset to start from."""
        return cls.from_dict(layered_values(file=path, overrides=overrides))

    @classmethod
    def preset(cls, name: str, **overrides: Any) -> Self:
        """A preset from `PRESETS`, with overrides."""
        return cls.from_dict({**preset_values(name), **overrides})


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """How a model is run. Not part of the model."""

    device: str = parameter("cpu", "torch device: cpu, cuda, cuda:0, ...")
    seed: int = parameter(0, "random seed", low=0, high=2**63 - 1)
    threads: int | None = parameter(None, "number of threads; default: all cores", low=1)

    def __post_init__(self) -> None:
        check_fields(self)


_PAPER = {
    "schedule": "paper",
    "epochs": 2,
    "rounds": 1,
    "structure_epochs": 1,
    "final_epochs": 1,
    "structure_batch_size": 4096,
    "start": "random",
    "scoring": "streaming",
    "shared_items": False,
    "dropout": 0.0,
    "next_items": 1,
    "bias_start": "zero",
    "path_weight": 0.0,
    "popularity_weight": 0.0,
    "neighbours": 0,
}

PRESETS: dict[str, dict[str, Any]] = {
    "default": {},
    "small": {"embedding_dim": 32, "structure_hidden": 64, "num_nodes": 16, "epochs": 8, "rounds": 4},
    "paper-movielens-20m": {**_PAPER, "num_nodes": 50, "beam_size": 25, "penalty": 3e-5},
    "paper-amazon-books": {
        **_PAPER,
        "num_nodes": 100,
        "beam_size": 50,
        "penalty": 3e-7,
        "softmax": "sampled",
    },
}
"""Named sets of values. The `paper-*` presets are the settings of Section 4."""


def preset_values(name: str) -> dict[str, Any]:
    """The values that a preset sets."""
    if not isinstance(name, str) or name not in PRESETS:
        rule = f"must be one of {', '.join(PRESETS)}{did_you_mean(name, PRESETS)}"
        raise ConfigError([Problem(rule, "preset", name)])
    return PRESETS[name]


def layered_values(
    preset: str | None = None, file: str | Path | None = None, overrides: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Merge a preset, a TOML file and overrides; later ones win.

    The argument `preset` wins over the key `preset` of the file.
    """
    values = {} if file is None else _read_toml(Path(file))
    inner = values.pop("preset", None)
    name = inner if preset is None else preset
    return {**({} if name is None else preset_values(name)), **values, **(overrides or {})}


def default_num_nodes(num_items: int, paths_per_item: int, depth: int, path_size: float) -> int:
    """K such that about an eighth of the K^D paths are in use at the target path size, which leaves EM room to move."""
    wanted = 8 * num_items * paths_per_item / path_size
    return max(8, math.ceil(math.pow(wanted, 1 / depth)))


def default_structure_batch_size(num_interactions: int) -> int:
    """About 500 steps per epoch: on small data, large batches leave the structure model underfitted."""
    return min(max(num_interactions // 500, 1024), 4096)


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError([f"config file {path}: cannot be read ({error.strerror}); check the path"]) from error
    except ValueError as error:
        raise ConfigError([f"config file {path}: is not TOML ({error}); fix that line"]) from error
