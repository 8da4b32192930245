"""One self-contained HTML file of the explorer: the built page with script, style and data inlined.

Data beyond a limit is left out: whole cards, the least popular items and the smallest paths first.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from html import escape
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from pathdex.errors import StorageError
from pathdex.explorer.change_schemas import CompareQuery, ReplayQuery
from pathdex.explorer.compare import compare
from pathdex.explorer.explorer import Explorer
from pathdex.explorer.item_card import item_card
from pathdex.explorer.node_card import node_card
from pathdex.explorer.overview import overview, paths_under
from pathdex.explorer.overview_schemas import NodeQuery, PathQuery, PathsQuery
from pathdex.explorer.path_card import path_card
from pathdex.explorer.query_schemas import ExploreQuery
from pathdex.explorer.query_view import query_view
from pathdex.explorer.replay import replay
from pathdex.index.paths import decode_paths
from pathdex.storage.atomic import atomic_write

FORMAT, VERSION = "pathdex-explorer", 1
DATA_ID = "pathdex-data"
MAX_BYTES = 20 * 2**20
"""Bytes of the data in a file."""
ITEMS, PATHS, PREFIXES, NODES, QUERIES, REPLAYED = 500, 600, 200, 300, 20, 300
"""What is included at most, as far as it fits."""
NODE_PATHS = 25
"""Paths of a node."""
SHARES = {"queries": 0.2, "prefixes": 0.15, "nodes": 0.1, "paths": 0.3, "items": 0.25}
"""The part of the limit that each kind may take, in this order; what one leaves is free for the next."""
POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; font-src data:; "
    "base-uri 'none'; form-action 'none'"
)
"""Only what is in the file runs, and nothing is loaded."""


@dataclass
class _Budget:
    """Bytes of the kinds in `SHARES`, which are filled in their order."""

    total: int
    used: int = 0
    share: float = 0.0
    """Of this kind and those before it."""

    def fill(self, kind: str, keys: Sequence[Any], make: Callable[[Any], tuple[str, Any]]) -> dict[str, Any]:
        """Entries in order, as long as they fit the share of the kind and what those before it left."""
        self.share += SHARES[kind]
        most = round(self.total * self.share)
        found: dict[str, Any] = {}
        for key in keys:
            name, value = make(key)
            encoded = _json(value)
            size = len(encoded) + len(name) + 4
            if self.used + size > most:
                break
            found[name] = msgspec.Raw(encoded)
            self.used += size
        return found


def export_data(explorer: Explorer, *, max_bytes: int = MAX_BYTES, attributes: Sequence[str] = ()) -> dict[str, Any]:
    """The data of a file, as docs/explorer.md describes it."""
    facts = explorer.facts
    whole = overview(explorer, attributes=attributes)
    prefixes = [(), *(prefix for prefix, *_ in facts.flows if len(prefix) < explorer.depth)][:PREFIXES]
    positions = facts.by_interactions[:PATHS]
    paths = decode_paths(facts.paths[positions], explorer.num_nodes, explorer.depth).tolist()
    codes = explorer.by_popularity[:ITEMS].tolist()
    recorded = explorer.recording.histories
    histories = [recorded[row] for row in range(min(QUERIES, len(recorded)))] or [
        np.array([code]) for code in codes[:QUERIES]
    ]
    left = max_bytes
    data: dict[str, Any] = {"format": FORMAT, "version": VERSION}
    data["exported"] = datetime.now(timezone.utc).isoformat(timespec="seconds")
    fixed = {
        "overview": whole,
        "replay": replay(explorer, ReplayQuery(items=REPLAYED)),
        "compare": compare(explorer, CompareQuery(size=100)) if explorer.other is not None else None,
    }
    for name, value in fixed.items():
        data[name] = msgspec.Raw(_json(value))
        left -= len(data[name])
    if left < 0:
        raise StorageError(f"the overview alone exceeds the limit of {max_bytes:,} bytes; raise it")

    def prefix_entry(prefix: tuple[int, ...]) -> tuple[str, Any]:
        text = _text(prefix)
        return text, paths_under(explorer, PathsQuery(prefix=text, size=50))

    def node_entry(cell: tuple[int, int, int]) -> tuple[str, Any]:
        layer, first, last = cell
        return f"{layer}:{first}-{last}", node_card(explorer, NodeQuery(first, layer, last=last, size=NODE_PATHS))

    def path_entry(path: Sequence[int]) -> tuple[str, Any]:
        return _text(path), path_card(explorer, PathQuery(_text(path)))

    def item_entry(code: int) -> tuple[str, Any]:
        card = item_card(explorer, code)
        return str(card.id), card

    def query_entry(number: int) -> tuple[str, Any]:
        request = ExploreQuery(explorer.catalogue.ids(histories[number].tolist()), n=10)
        return str(number), {"request": request, "trace": query_view(explorer, request)}

    budget = _Budget(left)
    data["queries"] = list(budget.fill("queries", range(len(histories)), query_entry).values())
    data["prefixes"] = budget.fill("prefixes", prefixes, prefix_entry)
    data["nodes"] = budget.fill("nodes", _busiest_cells(explorer)[:NODES], node_entry)
    data["paths"] = budget.fill("paths", paths, path_entry)
    data["items"] = budget.fill("items", codes, item_entry)
    shown = explorer.by_popularity[: len(data["items"])]
    data["search"] = [
        {"id": one.id, "title": one.title, "interactions": int(count)}
        for one, count in zip(explorer.named(shown), explorer.counts[shown], strict=True)
    ]
    counts = {name: len(data[name]) for name in ("items", "paths", "prefixes", "nodes", "queries")}
    complete = counts["items"] == whole.items and counts["paths"] == whole.used_paths
    data["limits"] = {"bytes": max_bytes, **counts, "complete": complete}
    return data


def _busiest_cells(explorer: Explorer) -> list[tuple[int, int, int]]:
    """Cells of the overview as layer, first and last node, the busiest first, without those that are prefixes."""
    cells = []
    for layer, load in enumerate(explorer.facts.loads, start=1):
        step = load.nodes_per_cell
        for cell in np.flatnonzero(load.items).tolist() if layer > 1 or step > 1 else ():
            last = min((cell + 1) * step, explorer.num_nodes) - 1
            cells.append((int(load.items[cell]), layer, cell * step, last))
    return [(layer, first, last) for _, layer, first, last in sorted(cells, key=lambda one: (-one[0], *one[1:]))]


def export_page(explorer: Explorer, page: Mapping[str, bytes], file: Path, **options: Any) -> int:
    """Write the file; returns its bytes. `page` are the built files by name, with `index.html`."""
    if not page:
        raise StorageError("the page of the explorer is not built; run `make explorer`, or install a wheel")
    text = self_contained(page, safe_json(export_data(explorer, **options)), f"Pathdex: {explorer.version}")
    content = text.encode()
    with atomic_write(file) as stream:
        stream.write(content)
    return len(content)


def self_contained(page: Mapping[str, bytes], data: str, title: str) -> str:
    """The page with its scripts and styles inlined and the data before them."""
    text = page["index.html"].decode()

    def asset(name: str) -> str:
        key = name.removeprefix("/explore/").removeprefix("./")
        if key not in page:
            raise StorageError(f"the page of the explorer has no file {key}; run `make explorer` again")
        return page[key].decode()

    def script(found: re.Match[str]) -> str:
        # The script comes last, when the page and the data are there: an inline module cannot be deferred otherwise.
        scripts.append(asset(found["name"]).replace("</script", "<\\/script").replace("<!--", "<\\!--"))
        return ""

    def style(found: re.Match[str]) -> str:
        return "<style>" + asset(found["name"]).replace("</style", "<\\/style") + "</style>"

    scripts: list[str] = []
    text = re.sub(r"<link\b[^>]*\brel=\"modulepreload\"[^>]*>", "", text)
    text = re.sub(r"<link\b(?=[^>]*\brel=\"stylesheet\")[^>]*\bhref=\"(?P<name>[^\"]+)\"[^>]*>", style, text)
    text = re.sub(r"<script\b[^>]*\bsrc=\"(?P<name>[^\"]+)\"[^>]*>\s*</script>", script, text)
    policy = f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
    head = f"{policy}<title>{escape(title)}</title>"
    text = re.sub(r"<title>.*?</title>", "", text, flags=re.DOTALL)
    text = text.replace("<head>", "<head>" + head, 1)
    inlined = f'<script type="application/json" id="{DATA_ID}">{data}</script>'
    inlined += "".join(f'<script type="module">{one}</script>' for one in scripts)
    before, end, after = text.rpartition("</body>")
    return before + inlined + end + after


def safe_json(data: Any) -> str:
    """JSON that is also safe inside a script element: no markup character and no line separator is in it."""
    text = _json(data).decode()
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _json(value: Any) -> bytes:
    return msgspec.json.encode(value)


def _text(nodes: Sequence[int]) -> str:
    return "-".join(map(str, nodes))
