"""What the stored details of items must look like before they are read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

from numpy.typing import NDArray

from pathdex.data.attribute_filters import ValueKind
from pathdex.data.detail_columns import DTYPES
from pathdex.data.item_details import part_of
from pathdex.data.vocabulary_rules import text_problems, vocabulary_problems
from pathdex.storage.array_spec import ArraySpec, array_problems, offsets_spec


def detail_problems(description: Any, arrays: Mapping[str, NDArray[Any]], *, values: bool = True) -> list[str]:
    """Everything that is wrong; without `values`, only names, dtypes and shapes are checked.

    No description and no arrays are right: the model has no details.
    """
    if description is None:
        return [f"{next(iter(arrays))}: needs `details` in the manifest"] if arrays else []
    if problem := _description_problem(description):
        return [problem]
    found, count = vocabulary_problems(part_of(arrays, "items."), values=values)
    if found:
        return [f"items.{problem}" for problem in found]
    if "items.removed" in arrays:
        return ["items.removed: the details of items have no removed rows"]
    problems, known = [], {"items"}
    for number, column in enumerate(description["columns"]):
        prefix = f"{number}."
        known.add(str(number))
        given = part_of(arrays, prefix)
        specs = _specs(column["kind"], column["many"], count)
        wrong = array_problems(given, specs, values=values, lengths={})
        if not wrong and values and column["kind"] == "text":
            wrong = text_problems(given)
        problems += [prefix + one for one in wrong]
    strangers = sorted(name for name in arrays if name.partition(".")[0] not in known)
    return problems + [f"{name}: belongs to no column" for name in strangers]


def _specs(kind: ValueKind, many: bool, rows: int) -> dict[str, ArraySpec]:
    elements = "elements" if many else rows
    specs: dict[str, ArraySpec] = {}
    if kind == "text":
        specs["text"] = ArraySpec(dtype="uint8", shape=("bytes",))
        specs["offsets"] = offsets_spec("elements+1" if many else rows + 1, "bytes")
    else:
        low, high = (0, 1) if kind == "boolean" else (None, None)
        specs["values"] = ArraySpec(dtype=DTYPES[kind], shape=(elements,), low=low, high=high)
    if many:
        specs["lists"] = offsets_spec(rows + 1, "elements")
    specs["missing"] = ArraySpec(
        dtype="int64", shape=("missing",), low=0, high=rows - 1, order="ascending", optional=True
    )
    return specs


def _description_problem(description: Any) -> str | None:
    if not isinstance(description, Mapping) or description.keys() != {"title", "columns"}:
        return "must be an object with `title` and `columns`"
    columns = description["columns"]
    if not isinstance(columns, list) or not columns:
        return "columns: must be a list of columns"
    for number, column in enumerate(columns):
        right = (
            isinstance(column, Mapping)
            and column.keys() == {"name", "kind", "many"}
            and isinstance(column["name"], str)
            and column["kind"] in get_args(ValueKind)
            and isinstance(column["many"], bool)
        )
        if not right:
            return f"columns[{number}]: must have a name, a kind of {', '.join(get_args(ValueKind))}, and `many`"
    names = [column["name"] for column in columns]
    if len(set(names)) < len(names):
        return "columns: two have the same name"
    title = description["title"]
    return None if title is None or title in names else "title: must be one of the columns"
