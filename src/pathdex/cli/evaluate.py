"""`pathdex evaluate`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pathdex.cli.command import numbers, words
from pathdex.cli.console import counting, err, out


def evaluate(
    folder: Annotated[Path, typer.Argument(help="The --out of `pathdex train`.", metavar="RUN")],
    n: Annotated[int, typer.Option("--n", help="Items recommended per user.")] = 10,
    candidates: Annotated[
        str | None, typer.Option(help="Budgets: the most items scored per user. [default: 5, 10 and 20 times n]")
    ] = None,
    beam: Annotated[str | None, typer.Option(help="Beam widths: paths followed per user, whatever they hold.")] = None,
    methods: Annotated[
        str | None, typer.Option(help="Some of deep-retrieval, brute-force, item-cf, popularity. [default: all]")
    ] = None,
    on: Annotated[str, typer.Option(help="Held-out users to ask: test or valid.")] = "test",
    json_file: Annotated[Path | None, typer.Option("--json", help="Write the figures here.", metavar="FILE")] = None,
    loss_file: Annotated[
        Path | None, typer.Option("--loss-json", help="Write the retrieval loss, taken apart, here.", metavar="FILE")
    ] = None,
) -> None:
    """Compare a trained model with brute force, Item-CF and popularity on the users that its run held out.

    Every method answers twice: with the items a user has seen removed, and with all items allowed. Then the loss of
    retrieval is taken apart: what brute force finds, what of it the paths lead to, and what the final score keeps.

    Examples:

        pathdex evaluate runs/first

        pathdex evaluate runs/first --n 10 --candidates 50,100,200 --beam 10,50 --json figures.json
    """
    from pathdex.evaluation.comparison import METHODS, comparison_methods, held_out_queries, retrieval_settings
    from pathdex.evaluation.decomposition import decompose
    from pathdex.evaluation.protocol import evaluate as evaluate_methods
    from pathdex.evaluation.report import decomposition_table, evaluation_table
    from pathdex.experiments.runs import Run
    from pathdex.recommenders.brute_force import BruteForce
    from pathdex.recommenders.deep_retrieval import DeepRetrieval

    settings = retrieval_settings(n, beams=numbers(beam, "--beam"), candidates=numbers(candidates, "--candidates"))
    names = words(methods, "--methods") or METHODS
    run = Run.open(folder)
    model, split = run.model(), run.split()
    queries, counts = held_out_queries(split, on), split.train.item_counts()
    err().print(f"{len(queries):,} {on} users; fitting the baselines on {split.train!r}")
    asked = comparison_methods(model, split.train, settings=settings, names=names)
    with counting("answering queries") as progress:
        result = evaluate_methods(
            asked, queries, n=n, item_counts=counts, progress=lambda _, done, total: progress(done, total)
        )
    console = out()
    console.print(evaluation_table(result, console.width))
    if json_file is not None:
        result.to_json(json_file)
    if DeepRetrieval.name not in names:
        return
    with counting("taking the loss apart") as progress:
        losses = decompose(
            model,
            BruteForce(model),
            queries,
            n=n,
            item_counts=counts,
            settings=settings,
            progress=lambda _, done, total: progress(done, total),
        )
    console.print(decomposition_table(losses))
    if loss_file is not None:
        losses.to_json(loss_file)
