"""The schemas describe themselves: every part of the overview has a docstring and a component of its own."""

from __future__ import annotations

import inspect

import msgspec
import pytest

from pathdex.explorer import overview_schemas as module

STRUCTS = [
    one
    for _, one in inspect.getmembers(module, inspect.isclass)
    if issubclass(one, msgspec.Struct) and one.__module__ == module.__name__
]


@pytest.mark.parametrize("struct", STRUCTS, ids=lambda struct: struct.__name__)
def test_a_struct_is_a_described_component(struct: type[msgspec.Struct]) -> None:
    _, components = msgspec.json.schema_components([struct])
    assert components[struct.__name__]["description"] == struct.__doc__
    assert set(components[struct.__name__]["properties"]) == set(struct.__struct_fields__)
