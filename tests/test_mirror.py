"""Tests mirror the source, names are unique, and files stay small."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

import pathdex

SOURCE = Path(pathdex.__file__).parent
TESTS = Path(__file__).parent
FILES = [file for file in sorted(SOURCE.rglob("*.py")) if file.name != "__init__.py"]


def test_every_source_file_has_its_test_file() -> None:
    """Except files that hold type aliases only."""
    missing = [
        str(file.relative_to(SOURCE))
        for file in FILES
        if not (TESTS / file.relative_to(SOURCE).parent / f"test_{file.name}").exists() and defines_something(file)
    ]
    assert not missing


def defines_something(file: Path) -> bool:
    nodes = ast.walk(ast.parse(file.read_text()))
    return any(isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) for node in nodes)


def test_no_two_classes_share_a_name() -> None:
    places: dict[str, list[str]] = defaultdict(list)
    for file in FILES:
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(str(file.relative_to(SOURCE)))
    assert not {name: files for name, files in places.items() if len(files) > 1}


def test_no_file_is_longer_than_400_lines() -> None:
    files = [*FILES, *TESTS.rglob("*.py")]
    assert not [str(file) for file in files if len(file.read_text().splitlines()) > 400]
