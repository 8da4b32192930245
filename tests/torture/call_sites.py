"""The places in the source that change files, found by their syntax, and those that no experiment reaches.

A place is a call of `os.write`, `Path.rename`, `sqlite3.connect`, our own `write_file`, and so on. It is tested if it
was on the stack during a call that was made to fail. A new one without an experiment makes `untested_sites` fail, and
so does an exception below that is no longer needed.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from tests.torture.io_calls import SOURCE

_OS = {
    "fsync",
    "ftruncate",
    "link",
    "mkdir",
    "pwrite",
    "remove",
    "rename",
    "replace",
    "rmdir",
    "truncate",
    "unlink",
    "write",
}
_METHODS = {"chmod", "mkdir", "rename", "rmdir", "savefig", "touch", "unlink", "write_bytes", "write_text"}
_FUNCTIONS = {
    *("append_line", "exchange", "make_folders", "mkdtemp", "publish_file", "publish_folder", "remove_stale", "rmtree"),
    *("save_checkpoint", "save_file", "copyfile", "sync", "write_all", "write_arrays", "write_current", "write_delta"),
    *("write_feather", "write_file", "write_folder", "write_json", "write_tensors", "ParquetWriter"),
}
_SQL = {"executescript", "executemany"}

EXEMPT = {
    "cli": "figures as JSON, by `write_json`",
    "data/datasets.py": "downloads: checked against a checksum before they get their name",
    "data/download.py": "a part of a download: checked against a checksum before it gets its name",
    "data/remote_files.py": "a copy of a remote file, in a temporary folder",
    "data/synthetic.py": "generated data, in files by `atomic_path`",
    "evaluation": "figures, by `write_json` and `atomic_write`",
    "experiments/context.py": "removes a model that a report no longer needs",
    "experiments/provenance.py": "a counter of the kernel",
    "experiments/report": "pages, by `atomic_write`",
    "experiments/reproduce.py": "figures as JSON, by `write_json`",
    "experiments/run_comparison.py": "figures as JSON, by `write_json`",
    "experiments/simulate": "figures as JSON, and streams in a temporary folder",
    "experiments/steps.py": "figures as JSON, by `write_json`",
    "index/out_of_core.py": "the working files of one M-step, which is repeated as a whole",
    "recommenders/batch.py": "answers, by `atomic_write`",
    "recommenders/stream_verification.py": "opens the histories read-only",
    "recommenders/tree": "another `exchange`",
    "server/metrics.py": "counters of a running server, in a temporary folder",
    "training/distributed": "another `exchange`",
    "storage/verified.py": "a cache: nothing depends on it, and tests/storage/test_verified.py damages it",
}
"""Files and folders that write nothing which a crash must not lose, or only whole files by a tested function."""


class Site(NamedTuple):
    """A call in the source, from its first to its last line."""

    file: str
    first: int
    last: int
    call: str


def all_sites() -> Iterator[Site]:
    """Every call that changes files, in the whole source."""
    for file in sorted(Path(SOURCE).rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call) and (name := _changing(node)):
                yield Site(str(file.relative_to(SOURCE)), node.lineno, node.end_lineno or node.lineno, name)


def _changing(call: ast.Call) -> str | None:
    """The name of a call that changes files."""
    function, given = call.func, len(call.args)
    if isinstance(function, ast.Name):
        return function.id if function.id in _FUNCTIONS else None
    if not isinstance(function, ast.Attribute):
        return None
    name, owner = function.attr, ast.unparse(function.value)
    if owner == "os":
        creates = name == "open" and "O_CREAT" in ast.unparse(call)
        return f"os.{name}" if name in _OS or creates else None
    if name in _METHODS | _FUNCTIONS | _SQL and (
        name != "rename" or not isinstance(call.args[0], ast.Dict | ast.DictComp)
    ):
        return f"{owner}.{name}" if owner not in ("self", "frame") else None
    # `path.replace(target)`, `path.open("wb")`, `sqlite3.connect(path)`
    if name == "replace" and given == 1 and not call.keywords and not owner.endswith("chain"):
        return f"{owner}.replace"
    if (
        name == "open"
        and given
        and isinstance(call.args[0], ast.Constant)
        and set(str(call.args[0].value)) & set("wax+")
    ):
        return f"{owner}.open"
    return f"{owner}.connect" if (owner, name) == ("sqlite3", "connect") else None


def untested_sites(reached: Iterable[tuple[str, int]]) -> list[str]:
    """The sites that no failing call was made from, and the exceptions without a site."""
    lines, found, used = set(reached), [], set()
    for site in all_sites():
        exempt = next((one for one in EXEMPT if site.file == one or site.file.startswith(f"{one}/")), None)
        if exempt is not None:
            used.add(exempt)
        elif not any((site.file, line) in lines for line in range(site.first, site.last + 1)):
            found.append(f"{site.file}:{site.first} {site.call}")
    return found + [f"{one}: exempt, but changes no file" for one in EXEMPT if one not in used]
