"""The command and its subcommands. Each imports the library when it runs, so that `--help` is fast."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

import pathdex
from pathdex.cli import data, live
from pathdex.cli.command import command
from pathdex.cli.compare import compare
from pathdex.cli.demo import demo
from pathdex.cli.doctor import doctor
from pathdex.cli.evaluate import evaluate
from pathdex.cli.explain import explain, why_not
from pathdex.cli.explore import explore
from pathdex.cli.inspect import inspect
from pathdex.cli.recommend import recommend
from pathdex.cli.reproduce import reproduce
from pathdex.cli.serve import serve
from pathdex.cli.shard import shard
from pathdex.cli.similar import similar
from pathdex.cli.simulate import simulate
from pathdex.cli.stream import stream
from pathdex.cli.train import train
from pathdex.cli.tune import tune
from pathdex.cli.verify import verify
from pathdex.cli.warmup import warmup

app = typer.Typer(
    name="pathdex",
    help="Deep Retrieval: learn a path index from interactions and recommend items by beam search.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)
data_app = typer.Typer(help="Describe, validate, prepare, fetch and generate interactions.", no_args_is_help=True)
app.add_typer(data_app, name="data")
live_app = typer.Typer(help="Look at a live folder, compact it, roll it back.", no_args_is_help=True)
app.add_typer(live_app, name="live")


def _show_version(value: bool) -> None:
    if value:
        typer.echo(f"pathdex {pathdex.__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", callback=_show_version, is_eager=True)
    ] = False,
) -> None:
    return


for function in (data.describe, data.validate, data.prepare, data.fetch, data.generate):
    data_app.command()(command(function))
for function in (live.status, live.compact, live.rollback):
    live_app.command()(command(function))
for function in (
    demo,
    train,
    tune,
    evaluate,
    compare,
    reproduce,
    simulate,
    recommend,
    similar,
    explain,
    why_not,
    inspect,
    shard,
    explore,
    serve,
    stream,
    verify,
    warmup,
    doctor,
):
    app.command()(command(function))


def main() -> None:
    """The entry point."""
    # On shared cores, OpenMP threads that spin while waiting slow training down several times; on free cores, threads
    # that sleep at once halve its speed. So they spin for some microseconds. Torch reads these variables on import.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    os.environ.setdefault("GOMP_SPINCOUNT", "20000")
    if sys.argv[1:3] == ["data", "prepare"]:
        # The allocator of polars keeps what is freed for ten seconds: most of its memory in a pass over a file.
        os.environ.setdefault("_RJEM_MALLOC_CONF", "dirty_decay_ms:0,muzzy_decay_ms:0")
    app()
