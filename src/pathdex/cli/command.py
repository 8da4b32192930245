"""What all commands share: error handling and option parsing."""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Annotated, Any, ParamSpec

import typer

from pathdex.cli.console import err, silence
from pathdex.cli.interrupts import exit_code, farewell
from pathdex.errors import ConfigError, PathdexError, Problem

P = ParamSpec("P")

FAILED = 1

RUN_HELP = "The --out folder of `pathdex train` or `pathdex stream`, a live folder, or a saved model."
RunPath = Annotated[Path, typer.Argument(help=RUN_HELP, metavar="RUN")]
JSON_ARGUMENT = "json_file"
_Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print results, warnings and errors only.")]
_Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]


def command(function: Callable[P, None]) -> Callable[..., None]:
    """A function as a command: a `PathdexError` becomes one message and exit code 1.

    Warnings are printed as one line each. Ctrl-C prints the message of the `KeyboardInterrupt`, if it has one, and
    exits with code 130, SIGTERM with 143. Other exceptions are bugs and propagate.
    """
    signature = inspect.signature(function, eval_str=True)
    shared = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=False, annotation=annotation)
        for name, annotation in (("debug", _Debug), ("quiet", _Quiet))
    ]

    @functools.wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        debug, quiet = kwargs.pop("debug", False), bool(kwargs.pop("quiet", False))
        try:
            with _plain_warnings(), _json_output(kwargs) as tables, silence(messages=quiet, tables=not tables):
                function(*args, **kwargs)
        except PathdexError as error:
            if debug:
                raise
            err(always=True).print(f"Error: {error}", style="red")
            raise typer.Exit(FAILED) from None
        except KeyboardInterrupt as interrupt:
            err(always=True).print(farewell(interrupt))
            raise typer.Exit(exit_code()) from None

    run.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[*signature.parameters.values(), *shared]
    )
    return run


@contextmanager
def _json_output(arguments: dict[str, Any]) -> Iterator[bool]:
    """Print what a command writes to `--json -`, and only that; yields whether tables are shown."""
    if str(arguments.get(JSON_ARGUMENT)) != "-":
        yield True
        return
    with TemporaryDirectory() as folder:
        file = Path(folder) / "results.json"
        arguments[JSON_ARGUMENT] = file
        try:
            yield False
        finally:  # A command that exits with 1 may have a result, such as the problems that it found.
            if file.exists():
                typer.echo(file.read_text(), nl=False)


def write_result(file: Path | None, content: dict[str, Any]) -> None:
    """Write what a command prints as JSON, if `--json` was given."""
    if file is not None:
        from pathdex.storage.json_file import write_json

        write_json(file, content)


def gathers(
    name: str, options: Sequence[inspect.Parameter], *, rename: Mapping[str, str] = MappingProxyType({})
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Replace a function's parameter `name` by options; the function gets a dict of the given ones.

    `rename` maps options to other keys of the dict.
    """

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        signature = inspect.signature(function, eval_str=True)
        own = [parameter for parameter in signature.parameters.values() if parameter.name != name]

        @functools.wraps(function)
        def run(**arguments: Any) -> None:
            values = {option.name: arguments.pop(option.name) for option in options}
            given = {rename.get(option, option): value for option, value in values.items() if value is not None}
            function(**arguments, **{name: given})

        run.__signature__ = signature.replace(parameters=[*own, *options])  # type: ignore[attr-defined]
        return run

    return decorate


def option(name: str, kind: Any, help: str, *, panel: str, switch: bool = False) -> inspect.Parameter:
    """An option for `gathers`: `name` as a flag, None if not given."""
    flag = "--" + name.replace("_", "-")
    flags = f"{flag}/--no-{flag[2:]}" if switch else flag
    annotation = Annotated[kind | None, typer.Option(flags, help=help, rich_help_panel=panel)]
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)


@contextmanager
def _plain_warnings() -> Iterator[None]:
    def show(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
        err(always=True).print(f"Warning: {message}", style="yellow")

    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = show
        yield


def split_list(text: str | None, option: str) -> list[str]:
    """The parts of `a,b,c`; none if the option is not given. An empty list is an error."""
    parts = [part.strip() for part in (text or "").split(",")]
    parts = [part for part in parts if part]
    if text is not None and not parts:
        raise ConfigError([Problem("must name at least one, separated by commas", option, text)])
    return parts


def split_integers(text: str | None, option: str, *, low: int = 1) -> list[int]:
    """The whole numbers of `10,50,100`, each at least `low`."""
    parts = split_list(text, option)
    if any(not part.isdecimal() or int(part) < low for part in parts):
        rule = f"must be whole numbers of at least {low}"
        raise ConfigError([Problem(rule, option, text, "separate them by commas, as in 5,10,20")])
    return [int(part) for part in parts]
