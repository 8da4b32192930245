"""`pathdex demo`."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from pathdex.cli.command import write_result
from pathdex.cli.console import err, out
from pathdex.cli.inspect import health_tables
from pathdex.cli.options import JsonFile
from pathdex.cli.progress import training_callbacks
from pathdex.tables import TextTable, pairs

if TYPE_CHECKING:
    from pathdex.data import DemoCatalogue
    from pathdex.data.splits import Split
    from pathdex.evaluation.protocol import Evaluation
    from pathdex.evaluation.recovery import Recovery
    from pathdex.recommenders.deep_retrieval import DeepRetrieval

PARAMETERS: dict[str, Any] = {
    "num_nodes": 16,
    "embedding_dim": 32,
    "structure_hidden": 64,
    "dropout": 0.2,
    "learning_rate": 5e-3,
    "item_learning_rate": 5e-3,
    "batch_size": 1024,
    "structure_batch_size": 1024,
    "path_size": 24,
    "epochs": 6,
    "rounds": 3,
    "final_epochs": 1,
    # What training would choose on held-out users.
    "next_items": 64,
    "neighbours": 50,
    "path_weight": 0.6,
    "neighbour_weight": 0.5,
    "neighbour_smoothing": 0.02,
    "neighbour_share": 0.4,
    "neighbour_recency": 0.25,
    "popularity_weight": 0.5,
    # Matrices this small gain nothing from a second thread, and lose much on shared cores.
    "threads": 1,
}
"""Enough for this data, and trained in seconds."""
MEAN_LENGTH = 16
N = 10
HELD_OUT = 20
"""One user in this many is held out."""
SHOWN_HISTORY = 6
SHOWN_ITEMS = 4
SHOWN_USERS = 3


def demo(
    users: Annotated[int, Option(help="Number of users.")] = 5_000,
    items: Annotated[int, Option(help="Number of items.")] = 1_000,
    seed: Annotated[int, Option(help="Random seed.")] = 0,
    folder: Annotated[Path | None, Option("--out", help="Save the model to this folder.", metavar="DIR")] = None,
    json_file: JsonFile = None,
) -> None:
    """Generate a shop with planted interests, train, evaluate, and show recommendations and their paths.

    Trains for some seconds; the first run in a new installation also compiles. Nothing is written unless --out is
    given.

    Examples:

        pathdex demo

        pathdex demo --users 8000 --items 1600 --out runs/demo
    """
    from pathdex.data import demo_catalogue, split_users
    from pathdex.errors import StorageError
    from pathdex.evaluation.plots import m_step_records
    from pathdex.recommenders.deep_retrieval import DeepRetrieval
    from pathdex.recommenders.precompile import QueryCompiler

    if folder is not None and folder.exists():
        raise StorageError(f"{folder} exists; choose another folder")
    console = out()
    compiler = QueryCompiler()
    catalogue = demo_catalogue(items=items, users=users, mean_length=MEAN_LENGTH, seed=seed)
    data = catalogue.data
    console.print("A small shop: each item belongs to one or two interests, and users move between interests.")
    console.print(f"{data!r}; items such as {_example(catalogue)}\n")
    split = split_users(data, test_users=max(1, users // HELD_OUT), seed=seed)
    err().print("training the encoder, then the paths by EM")
    model = DeepRetrieval(seed=seed, **PARAMETERS)
    model.fit(split.train, callbacks=training_callbacks())
    compiler.wait()
    _recommendations(model, split, catalogue)
    evaluation, health = _evaluate(model, split), model.health()
    for part in health_tables(health, m_step_records(model.records)):
        console.print(part)
    planted = dataclasses.asdict(_recovery(model, catalogue))
    write_result(
        json_file, {"evaluation": evaluation.to_dict(), "health": health.to_dict(), "planted_interests": planted}
    )
    if folder is not None:
        model.save(folder)
        console.print(f"\nSaved the model to {folder}. Try: pathdex inspect {folder}")


def _example(catalogue: DemoCatalogue) -> str:
    most_shared = max(catalogue.paths, key=lambda item: len(catalogue.interests(item)))
    return f"{most_shared!r}, which belongs to {' and '.join(catalogue.interests(most_shared))}"


def _evaluate(model: DeepRetrieval, split: Split) -> Evaluation:
    from pathdex.evaluation.comparison import comparison_methods, search_options
    from pathdex.evaluation.protocol import evaluate
    from pathdex.evaluation.report import evaluation_tables

    methods = comparison_methods(model, split.train, options=search_options(N))
    result = evaluate(methods, split.test, n=N, item_counts=split.train.item_counts())
    for table in evaluation_tables(result):
        out().print(table)
    return result


def _recovery(model: DeepRetrieval, catalogue: DemoCatalogue) -> Recovery:
    from pathdex.evaluation.recovery import planted_recovery

    names = [str(one) for one in model.items.ids(range(len(model.items)))]
    found = planted_recovery(model.paths, [catalogue.interests(name) for name in names])
    out().print(
        pairs(
            "Planted interests",
            {
                "items on paths of their own interest": f"{found.purity:.1%} (by chance {found.purity_by_chance:.1%})",
                "items with two interests on paths of both": f"{found.both_interests:.1%} "
                f"(by chance {found.both_by_chance:.1%})",
            },
        )
    )
    return found


def _recommendations(model: DeepRetrieval, split: Split, catalogue: DemoCatalogue) -> None:
    import numpy as np

    console = out()
    long_enough = np.flatnonzero(split.test.history.lengths >= SHOWN_HISTORY)
    for user in long_enough[:SHOWN_USERS].tolist():
        history = model.items.ids(split.test.history[user][-SHOWN_HISTORY:])
        wanted = set(model.items.ids(split.test.truth[user]))
        console.print(f"\nAfter {', '.join(map(str, history))}:")
        rows = []
        for one in model.recommend(history, SHOWN_ITEMS):
            path = model.explain(history, one.id).paths[0]
            rows.append(
                [
                    str(one.id),
                    " + ".join(catalogue.interests(str(one.id))),
                    f"{path.nodes}",
                    f"{path.probability:.3f}",
                    f"{path.size}",
                    "yes" if one.id in wanted else "",
                ]
            )
        columns = ["recommended", "interest", "path", "p(path | history)", "items on it", "in the truth"]
        console.print(TextTable("", columns, rows, text_columns=3))
