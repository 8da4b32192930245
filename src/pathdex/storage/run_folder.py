"""The layout of a run folder.

RUN/run.json                the request: source, split, configuration, options
RUN/split/                  training sequences and held-out users
RUN/items.parquet           titles and other details of items, if the run has them
RUN/checkpoint.safetensors  the training state
RUN/log.jsonl               one line per epoch or round
RUN/LOCK                    held by the process that trains
RUN/recording/              sampled paths by round and sample histories, for the explorer; not part of the model
RUN/bundle/                 the finished model
RUN/shards/                 instead of the bundle, its shards: shard-1, shard-2 ...
"""

from __future__ import annotations

from pathlib import Path

from pathdex.errors import RunError
from pathdex.storage.array_folder import MANIFEST

REQUEST, SPLIT, CHECKPOINT, LOG, BUNDLE = "run.json", "split", "checkpoint.safetensors", "log.jsonl", "bundle"
ITEMS, RECORDING, SHARDS = "items.parquet", "recording", "shards"
STREAM_REQUEST = "stream.json"
"""In the folder of a stream, which also has a bundle once it has published."""
STREAM_STATE, STREAM_HISTORIES, STREAM_START = "state", "histories.sqlite", "start"
"""In the folder of a stream: the folder of its checkpoint, and two parts of it."""


def is_stream(folder: Path) -> bool:
    """Whether a folder is that of a stream, which may still wait for its first event."""
    return (folder / STREAM_REQUEST).exists() or (folder / STREAM_STATE).is_dir()


def unpublished(folder: Path) -> RunError:
    return RunError(f"{folder} is a stream that has not published a model yet; wait for its first events")


def find_bundle(path: str | Path) -> Path:
    """The bundle at `path`: the folder itself, or the bundle of a finished run."""
    folder = Path(path)
    if (folder / MANIFEST).exists():
        return folder
    if (folder / BUNDLE).is_dir():
        return folder / BUNDLE
    if is_stream(folder):
        raise unpublished(folder)
    if (folder / SHARDS).is_dir():
        raise RunError(
            f"{folder} was trained with --sharded-bundle, so it has no whole model; evaluate it with `pathdex evaluate "
            f"{folder}`, and serve each of {folder / SHARDS}/shard-* with `pathdex serve` behind a router"
        )
    if (folder / REQUEST).exists():
        raise RunError(f"{folder} is not finished; continue it with: pathdex train --out {folder} --resume")
    return folder
