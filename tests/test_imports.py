"""Imports only point up the list of packages; the continuous and the discrete half do not know each other."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import pathdex

SOURCE = Path(pathdex.__file__).parent
ORDER = [
    "errors",
    "parameters",
    "progress",
    "tables",
    "config",
    "storage",
    "system",
    "ray_cluster",
    "data",
    "metrics",
    "kernels",
    "model",
    "index",
    "training",
    "retrieval",
    "recommenders",
    "evaluation",
    "experiments",
    "explorer",
    "server",
    "cli",
    "__main__",
]
FILES = sorted(SOURCE.rglob("*.py"))


def layer_of(module: str) -> str:
    """`pathdex.data.ragged` -> `data`."""
    return module.split(".")[1]


def imported(file: Path) -> Iterator[str]:
    """Every module that a file imports, also inside functions and for type checking only."""
    package = ["pathdex", *file.relative_to(SOURCE).parts[:-1]]
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            origin = ".".join([*base, *([node.module] if node.module else [])])
            # `from pathdex import errors` imports a module, `from pathdex.errors import X` a name of one.
            yield from ([f"pathdex.{alias.name}" for alias in node.names] if origin == "pathdex" else [origin])


def own_layer(file: Path) -> str:
    return file.relative_to(SOURCE).parts[0].removesuffix(".py")


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(SOURCE)))
def test_imports_point_up(file: Path) -> None:
    if file.parent == SOURCE and file.name == "__init__.py":
        pytest.skip("the public surface names everything and imports it on use")
    layer = own_layer(file)
    assert layer in ORDER, f"{layer} has no place in the order of packages"
    # `pathdex.__version__` is a fact about the distribution, not a layer.
    used = {layer_of(one) for one in imported(file) if one.startswith("pathdex.") and one != "pathdex.__version__"}
    above = set(ORDER[: ORDER.index(layer) + 1])
    assert used <= above, f"{layer} may not import {sorted(used - above)}"


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(SOURCE)))
def test_no_import_is_relative(file: Path) -> None:
    nodes = ast.walk(ast.parse(file.read_text()))
    assert all(node.level == 0 for node in nodes if isinstance(node, ast.ImportFrom))


def test_the_model_knows_no_index() -> None:
    assert not [file for file in (SOURCE / "model").glob("*.py") if "index" in _layers(file)]


def test_the_index_knows_no_torch_and_no_model() -> None:
    files = list((SOURCE / "index").glob("*.py"))
    assert not [file for file in files if "model" in _layers(file)]
    assert not [file for file in files if any(one.split(".")[0] == "torch" for one in imported(file))]


def test_nothing_imports_the_command_line() -> None:
    outside = [file for file in FILES if own_layer(file) not in ("cli", "__main__")]
    assert not [file for file in outside if "cli" in _layers(file)]


def _layers(file: Path) -> set[str]:
    return {layer_of(one) for one in imported(file) if one.startswith("pathdex.")}
