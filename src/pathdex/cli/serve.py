"""`pathdex serve`."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Annotated, Any

import typer

from pathdex.cli.command import RUN_HELP, gathers, option, split_list
from pathdex.cli.console import out
from pathdex.cli.options import CatalogueLists, declared_lists
from pathdex.errors import ConfigError, Problem
from pathdex.server.limits import RouterLimits, ServerLimits

FLAGS = [
    option(spec.name, type(spec.default), f"{spec.metadata['help']}; default {spec.default:,}", panel="Limits")
    for spec in dataclasses.fields(ServerLimits)
]
ROUTER_FLAGS = [
    option(spec.name, type(spec.default), f"{spec.metadata['help']}; default {spec.default:g}", panel="Router")
    for spec in dataclasses.fields(RouterLimits)
]


@gathers("router", ROUTER_FLAGS)
@gathers("limits", FLAGS)
def serve(
    limits: dict[str, Any],
    router: dict[str, Any],
    folder: Annotated[Path | None, typer.Argument(help=RUN_HELP, metavar="[RUN]", show_default=False)] = None,
    shards: Annotated[
        str | None,
        typer.Option(
            help="Instead of RUN: the URLs of all shards of a model, separated by commas. Several URLs of one shard "
            "are its replicas.",
            metavar="URL,URL,...",
        ),
    ] = None,
    partial: Annotated[
        bool,
        typer.Option("--partial", help="While a shard is down, answer without its items, and name it in the answer."),
    ] = False,
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

        pathdex serve --shards http://10.0.0.1:8000,http://10.0.0.2:8000

        pathdex serve live/ --events 'redis://localhost:6379/0?stream=events'
    """
    from pathdex.system import MESSAGES, ROUTER, SERVER

    SERVER.require()
    MESSAGES.require()
    from pathdex.server.options import ServerOptions, read_token
    from pathdex.server.serving import serve as run

    urls = tuple(url.rstrip("/") for url in split_list(shards, "shards"))
    if (folder is None) != bool(urls):
        shown = None if folder is None else str(folder)
        raise ConfigError([Problem("exactly one of RUN and --shards is required", "model", shown, "pass one of them")])
    if urls:
        ROUTER.require()
    options = ServerOptions(
        model=Path() if folder is None else folder,
        shards=urls,
        partial=partial,
        router=RouterLimits(**router),
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
        source = f"{len(urls)} servers of shards" if urls else folder
        console.print(f"Serving {source} (model {version}) at {address}{many}; see {address}/docs")

    run(options, on_ready)
