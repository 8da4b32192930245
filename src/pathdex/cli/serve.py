"""`pathdex serve`."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Annotated, Any

import typer

from pathdex.cli.command import RunPath, gathers, option
from pathdex.cli.console import out
from pathdex.cli.options import CatalogueLists, declared_lists
from pathdex.server.limits import ServerLimits

FLAGS = [
    option(spec.name, type(spec.default), f"{spec.metadata['help']}; default {spec.default:,}", panel="Limits")
    for spec in dataclasses.fields(ServerLimits)
]


@gathers("limits", FLAGS)
def serve(
    folder: RunPath,
    limits: dict[str, Any],
    host: Annotated[str, typer.Option(help="Address to listen on; 0.0.0.0 for all interfaces.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on; 0: any free port.")] = 8000,
    workers: Annotated[int, typer.Option(help="Worker processes.")] = 1,
    catalogue: Annotated[
        Path | None, typer.Option(help="Catalogue table with one row per item, for `where`.", metavar="FILE")
    ] = None,
    catalogue_item: Annotated[
        str | None, typer.Option(help="Item column of the catalogue table, if it has an unusual name.", metavar="NAME")
    ] = None,
    lists: CatalogueLists = None,
    user_store: Annotated[
        str | None,
        typer.Option(help="Store histories by user: a SQLite file, or redis://host:6379/0.", metavar="PLACE"),
    ] = None,
    events: Annotated[
        str | None,
        typer.Option(
            help="Append events and item changes to a stream: a .jsonl file, redis://, nats:// or kafka://.",
            metavar="SINK",
        ),
    ] = None,
    allowed_hosts: Annotated[
        list[str] | None,
        typer.Option(
            help="Accept requests for this host name; repeat it for more. *.NAME allows all names under NAME, * any. "
            "[default: any; on a loopback address localhost. IP addresses are always accepted]",
            metavar="NAME",
        ),
    ] = None,
    token_file: Annotated[
        Path | None,
        typer.Option(
            help="Require the token in this file. [default: environment variable PATHDEX_TOKEN, if set]",
            metavar="FILE",
        ),
    ] = None,
    public_metrics: Annotated[bool, typer.Option("--public-metrics", help="Serve /metrics without a token.")] = False,
    access_log: Annotated[
        bool, typer.Option("--access-log", help="Log each request to standard error as a line of JSON.")
    ] = False,
    watch: Annotated[
        float,
        typer.Option(
            help="Seconds between checks for a new model; 0: never check. A live folder is checked every 0.1."
        ),
    ] = 2.0,
) -> None:
    """Serve a model over HTTP. A new version at the same path is loaded without dropping a request.

    Examples:

        pathdex serve runs/first

        pathdex serve runs/first --host 0.0.0.0 --workers 4 --user-store users.sqlite --token-file token.txt

        pathdex serve live/ --events 'redis://localhost:6379/0?stream=events'
    """
    from pathdex.system import MESSAGES, SERVER

    SERVER.require()
    MESSAGES.require()
    from pathdex.server.options import ServerOptions, read_token
    from pathdex.server.serving import serve as run

    options = ServerOptions(
        model=folder,
        host=host,
        port=port,
        workers=workers,
        catalogue=catalogue,
        catalogue_item=catalogue_item,
        catalogue_lists=declared_lists(lists),
        user_store=user_store,
        events=events,
        allowed_hosts=tuple(allowed_hosts or ()),
        token=read_token(token_file),
        public_metrics=public_metrics,
        access_log=access_log,
        watch=watch,
        limits=ServerLimits(**limits),
    )
    console = out()

    def on_ready(address: str, version: str) -> None:
        many = "" if workers == 1 else f" with {workers} workers"
        console.print(f"Serving {folder} (model {version}) at {address}{many}; see {address}/docs")

    run(options, on_ready)
