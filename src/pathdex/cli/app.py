"""The command and its subcommands. Each imports the library when it runs, so that `--help` is fast."""

from __future__ import annotations

import os
from typing import Annotated

import typer

import pathdex
from pathdex.cli import (
    compare,
    data_describe,
    data_fetch,
    data_generate,
    data_validate,
    demo,
    doctor,
    evaluate,
    inspect,
    recommend,
    reproduce,
    serve,
    train,
    warmup,
)
from pathdex.cli.command import command

app = typer.Typer(
    name="pathdex",
    help="Deep Retrieval: learn a path index from interactions and recommend items by beam search.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)
data = typer.Typer(help="Describe, validate, fetch and generate interactions.", no_args_is_help=True)
app.add_typer(data, name="data")


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


data.command("describe")(command(data_describe.describe))
data.command("validate")(command(data_validate.validate))
data.command("fetch")(command(data_fetch.fetch))
data.command("generate")(command(data_generate.generate))
app.command("demo")(command(demo.demo))
app.command("train")(command(train.train))
app.command("evaluate")(command(evaluate.evaluate))
app.command("compare")(command(compare.compare))
app.command("reproduce")(command(reproduce.reproduce))
app.command("recommend")(command(recommend.recommend))
app.command("inspect")(command(inspect.inspect))
app.command("serve")(command(serve.serve))
app.command("warmup")(command(warmup.warmup))
app.command("doctor")(command(doctor.doctor))


def main() -> None:
    """The entry point."""
    # On shared cores, OpenMP threads that spin while waiting slow training down several times; on free cores, threads
    # that sleep at once halve its speed. So they spin for some microseconds. Torch reads these variables on import.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    os.environ.setdefault("GOMP_SPINCOUNT", "20000")
    app()
