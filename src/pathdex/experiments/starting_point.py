"""A finished run or a saved model as the start of another run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pathdex.config import Config
from pathdex.data.splits import Split
from pathdex.errors import RunError
from pathdex.experiments.runs import Run
from pathdex.recommenders.deep_retrieval import DeepRetrieval
from pathdex.storage.run_folder import REQUEST, find_bundle
from pathdex.training.warm_start import SHAPE


@dataclass(frozen=True)
class StartingPoint:
    """A model, and what a run that starts from it takes over unless it is told otherwise."""

    path: Path
    model: DeepRetrieval
    config: Mapping[str, Any]
    reading: Mapping[str, Any]
    split: Split | None
    """The split of users that the model was trained on, if it is known."""

    @classmethod
    def open(cls, path: str | Path) -> StartingPoint:
        """Open a run folder or a bundle; `RunError` if it has no finished model."""
        path = Path(path)
        if not (path / REQUEST).exists():
            model = DeepRetrieval.load(find_bundle(path))
            config = {name: getattr(model.config, name) for name in SHAPE}
            return cls(path, model, config, {} if model.reading is None else model.reading.to_dict(), None)
        run = Run.open(path)
        if not run.finished:
            raise RunError(f"{path} is not finished; finish it first with: pathdex train --out {path} --resume")
        model, request = run.model(), run.request
        config = Config.from_stored(request["config"]).to_dict()
        held_out = request.get("held_out", {}).get("kind") == "users"
        shape = {name: getattr(model.config, name) for name in SHAPE}
        return cls(path, model, {**config, **shape}, request.get("reading", {}), run.split() if held_out else None)
