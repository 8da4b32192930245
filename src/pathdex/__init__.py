"""Deep Retrieval: learn a path index from interactions, retrieve by beam search.

Public names are imported on first use, so `import pathdex` is fast and does not import torch.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0.dev0"

if TYPE_CHECKING:
    from pathdex import errors
    from pathdex.config import Config, RunOptions
    from pathdex.data import (
        Attributes,
        Interactions,
        demo_catalogue,
        describe,
        fetch,
        generate,
        prepare,
        read,
        split_leave_last,
        split_temporal,
        split_users,
        validate,
    )
    from pathdex.data.event_sources import open_source
    from pathdex.evaluation.protocol import Method, evaluate
    from pathdex.experiments.runs import Run
    from pathdex.recommenders.base import Recommender
    from pathdex.recommenders.brute_force import BruteForce
    from pathdex.recommenders.deep_retrieval import DeepRetrieval
    from pathdex.recommenders.item_cf import ItemCF
    from pathdex.recommenders.popularity import Popularity
    from pathdex.recommenders.query import Query
    from pathdex.recommenders.registry import load
    from pathdex.recommenders.stream_trainer import StreamTrainer
    from pathdex.server.client import Client
    from pathdex.training.callbacks import Callback
    from pathdex.training.stream.options import StreamOptions

__all__ = [
    "Attributes",
    "BruteForce",
    "Callback",
    "Client",
    "Config",
    "DeepRetrieval",
    "Interactions",
    "ItemCF",
    "Method",
    "Popularity",
    "Query",
    "Recommender",
    "Run",
    "RunOptions",
    "StreamOptions",
    "StreamTrainer",
    "__version__",
    "demo_catalogue",
    "describe",
    "errors",
    "evaluate",
    "fetch",
    "generate",
    "load",
    "open_source",
    "prepare",
    "read",
    "split_leave_last",
    "split_temporal",
    "split_users",
    "validate",
]

_HOMES = {
    "Attributes": "pathdex.data",
    "BruteForce": "pathdex.recommenders.brute_force",
    "Callback": "pathdex.training.callbacks",
    "Client": "pathdex.server.client",
    "Config": "pathdex.config",
    "DeepRetrieval": "pathdex.recommenders.deep_retrieval",
    "Interactions": "pathdex.data",
    "ItemCF": "pathdex.recommenders.item_cf",
    "Method": "pathdex.evaluation.protocol",
    "Popularity": "pathdex.recommenders.popularity",
    "Query": "pathdex.recommenders.query",
    "Recommender": "pathdex.recommenders.base",
    "Run": "pathdex.experiments.runs",
    "RunOptions": "pathdex.config",
    "StreamOptions": "pathdex.training.stream.options",
    "StreamTrainer": "pathdex.recommenders.stream_trainer",
    "describe": "pathdex.data",
    "evaluate": "pathdex.evaluation.protocol",
    "fetch": "pathdex.data",
    "generate": "pathdex.data",
    "load": "pathdex.recommenders.registry",
    "demo_catalogue": "pathdex.data",
    "open_source": "pathdex.data.event_sources",
    "prepare": "pathdex.data",
    "read": "pathdex.data",
    "split_leave_last": "pathdex.data",
    "split_temporal": "pathdex.data",
    "split_users": "pathdex.data",
    "validate": "pathdex.data",
}


def __getattr__(name: str) -> Any:
    if name == "errors":
        return importlib.import_module("pathdex.errors")
    if name not in _HOMES:
        raise AttributeError(f"module 'pathdex' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
