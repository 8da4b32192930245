"""Deep Retrieval: learn a path index from interactions, retrieve by beam search.

Names are imported when they are first used, so `import pathdex` costs nothing and does not import torch.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0.dev0"

if TYPE_CHECKING:
    from pathdex import errors
    from pathdex.baselines.brute_force import BruteForce
    from pathdex.baselines.item_cf import ItemCF
    from pathdex.baselines.popularity import Popularity
    from pathdex.config import Config, RunOptions
    from pathdex.data import (
        Attributes,
        Interactions,
        describe,
        fetch,
        generate,
        planted_catalogue,
        read,
        split_leave_last,
        split_temporal,
        split_users,
        validate,
    )
    from pathdex.estimators import load
    from pathdex.evaluation.protocol import Method, evaluate
    from pathdex.retrieval.contract import Query, Recommender
    from pathdex.retrieval.recommender import DeepRetrieval
    from pathdex.retrieval.runs import Run
    from pathdex.server.client import Client

__all__ = [
    "Attributes",
    "BruteForce",
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
    "__version__",
    "describe",
    "errors",
    "evaluate",
    "fetch",
    "generate",
    "load",
    "planted_catalogue",
    "read",
    "split_leave_last",
    "split_temporal",
    "split_users",
    "validate",
]

_HOMES = {
    "Attributes": "pathdex.data",
    "BruteForce": "pathdex.baselines.brute_force",
    "Client": "pathdex.server.client",
    "Config": "pathdex.config",
    "DeepRetrieval": "pathdex.retrieval.recommender",
    "Interactions": "pathdex.data",
    "ItemCF": "pathdex.baselines.item_cf",
    "Method": "pathdex.evaluation.protocol",
    "Popularity": "pathdex.baselines.popularity",
    "Query": "pathdex.retrieval.contract",
    "Recommender": "pathdex.retrieval.contract",
    "Run": "pathdex.retrieval.runs",
    "RunOptions": "pathdex.config",
    "describe": "pathdex.data",
    "evaluate": "pathdex.evaluation.protocol",
    "fetch": "pathdex.data",
    "generate": "pathdex.data",
    "load": "pathdex.estimators",
    "planted_catalogue": "pathdex.data",
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
