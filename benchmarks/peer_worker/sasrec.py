"""RecTools' SASRec at work, for `benchmarks.peers`: trains epoch by epoch and writes its answers after each.

    python benchmarks/peer_worker/sasrec.py FOLDER

Runs in an environment of its own, without Pathdex, and in a folder of its own: Python looks for modules beside the
script, where `benchmarks/http.py` would hide the standard library's `http`.

FOLDER holds `request.json`, `train.npz` and `history.npz` (arrays user, item, place). After each epoch the folder gets
`answers-E.npy`, (user, n) item codes padded with -1, and standard output a JSON line with the seconds so far.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import rectools
import torch
from rectools import Columns
from rectools.dataset import Dataset
from rectools.models import SASRecModel

UNKNOWN = -1


def main(folder: Path) -> None:
    request = json.loads((folder / "request.json").read_text())
    torch.set_num_threads(request["threads"])
    torch.manual_seed(request["seed"])
    np.random.seed(request["seed"])
    train, history = (_dataset(folder / f"{name}.npz") for name in ("train", "history"))
    model = SASRecModel(**request["parameters"], epochs=1, recommend_n_threads=request["threads"])
    _say({"library": f"RecTools {rectools.__version__}", "torch": torch.__version__})
    wall = busy = 0.0
    for epoch in range(1, request["epochs"] + 1):
        started, before = time.monotonic(), time.process_time()
        model.fit_partial(train, min_epochs=1, max_epochs=1)
        wall, busy = wall + time.monotonic() - started, busy + time.process_time() - before
        np.save(folder / f"answers-{epoch}.npy", _answers(model, history, request["users"], request["n"]))
        _say({"epoch": epoch, "seconds": wall, "cpu_seconds": busy})
        if busy >= request["cpu_seconds"]:
            break


def _dataset(file: Path) -> Dataset:
    """A data set whose time is the place of a row in its sequence, so that ties keep their order."""
    rows = np.load(file)
    frame = pd.DataFrame(
        {
            Columns.User: rows["user"],
            Columns.Item: rows["item"],
            Columns.Weight: 1.0,
            Columns.Datetime: pd.to_datetime(rows["place"], unit="s"),
        }
    )
    return Dataset.construct(frame)


def _answers(model: SASRecModel, history: Dataset, users: int, n: int) -> np.ndarray[Any, Any]:
    """The best n unseen items of each user; users without a known item get none."""
    found = model.recommend(
        history.user_id_map.external_ids, history, k=n, filter_viewed=True, on_unsupported_targets="ignore"
    )
    answers = np.full((users, n), UNKNOWN)
    answers[found[Columns.User].to_numpy(), found[Columns.Rank].to_numpy() - 1] = found[Columns.Item].to_numpy()
    return answers


def _say(line: dict[str, Any]) -> None:
    print(json.dumps(line), flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(Path(sys.argv[1]))
