"""RecTools' SASRec at work, for `benchmarks.peers`: trains epoch by epoch and writes its answers after each.

    python benchmarks/peer_worker/sasrec.py FOLDER

Runs in an environment of its own, without Pathdex, and in a folder of its own: Python looks for modules beside the
script, where `benchmarks/http.py` would hide the standard library's `http`.

FOLDER holds `request.json`, `train.npz`, `valid.npz` and `test.npz` (arrays user, item, place). After each epoch the
folder gets `valid-E.npy` and `test-E.npy`, (user, n) item codes padded with -1, and standard output a JSON line with
the seconds of training so far.
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
from pytorch_lightning import Callback, LightningModule, Trainer
from rectools import Columns
from rectools.dataset import Dataset
from rectools.models import SASRecModel

UNKNOWN = -1


class Stopwatch(Callback):
    """The time of the last epoch, without what `fit_partial` prepares again in each call."""

    def on_train_epoch_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self.started, self.before = time.monotonic(), time.process_time()

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self.wall, self.busy = time.monotonic() - self.started, time.process_time() - self.before


def main(folder: Path) -> None:
    request = json.loads((folder / "request.json").read_text())
    torch.set_num_threads(request["threads"])
    torch.manual_seed(request["seed"])
    np.random.seed(request["seed"])
    train, valid, test = (_dataset(folder / f"{name}.npz") for name in ("train", "valid", "test"))
    model = SASRecModel(**request["parameters"], epochs=1, get_trainer_func=_trainer)
    _say({"library": f"RecTools {rectools.__version__}", "torch": torch.__version__})
    wall = busy = 0.0
    for epoch in range(1, request["epochs"] + 1):
        started, before = time.monotonic(), time.process_time()
        model.fit_partial(train, min_epochs=1, max_epochs=1)
        watch = next(one for one in model.fit_trainer.callbacks if isinstance(one, Stopwatch))
        if epoch == 1:  # With the preparation of the data.
            wall, busy = time.monotonic() - started, time.process_time() - before
        else:
            wall, busy = wall + watch.wall, busy + watch.busy
        for name, history in (("valid", valid), ("test", test)):
            np.save(folder / f"{name}-{epoch}.npy", _answers(model, history, request["users"][name], request["n"]))
        loss = float(model.fit_trainer.callback_metrics[model.train_loss_name])
        _say({"epoch": epoch, "seconds": wall, "cpu_seconds": busy, "loss": loss})
        if busy >= request["cpu_seconds"]:
            break


def _trainer() -> Trainer:
    """RecTools' default trainer with a stopwatch."""
    return Trainer(
        max_epochs=1,
        min_epochs=1,
        callbacks=[Stopwatch()],
        enable_progress_bar=False,
        enable_model_summary=False,
        logger=False,
        enable_checkpointing=False,
        devices=1,
    )


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
