"""What `import pathdex` gives, and what it costs."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys

import pytest

import pathdex


def test_all_is_sorted_and_without_repeats() -> None:
    assert pathdex.__all__ == sorted(set(pathdex.__all__))


@pytest.mark.parametrize("name", pathdex.__all__)
def test_every_public_name_is_there_and_documented(name: str) -> None:
    value = getattr(pathdex, name)
    assert name in dir(pathdex)
    assert name == "__version__" or inspect.getdoc(value)


def test_editors_see_the_same_names() -> None:
    tree = ast.parse(inspect.getsource(pathdex))
    seen = {
        alias.name
        for block in ast.walk(tree)
        if isinstance(block, ast.If)
        for statement in block.body
        if isinstance(statement, ast.ImportFrom)
        for alias in statement.names
    }
    assert seen == set(pathdex.__all__) - {"__version__"}


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'pathdex' has no attribute 'Bruteforce'"):
        _ = pathdex.Bruteforce  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "statement",
    [
        "import pathdex",
        "import pathdex; pathdex.read, pathdex.Config, pathdex.split_users, pathdex.errors",
        "import pathdex.data, pathdex.index.postings, pathdex.index.scores",
        "import pathdex; pathdex.Popularity, pathdex.ItemCF, pathdex.evaluate",
        "import pathdex.cli.app",
    ],
)
def test_torch_is_not_imported_by(statement: str) -> None:
    check = f"import sys; {statement}; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", check], check=False).returncode == 0


def test_importing_pathdex_alone_imports_no_other_package() -> None:
    heavy = {"torch", "numpy", "polars", "numba", "pyarrow", "scipy", "rich", "typer"}
    check = f"import sys, pathdex; sys.exit(' '.join(set(sys.modules) & {heavy!r}))"
    done = subprocess.run([sys.executable, "-c", check], check=False, capture_output=True, text=True)
    assert done.stderr == "\n"
