"""What a router and its shards say to each other, as JSON; arrays are bytes, which JSON holds as base64."""

from __future__ import annotations

from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from pathdex.recommenders.shard import ShardKey
from pathdex.server.schemas import Details, ErrorDetail, Id, Title


class ShardStatus(Struct, gc=False):
    """The place of a shard, and the versions of whole models that it can answer for in this place, the newest first."""

    index: int
    count: int
    versions: list[str]


class _ForPlace(Struct, gc=False, kw_only=True):
    """The place of the shard that a call is for; a call without one is for no shard."""

    index: int = -1
    count: int = 0


class ShardCall(_ForPlace, gc=False):
    """The version of the whole model that a call is about. `ShardClient.ask` sets the place."""

    version: str

    @property
    def key(self) -> ShardKey:
        """The shard that the call is for."""
        return ShardKey(self.version, self.index, self.count)


class Tensor(Struct, gc=False):
    """An array."""

    dtype: str
    shape: list[int]
    data: bytes

    @classmethod
    def pack(cls, array: NDArray[Any]) -> Tensor:
        return cls(str(array.dtype), list(array.shape), np.ascontiguousarray(array).tobytes())

    def unpack(self) -> NDArray[Any]:
        return np.frombuffer(self.data, self.dtype).reshape(self.shape)


class SharedParts(Struct, gc=False):
    """What all shards have in common: the network, and the paths in use."""

    facts: dict[str, Any]
    config: dict[str, Any]
    ids: str
    columns: list[str]
    weights: dict[str, Tensor]
    paths: Tensor
    sizes: Tensor
    example_ids: list[Id]
    """Some ids of the shard, for the OpenAPI document."""
    example_path: list[int]
    """A path of the first of them; empty if it has none."""


class ResolveQuery(Struct, omit_defaults=True, gc=False):
    """A history and the filters that restrict the catalogue."""

    history: list[Id]
    allow: list[Id] | None = None
    where: dict[str, Any] | None = None


class ResolveCall(ShardCall, gc=False):
    """Which items of some histories a shard holds."""

    queries: list[ResolveQuery]


class ResolvedQuery(Struct, omit_defaults=True, gc=False):
    """The items of a history that are in the shard, what the encoder reads of them, and their neighbours."""

    places: bytes
    """int32: where they are in the history."""
    codes: bytes
    """int32: their codes in the shard."""
    distinct: bytes
    """int32: the distinct ones among the latest `history_length`, ascending."""
    rows: bytes
    """float32: the input vectors of the distinct ones."""
    lengths: bytes = b""
    """int32: how many neighbours each of them has."""
    near: bytes = b""
    """int32: their neighbours, in codes of the whole model."""
    similarities: bytes = b""
    """float32"""
    eligible: int = -1
    """How many items of the shard pass `allow` and `where`; -1 without these."""
    problem: ErrorDetail | None = None
    """What is wrong with `where`."""


class ResolveAnswer(Struct, gc=False):
    """One per query."""

    queries: list[ResolvedQuery]


class FindQuery(Struct, omit_defaults=True, gc=False):
    """A query for the items of a shard; see `pathdex.retrieval.part_search.PartQuery`."""

    user: bytes
    positions: bytes
    log_p: bytes
    n: int
    exclude: bytes = b""
    deny: list[Id] = []
    allow: list[Id] | None = None
    where: dict[str, Any] | None = None
    similar: bytes = b""
    similarity: bytes = b""
    candidates: int = 0
    reserved: int = 0
    listed: bool = False


class FindCall(ShardCall, gc=False):
    """Some queries."""

    queries: list[FindQuery]


class FoundItems(Struct, omit_defaults=True, gc=False):
    """The candidates of a shard; see `pathdex.retrieval.part_search.PartFound`."""

    codes: bytes
    """int64: in the whole model."""
    ids: list[Id]
    log_probability: bytes
    similarity: bytes
    base: bytes
    total: int
    least: float | None = None


class FindAnswer(Struct, gc=False):
    """One per query."""

    queries: list[FoundItems]


class DescribeCall(ShardCall, gc=False):
    """Titles and details of items, by their codes in the shard."""

    codes: list[int]


class DescribeAnswer(Struct, gc=False):
    """One per item."""

    titles: list[Title]
    details: list[Details]


class ItemCall(ShardCall, gc=False):
    """An item by its id."""

    id: Id


class ItemAnswer(Struct, omit_defaults=True, gc=False):
    """The item, if the shard holds it."""

    code: int = -1
    """In the whole model."""
    id: Id = ""
    paths: bytes = b""
    """int64: the codes of its paths."""
    vector: bytes = b""
    """float32: its output vector."""
    title: Title = None
    details: Details = None


class NearCall(ShardCall, gc=False):
    """The items of a shard under prefixes of an item's paths, by cosine."""

    paths: bytes
    vector: bytes
    depth: int
    item: int
    """Its code in the whole model."""
    n: int


class NearAnswer(Struct, gc=False):
    """The best n of the shard, and how many there are."""

    total: int
    codes: bytes
    ids: list[Id]
    cosines: bytes


class OnPathCall(ShardCall, gc=False):
    """The items of a shard on a path, given by its code."""

    path: int


class OnPathAnswer(Struct, gc=False):
    """In the order of their codes in the whole model."""

    codes: list[int]
    ids: list[Id]
    titles: list[Title]


def to_bytes(values: NDArray[Any], dtype: str) -> bytes:
    return np.ascontiguousarray(values, dtype).tobytes()


def ints(data: bytes) -> NDArray[np.int64]:
    """int32 bytes as int64."""
    return np.frombuffer(data, np.int32).astype(np.int64)


def longs(data: bytes) -> NDArray[np.int64]:
    return np.frombuffer(data, np.int64)


def floats(data: bytes) -> NDArray[np.float32]:
    """A copy that can be written to: compiled code has another version for read-only arrays."""
    return np.frombuffer(data, np.float32).copy()
