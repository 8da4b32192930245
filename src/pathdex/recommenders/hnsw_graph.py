"""Whether the bytes of an HNSW graph are one that usearch can read and search safely.

usearch trusts what it loads: a neighbour beyond the last item is read from memory that is not the graph's. Its format,
in little-endian numbers:

    rows, bytes per row    2 x uint32, then the vectors, row by row
    head                   64 bytes: magic word, version, kinds of metric, scalar, key and slot, counts, dimensions
    graph                  5 x uint64: nodes, neighbours above the base level, neighbours on it, top level, entry node
    levels                 int16 per node
    nodes                  each: key uint64, level int16, then per level a uint32 count and the neighbours, uint32 each
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pathdex.storage.array_spec import LIMIT, blocks

HEAD, MAGIC = 64, b"usearch"
KINDS = slice(13, 17)
"""Where the head has the kinds of metric, scalar, key and slot."""
COUNTS = slice(17, 42)
"""Where it has the nodes, the deleted nodes and the dimensions, 8 bytes each, and whether keys repeat."""
KEY, LEVEL, SLOT = 8, 2, 4
"""Bytes of a key, a level, and a neighbour or a count."""


def graph_kinds(empty: NDArray[np.uint8]) -> bytes:
    """The kinds of metric, scalar, key and slot of a graph without items."""
    return empty[2 * SLOT :][KINDS].tobytes()


def graph_problem(
    graph: NDArray[np.uint8], num_items: int, dim: int, connectivity: int, kinds: bytes, *, links: bool = True
) -> str | None:
    """Why a graph of so many items, dimensions and neighbours per node cannot be used; None if it can.

    `kinds` are the `graph_kinds` of such a graph. `links` also checks every node.
    """
    start = 2 * SLOT + num_items * dim * 4
    body = start + HEAD + 5 * 8
    if len(graph) < body + LEVEL * num_items:
        return "is too short for its items"
    if _numbers(graph[: 2 * SLOT], np.uint32).tolist() != [num_items, dim * 4]:
        return f"must hold the vectors of {num_items} items with {dim} dimensions"
    head = graph[start : start + HEAD].tobytes()
    counts = b"".join(one.to_bytes(8, "little") for one in (num_items, 0, dim)) + b"\0"
    if not head.startswith(MAGIC) or head[KINDS] != kinds or head[COUNTS] != counts:
        return "has another head than usearch writes for these items"
    size, upper, base, top, entry = _numbers(graph[start + HEAD : body], np.uint64).tolist()
    if (size, upper, base) != (num_items, connectivity, 2 * connectivity):
        return f"must have {num_items} nodes with {connectivity} neighbours, {2 * connectivity} on the base level"
    levels = _numbers(graph[body : body + LEVEL * num_items], np.int16).astype(np.int64)
    if num_items and not (entry < num_items and levels.min() >= 0 and levels[entry] == top == levels.max()):
        return "must begin its search at a node of the top level"
    sizes = KEY + LEVEL + SLOT * (1 + base) + levels * SLOT * (1 + upper)
    places = body + LEVEL * num_items + np.concatenate([[0], np.cumsum(sizes)])
    if places[-1] != len(graph):
        return f"has {len(graph)} bytes, must have {places[-1]}"
    if not links:
        return None
    for part in blocks(num_items * dim):
        vectors = _numbers(graph[2 * SLOT + 4 * part.start : 2 * SLOT + 4 * part.stop], np.float32)
        if not np.abs(vectors).max() <= LIMIT:
            return f"has a vector with a number that is not finite or above {LIMIT}"
    return _node_problem(graph, places[:-1], levels, upper, base)


def _node_problem(
    graph: NDArray[np.uint8], places: NDArray[np.int64], levels: NDArray[np.int64], upper: int, base: int
) -> str | None:
    count = len(places)
    found = np.zeros(count, np.bool_)
    for part in blocks(count, base * SLOT):
        own = places[part]
        keys = _fields(graph, own, KEY, np.uint64)[:, 0]
        if (keys >= count).any():
            return "has a key that is no item"
        found[keys.astype(np.int64)] = True
        if (_fields(graph, own + KEY, LEVEL, np.int16)[:, 0] != levels[part]).any():
            return "has a node whose level differs from its entry in the levels"
    if not found.all():
        return "must have every item once"
    for level in range(int(levels.max(initial=0)) + 1):
        nodes = np.flatnonzero(levels >= level)
        most = upper if level else base
        first = KEY + LEVEL + (SLOT * (1 + base) + (level - 1) * SLOT * (1 + upper) if level else 0)
        for part in blocks(len(nodes), most * SLOT):
            lists = _fields(graph, places[nodes[part]] + first, SLOT * (1 + most), np.uint32).astype(np.int64)
            used = np.arange(most) < lists[:, :1]
            near = np.where(used, lists[:, 1:], nodes[0])
            if (lists[:, 0] > most).any() or (near >= count).any():
                return "has a node with too many neighbours, or with one that is no node"
            if (levels[near] < level).any():
                return f"has a neighbour on level {level} that is not there"
    return None


def _numbers(part: NDArray[np.uint8], dtype: Any) -> NDArray[Any]:
    return np.frombuffer(part.tobytes(), np.dtype(dtype).newbyteorder("<"))


def _fields(graph: NDArray[np.uint8], places: NDArray[np.int64], size: int, dtype: Any) -> NDArray[Any]:
    """The `size` bytes from each place on, as numbers: (place, number)."""
    chosen = graph[places[:, None] + np.arange(size)]
    return np.ascontiguousarray(chosen).view(np.dtype(dtype).newbyteorder("<"))
