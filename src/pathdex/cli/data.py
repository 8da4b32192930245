"""`pathdex data`: describe, validate, prepare, fetch and generate interactions."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Exit, Option

from pathdex.cli.command import FAILED, write_result
from pathdex.cli.console import out
from pathdex.cli.options import DataPath, JsonFile, takes_reading
from pathdex.cli.progress import show_progress
from pathdex.progress import quantity
from pathdex.tables import TextTable, pairs

if TYPE_CHECKING:
    from pathdex.data import Habits

STYLES = {"error": "red", "warning": "yellow", "info": ""}


@takes_reading
def describe(source: DataPath, reading: dict[str, Any], json_file: JsonFile = None) -> None:
    """Describe a data set: sizes, distributions, time span.

    Examples:

        pathdex data describe ratings.csv --min-rating 4 --min-interactions 10

        pathdex data describe events.parquet --user visitor --item sku --time at
    """
    from pathdex.data import describe as figures_of
    from pathdex.data import read
    from pathdex.data.describe import columns_read

    data = read(source, **reading)
    figures = figures_of(data)
    console = out()
    console.print(pairs(str(source), {"columns": columns_read(data), **_facts(figures)}))
    quantiles = list(figures["sequence_length"])
    spread = [
        [name, *(f"{figures[key][quantile]:,.1f}" for quantile in quantiles)]
        for name, key in (("interactions per user", "sequence_length"), ("interactions per item", "item_count"))
    ]
    console.print(TextTable("\nDistributions", ["", *quantiles], spread))
    write_result(json_file, figures)


@takes_reading
def validate(
    source: DataPath,
    reading: dict[str, Any],
    valid_users: Annotated[int, Option(help="Check that this many validation users can be held out.")] = 0,
    test_users: Annotated[int, Option(help="Check that this many test users can be held out.")] = 0,
    json_file: JsonFile = None,
) -> None:
    """Validate a data set and list all problems. Exits with code 1 if training would reject it.

    Examples:

        pathdex data validate ratings.csv --min-rating 4 --min-interactions 10

        pathdex data validate events.parquet --user visitor --valid-users 500 --test-users 500
    """
    from pathdex.data import validate as findings_of

    findings = findings_of(source, **reading, valid_users=valid_users, test_users=test_users)
    console = out()
    for finding in findings:
        console.print(str(finding), style=STYLES[finding.level])
    counts = Counter(finding.level for finding in findings)
    listed = [{"level": one.level, "code": one.code, "message": one.message} for one in findings]
    write_result(json_file, {"errors": counts["error"], "warnings": counts["warning"], "findings": listed})
    console.print(", ".join(quantity(counts[level], level) for level in ("error", "warning")))
    if counts["error"]:
        raise Exit(FAILED)


@takes_reading
def prepare(
    source: DataPath,
    reading: dict[str, Any],
    target: Annotated[Path, Option("--out", help="The folder to create.", metavar="PREPARED")],
    shard_rows: Annotated[
        int, Option(help="Interactions that are sorted at a time, at about 100 bytes each; fewer take less memory.")
    ] = 2_000_000,
    ray: Annotated[
        str | None,
        Option(
            help="Run on Ray: the address of a cluster that sees the files under the same names, or local for this "
            "machine.",
            metavar="ADDRESS",
        ),
    ] = None,
    overwrite: Annotated[bool, Option("--overwrite", help="Replace an existing folder of prepared data.")] = False,
    json_file: JsonFile = None,
) -> None:
    """Prepare a data set larger than memory: write its sequences to a folder that is mapped from disk.

    PREPARED can be given wherever DATA can, and holds the same interactions. Filters and columns are those of this
    command. Re-run the command if it was interrupted.

    Examples:

        pathdex data prepare events/ --out prepared --min-rating 4 --min-interactions 10

        pathdex train prepared --out runs/first

        pathdex data prepare 'log-*.csv.gz' --out prepared --ray local
    """
    from pathdex.data import prepare as prepare_folder
    from pathdex.data import read

    with show_progress("preparing rows") as progress:
        prepare_folder(
            source, target, **reading, shard_rows=shard_rows, ray=ray, overwrite=overwrite, progress=progress
        )
    console, data = out(), read(target)
    sizes = {"users": data.num_users, "items": data.num_items, "interactions": data.num_interactions}
    write_result(json_file, {"folder": str(target), **sizes})
    console.print(f"{target}: {data!r}")
    console.print(f"Train on it with: pathdex train {target} --out runs/first")


def fetch(
    name: Annotated[str, Argument(help="movielens-1m, movielens-20m, movielens-25m or amazon-books.")],
    folder: Annotated[Path, Option(help="Folder to store it in.")] = Path("data"),
    file: Annotated[Path | None, Option(help="Use a copy on disk instead of downloading; it is verified too.")] = None,
    json_file: JsonFile = None,
) -> None:
    """Download a public data set, verify its checksum, and print the command to train on it.

    Re-run the command to resume an interrupted download.

    Examples:

        pathdex data fetch movielens-1m

        pathdex data fetch movielens-20m --folder /data --file ~/Downloads/ml-20m.zip
    """
    from pathdex.data import fetch as fetch_file
    from pathdex.data import find_dataset

    source = find_dataset(name)
    with show_progress(f"fetching {source.filename}") as progress:
        target = fetch_file(name, folder, file=file, progress=progress)
    flags = " ".join(f"--{key.replace('_', '-')} {value}" for key, value in source.reading.items())
    train = f"pathdex train {target} --out runs/{name} {flags} "
    train += f"--valid-users {source.valid_users} --test-users {source.test_users}"
    write_result(json_file, {"file": str(target), "terms": source.terms, "train": train})
    console = out()
    console.print(f"{target}  (verified)")
    console.print(f"Terms: {source.terms}")
    console.print(f"Train with the papers' protocol: {train}")


def generate(
    target: Annotated[Path, Argument(help="The Parquet file to write.", metavar="OUT")],
    variant: Annotated[
        str | None,
        Option(
            help="Sizes and habits by name: long-histories, short-histories, strong-order, weak-order, "
            "heavy-repetition, light-repetition, sparse. Other options replace its values."
        ),
    ] = None,
    users: Annotated[int | None, Option(help="Number of users. [default: 3000]")] = None,
    items: Annotated[int | None, Option(help="Number of items. [default: 2000]")] = None,
    interactions: Annotated[int | None, Option(help="Number of interactions. [default: 120000]")] = None,
    depth: Annotated[int | None, Option(help="Layers of the planted paths. [default: 3]")] = None,
    nodes: Annotated[int | None, Option(help="Nodes per layer. [default: about 8 items per path]")] = None,
    order: Annotated[float | None, Option(help="Share of rows that follow from the row before.")] = None,
    repetition: Annotated[float | None, Option(help="Share of rows that repeat an item of the user.")] = None,
    popularity: Annotated[float | None, Option(help="Share of rows drawn from the best-sellers.")] = None,
    seed: Annotated[int, Option(help="Random seed.")] = 0,
    overwrite: Annotated[bool, Option("--overwrite", help="Replace existing files.")] = False,
    json_file: JsonFile = None,
) -> None:
    """Generate interactions with a known structure: items are on one or two planted paths, and users follow paths.

    Rows are streamed to Parquet, so only the disk limits the size. The planted paths are written to a second file.
    With --order, --repetition or --popularity, the other rows are drawn from the user's taste in any order.

    Examples:

        pathdex data generate planted.parquet

        pathdex data generate books.parquet --users 294739 --items 1477922 --interactions 8654619

        pathdex data generate grocery.parquet --variant long-histories --repetition 0.5
    """
    from pathdex.data import find_variant, truth_file
    from pathdex.data import generate as generate_file

    planted: dict[str, Any] = find_variant(variant).options() if variant else dict(_GENERATED)
    sizes = {"users": users, "items": items, "interactions": interactions, "depth": depth}
    planted |= {name: value for name, value in sizes.items() if value is not None}
    planted["habits"] = _changed_habits(
        planted.get("habits"), {"order": order, "repetition": repetition, "popularity": popularity}
    )
    with show_progress("generating rows") as progress:
        generate_file(target, **planted, nodes=nodes, seed=seed, overwrite=overwrite, progress=progress)
    numbers = {name: planted[name] for name in ("interactions", "users", "items")}
    write_result(json_file, {"file": str(target), "planted_paths": str(truth_file(target)), **numbers})
    counts = {name: f"{number:,}" for name, number in numbers.items()}
    console = out()
    console.print(
        "{target}: {interactions} interactions of {users} users with {items} items".format(target=target, **counts)
    )
    console.print(f"{truth_file(target)}: the planted paths")


_GENERATED = {"users": 3_000, "items": 2_000, "interactions": 120_000}
"""Sizes without a variant."""


def _changed_habits(habits: Habits | None, given: dict[str, float | None]) -> Habits | None:
    """The habits with the given shares; none without a variant and without shares, which is the default walk."""
    from pathdex.data import Habits

    shares = {name: share for name, share in given.items() if share is not None}
    return replace(habits or Habits(), **shares) if shares else habits


def _facts(figures: dict[str, Any]) -> dict[str, str]:
    history, span = figures["history"], figures["time"]
    facts = {
        "users": f"{figures['users']:,}",
        "items": f"{figures['items']:,}",
        "interactions": f"{figures['interactions']:,}",
        "density": f"{figures['density']:.4%}",
        "order": "known" if figures["ordered"] else "unknown (a matrix has no order)",
        "time": "none (the order of the rows is used)"
        if span is None
        else f"{_day(span['first'])} to {_day(span['last'])}",
        "top 1% of the items": f"{figures['top_1_percent_items_share']:.1%} of the interactions",
        "items seen once": f"{figures['items_seen_once']:,}",
        "users with one interaction": f"{figures['users_with_one_interaction']:,}",
        f"last {history['length']} items": f"whole history of {history['users_that_fit']:.1%} of the users, "
        f"{history['interactions_covered']:.1%} of the interactions",
    }
    notes = {name.replace("_", " "): f"{count:,}" for name, count in figures["notes"].items()}
    return {**facts, **notes}


def _day(seconds: float) -> str:
    """A date if the number can be seconds since 1970, otherwise the number."""
    if 1e8 < seconds < 1e10:
        return datetime.fromtimestamp(seconds, timezone.utc).date().isoformat()
    return f"{seconds:g}"
