"""What all commands share: how errors end them, and how their options are written."""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, ParamSpec

import typer

from pathdex.cli.console import err
from pathdex.errors import ConfigError, PathdexError

P = ParamSpec("P")

FAILED = 1
INTERRUPTED = 130

RunPath = Annotated[
    Path, typer.Argument(help="The --out of `pathdex train`, or a folder that save() wrote.", metavar="RUN")
]
_Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]


def command(function: Callable[P, None]) -> Callable[..., None]:
    """A function as a command: an error that Pathdex raises on purpose becomes one message and exit code 1.

    Warnings become one line each. Ctrl-C ends with code 130. Any other exception is a bug and stays visible.
    """
    signature = inspect.signature(function, eval_str=True)
    debugging = inspect.Parameter("debug", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=_Debug)

    @functools.wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        debug = kwargs.pop("debug", False)
        try:
            with _plain_warnings():
                function(*args, **kwargs)
        except PathdexError as error:
            if debug:
                raise
            err().print(f"Error: {error}", style="red")
            raise typer.Exit(FAILED) from None
        except KeyboardInterrupt:
            err().print("Interrupted.")
            raise typer.Exit(INTERRUPTED) from None

    run.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[*signature.parameters.values(), debugging]
    )
    return run


def gathers(name: str, options: Sequence[inspect.Parameter]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Replace a function's parameter `name` by many options; it gets a dict of those that were given."""

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        signature = inspect.signature(function, eval_str=True)
        own = [parameter for parameter in signature.parameters.values() if parameter.name != name]

        @functools.wraps(function)
        def run(**arguments: Any) -> None:
            values = {option.name: arguments.pop(option.name) for option in options}
            given = {option: value for option, value in values.items() if value is not None}
            function(**arguments, **{name: given})

        run.__signature__ = signature.replace(parameters=[*own, *options])  # type: ignore[attr-defined]
        return run

    return decorate


def option(name: str, kind: Any, help: str, *, panel: str, switch: bool = False) -> inspect.Parameter:
    """An option of `gathers`: `name` as a flag, None where it is not given."""
    flag = "--" + name.replace("_", "-")
    flags = f"{flag}/--no-{flag[2:]}" if switch else flag
    annotation = Annotated[kind | None, typer.Option(flags, help=help, rich_help_panel=panel)]
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)


@contextmanager
def _plain_warnings() -> Iterator[None]:
    def show(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
        err().print(f"Warning: {message}", style="yellow")

    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = show
        yield


def words(text: str | None, option: str) -> list[str]:
    """The parts of `a,b,c`. An option that is given must name something."""
    parts = [part.strip() for part in (text or "").split(",")]
    parts = [part for part in parts if part]
    if text is not None and not parts:
        raise ConfigError([f"{option} {text!r}: must name at least one, separated by commas"])
    return parts


def numbers(text: str | None, option: str) -> list[int]:
    """The whole numbers of `10,50,100`."""
    parts = words(text, option)
    wrong = [part for part in parts if not part.isdecimal() or int(part) < 1]
    if wrong:
        raise ConfigError(
            [f"{option} {text!r}: {', '.join(wrong)} must be whole numbers of at least 1; write them as 50,100,200"]
        )
    return [int(part) for part in parts]
