"""`pathdex explore`."""

from __future__ import annotations

import webbrowser
from pathlib import Path
from typing import Annotated

from typer import Option

from pathdex.cli.command import RunPath
from pathdex.cli.console import err, out
from pathdex.errors import ConfigError, Problem


def explore(
    folder: RunPath,
    compare: Annotated[
        Path | None, Option(help="A run or a saved model to compare with, such as the one before.", metavar="OTHER")
    ] = None,
    port: Annotated[int, Option(help="Port to listen on; 0: any free port.")] = 0,
    no_browser: Annotated[bool, Option("--no-browser", help="Only print the address.")] = False,
    export: Annotated[
        Path | None,
        Option(help="Write one self-contained HTML file instead, with sampled items and paths.", metavar="FILE"),
    ] = None,
    export_limit: Annotated[int, Option(help="Megabytes of data in the exported file, at most.")] = 20,
) -> None:
    """Look at what was learned, on a local page: nodes, paths, items, queries, training rounds, and changes.

    Opens a browser; Ctrl-C ends it. Only this machine can reach the page. See docs/explorer.md.

    Examples:

        pathdex explore runs/first

        pathdex explore runs/second --compare runs/first

        pathdex explore runs/first --export movies.html
    """
    from pathdex.system import MESSAGES, SERVER

    SERVER.require()
    MESSAGES.require()
    if export is not None:
        _export(folder, compare, export, export_limit)
        return
    from pathdex.server.options import ServerOptions
    from pathdex.server.serving import serve

    options = ServerOptions(model=folder, port=port, compare=compare, explorer=True)
    console = out()

    def on_ready(address: str, version: str) -> None:
        page = f"{address}/explore/"
        console.print(f"Exploring {folder} (model {version}) at {page}; Ctrl-C ends it.")
        if not no_browser and not webbrowser.open(page):
            err(always=True).print(f"No browser was found; open {page}")

    serve(options, on_ready)


def _export(folder: Path, compare: Path | None, file: Path, megabytes: int) -> None:
    from pathdex.explorer.export import export_page
    from pathdex.server.explore_page import page_files
    from pathdex.server.explorers import open_explorer

    if megabytes < 1:
        raise ConfigError([Problem("must be at least 1", "--export-limit", megabytes, "allow some megabytes")])
    explorer = open_explorer(folder, compare)
    columns = explorer.model.attach_details()
    log = err()
    log.print(f"writing {file}")
    size = export_page(explorer, page_files(), file, max_bytes=megabytes * 2**20, attributes=columns)
    out().print(f"Wrote {file} ({size / 2**20:.1f} MB); open it in a browser.")
