"""The machine and the installation: versions, cores, devices, memory, disk space, optional packages."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import platform
import shutil
from dataclasses import dataclass
from pathlib import Path

import pathdex
from pathdex.errors import ConfigError, MissingExtraError, Problem

PACKAGES = ("torch", "numpy", "numba", "polars", "pyarrow", "scipy", "safetensors", "rich", "typer")


@dataclass(frozen=True)
class Feature:
    """Functionality that needs an optional package."""

    purpose: str
    package: str
    extra: str

    @property
    def available(self) -> bool:
        return importlib.util.find_spec(self.package) is not None

    @property
    def install(self) -> str:
        """The command that installs it."""
        return f"pip install 'pathdex[{self.extra}]'"

    def require(self) -> None:
        """Raise `MissingExtraError` if the package is not installed."""
        if not self.available:
            raise MissingExtraError(self.package, self.extra, self.purpose)


PLOTTING = Feature(
    "drawing figures (pathdex inspect --plot, pathdex reproduce, pathdex simulate)", "matplotlib", "plot"
)
TENSORBOARD = Feature("writing TensorBoard logs (pathdex train --tensorboard)", "tensorboard", "tensorboard")
MLFLOW = Feature("logging to MLflow (pathdex train --mlflow)", "mlflow", "mlflow")
WANDB = Feature("logging to Weights & Biases (pathdex train --wandb)", "wandb", "wandb")
OPTUNA = Feature("tuning hyper-parameters (pathdex tune)", "optuna", "tune")
SERVER = Feature("the HTTP server (pathdex serve, pathdex explore)", "uvicorn", "server")
MESSAGES = Feature("the HTTP server (pathdex serve, pathdex explore)", "msgspec", "server")
ROUTER = Feature("a router of shards (pathdex serve --shards)", "aiohttp", "router")
CLIENT = Feature("the HTTP client (pathdex.Client)", "urllib3", "client")
REDIS = Feature("a user store or a stream of events in Redis (redis://...)", "redis", "redis")
NATS = Feature("a stream of events in NATS JetStream (nats://...)", "nats", "nats")
KAFKA = Feature("a stream of events in Kafka (kafka://...)", "confluent_kafka", "kafka")
IMPLICIT = Feature("the baseline implicit-als", "implicit", "peers")
USEARCH = Feature("the HNSW graph of the baseline ffm-hnsw", "usearch", "ann")
EXCEL = Feature("reading Excel files", "fastexcel", "excel")
S3 = Feature("reading s3:// URLs", "s3fs", "s3")
GOOGLE_STORAGE = Feature("reading gs:// URLs", "gcsfs", "gs")
HUGGING_FACE = Feature("reading data sets of Hugging Face", "datasets", "hugging-face")
RAY = Feature("Ray clusters (pathdex data prepare --ray, pathdex train --ray)", "ray", "ray")
FEATURES = (
    PLOTTING,
    TENSORBOARD,
    MLFLOW,
    WANDB,
    OPTUNA,
    SERVER,
    MESSAGES,
    CLIENT,
    ROUTER,
    REDIS,
    NATS,
    KAFKA,
    IMPLICIT,
    USEARCH,
    EXCEL,
    S3,
    GOOGLE_STORAGE,
    HUGGING_FACE,
    RAY,
)


@dataclass(frozen=True)
class System:
    """What `pathdex doctor` shows."""

    versions: dict[str, str | None]
    """Of Python, Pathdex and its dependencies; None if one is missing."""
    cores: int
    torch_threads: int
    compiled_threads: int
    devices: tuple[str, ...]
    """The values that `device` accepts."""
    memory: int | None
    """Bytes; None if unknown."""
    disk_free: int
    """Free bytes in `folder`."""
    folder: Path


def examine(folder: Path | None = None) -> System:
    """Examine this machine; disk space is that of `folder`, by default the current folder."""
    import numba
    import torch

    place = Path.cwd() if folder is None else folder
    return System(
        versions={
            "python": platform.python_version(),
            "pathdex": pathdex.__version__,
            **{package: package_version(package) for package in PACKAGES},
        },
        cores=_cores(),
        torch_threads=torch.get_num_threads(),
        compiled_threads=numba.get_num_threads(),
        devices=devices(),
        memory=_memory(),
        disk_free=shutil.disk_usage(place).free,
        folder=place,
    )


def devices() -> tuple[str, ...]:
    """The torch devices of this machine."""
    import torch

    return ("cpu", *(f"cuda:{number}" for number in range(torch.cuda.device_count())))


def check_device(device: str) -> None:
    """Raise `ConfigError` if this machine has no such device."""
    known = devices()
    if device in known or (device == "cuda" and len(known) > 1):
        return
    raise ConfigError([Problem(f"this machine has {', '.join(known)}", "device", device, "choose one of these")])


def package_version(package: str) -> str | None:
    """The installed version, or None."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _cores() -> int:
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1


def _memory() -> int | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None
