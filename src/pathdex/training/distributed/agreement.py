"""Before the first step, all workers compare what they are about to do."""

from __future__ import annotations

import hashlib
import json
import platform
from typing import Any

import numpy as np
import torch

import pathdex
from pathdex.config import Config, RunOptions
from pathdex.data.interactions import Interactions
from pathdex.data.splits import Queries
from pathdex.errors import WorkerError
from pathdex.training.distributed.group import Group


def facts(config: Config, options: RunOptions, data: Interactions, held_out: Queries | None) -> dict[str, Any]:
    """What must be the same everywhere."""
    queries = [] if held_out is None else [held_out.history.values, held_out.truth.values]
    return {
        "version of pathdex": pathdex.__version__,
        "version of torch": torch.__version__,
        "version of numpy": np.__version__,
        "version of Python": ".".join(platform.python_version_tuple()[:2]),
        "configuration": _digest(json.dumps(config.to_dict(), sort_keys=True).encode()),
        "seed": options.seed,
        "number of items": data.num_items,
        "data": _digest(data.sequences.values, data.sequences.offsets, *queries),
    }


def check_agreement(group: Group, own: dict[str, Any]) -> None:
    """Raise the same `WorkerError` on all workers if one of them has other data, settings or versions."""
    everyone = group.describe(own)
    differing = [
        f"worker {rank} has another {name} ({found.get(name)!r}, worker 0 {value!r})"
        for rank, found in enumerate(everyone)
        for name in {**everyone[0], **found}
        if found.get(name) != (value := everyone[0].get(name))
    ]
    if differing:
        raise WorkerError(f"{'; '.join(differing)}; give all workers the same data, options and packages")


def _digest(*parts: Any) -> str:
    content = hashlib.blake2b(digest_size=12)
    for part in parts:
        content.update(part if isinstance(part, bytes) else np.ascontiguousarray(part).view(np.uint8).data)
    return content.hexdigest()
