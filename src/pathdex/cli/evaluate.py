"""`pathdex evaluate`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from pathdex.cli.command import split_integers, split_list
from pathdex.cli.console import err, out
from pathdex.cli.options import JsonFile
from pathdex.cli.progress import show_progress
from pathdex.errors import QueryError


def evaluate(
    folder: Annotated[Path, Argument(help="The --out folder of `pathdex train`.", metavar="RUN")],
    n: Annotated[int, Option("--n", help="Items recommended per user.")] = 10,
    candidates: Annotated[
        str | None, Option(help="Maximum items scored per user. [default: 5, 10, 20 times n]")
    ] = None,
    beam: Annotated[str | None, Option(help="Beams: numbers of paths followed per user.")] = None,
    methods: Annotated[
        str | None, Option(help="Some of deep-retrieval, brute-force, item-cf, popularity. [default: all]")
    ] = None,
    on: Annotated[str, Option(help="Held-out users: test or valid.")] = "test",
    test: Annotated[
        str | None,
        Option(help="Evaluate on this file instead: the second half of each user's rows.", metavar="FILE"),
    ] = None,
    history: Annotated[
        str | None,
        Option(help="What users did before the rows of --test, which are then all to be found.", metavar="FILE"),
    ] = None,
    json_file: JsonFile = None,
    loss_file: Annotated[
        Path | None, Option("--loss-json", help="Write the retrieval loss here.", metavar="FILE")
    ] = None,
) -> None:
    """Compare a trained model with brute force, Item-CF and popularity on the held-out users of its run.

    Every method is evaluated with seen items removed and with seen items kept. Further tables show the retrieval loss:
    the accuracy of brute force, of the candidates on the paths, and of the final answer. A run with --sharded-bundle
    is evaluated from its shards, without brute force and these tables.

    Examples:

        pathdex evaluate runs/first

        pathdex evaluate runs/first --test later.csv --history ratings.csv

        pathdex evaluate runs/first --n 10 --candidates 50,100,200 --beam 10,50 --json figures.json
    """
    from pathdex.evaluation.comparison import (
        METHODS,
        SHARD_METHODS,
        comparison_methods,
        held_out_queries,
        search_options,
    )
    from pathdex.evaluation.decomposition import decompose
    from pathdex.evaluation.own_data import own_queries
    from pathdex.evaluation.protocol import evaluate as evaluate_methods
    from pathdex.evaluation.report import decomposition_tables, evaluation_tables
    from pathdex.experiments.runs import Run
    from pathdex.experiments.splitting import few_users_note
    from pathdex.recommenders.brute_force import BruteForce
    from pathdex.recommenders.local_shards import LocalShards

    beams, counts = split_integers(beam, "--beam"), split_integers(candidates, "--candidates")
    options = search_options(n, beams=beams, candidates=counts)
    run = Run.open(folder)
    sharded = run.shards.exists()
    model, split = LocalShards.open(run.shards) if sharded else run.model(), run.split()
    names = split_list(methods, "--methods") or (SHARD_METHODS if sharded else METHODS)
    if sharded and loss_file is not None:
        raise QueryError("--loss-json takes brute force, which a run in shards does not have", remedy="leave it out")
    item_counts = split.train.item_counts()
    if history is not None and test is None:
        raise QueryError("--history needs --test", remedy="name the file with the rows to find")
    queries = held_out_queries(split, on) if test is None else own_queries(model, test, history=history)
    if note := few_users_note(queries):
        err(always=True).print(f"Warning: {note}", style="yellow")
    err().print(f"{len(queries):,} {on if test is None else test} users; fitting the baselines on {split.train!r}")
    compared = comparison_methods(model, split.train, options=options, names=names)
    with show_progress("evaluating") as progress:
        result = evaluate_methods(compared, queries, n=n, item_counts=item_counts, progress=progress)
    console = out()
    for table in evaluation_tables(result):
        console.print(table)
    if json_file is not None:
        result.to_json(json_file)
    if isinstance(model, LocalShards):
        err().print("no retrieval loss: brute force takes the vectors of all items, which no shard has")
        return
    if model.name not in names:
        return
    with show_progress("measuring the retrieval loss") as progress:
        losses = decompose(
            model, BruteForce(model), queries, n=n, item_counts=item_counts, options=options, progress=progress
        )
    for table in decomposition_tables(losses):
        console.print(table)
    if loss_file is not None:
        losses.to_json(loss_file)
