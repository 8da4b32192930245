"""Nearest-neighbour libraries over the model's item vectors, behind one interface.

The search maximises x . y_v + b_v, the inner product of [x, 1] and [y_v, b_v]. An index by distance can do the same:
one more feature makes all item vectors equally long, so that the largest product is the smallest distance (Bachrach et
al. 2014). Both are tried if a library has both, the product first: the lengths of learned vectors differ so much that
the extra feature dominates the others.
"""

from __future__ import annotations

import importlib.util
import math
import os
import tempfile
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Codes = NDArray[np.int64]
Settings = dict[str, Any]

THREADS = os.cpu_count() or 1
"""Threads for building; searching uses one."""
EF_CONSTRUCTION = 200
EF_SEARCH = (10, 20, 40, 80, 160, 320, 640, 1280)
PROBES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
PRODUCT, DISTANCE = "inner product", "distance"


def as_queries(users: Floats, space: str) -> Floats:
    """User vectors as queries of an index in this space: (query, feature)."""
    ones, zeros = np.ones((len(users), 1), np.float32), np.zeros((len(users), 1), np.float32)
    return np.hstack([users, ones] if space == PRODUCT else [users, ones, zeros])


def as_items(vectors: Floats, bias: Floats, space: str) -> Floats:
    """Item vectors as stored by an index in this space: (item, feature)."""
    known = np.hstack([vectors, bias[:, None]])
    if space == PRODUCT:
        return known
    squares = np.einsum("ij,ij->i", known, known)
    return np.hstack([known, np.sqrt(np.maximum(squares.max() - squares, 0))[:, None]])


def padded(vectors: Floats, multiple: int) -> Floats:
    """Pad with zero features to a multiple of `multiple`."""
    return np.pad(vectors, ((0, 0), (0, -vectors.shape[1] % multiple)))


class Index(ABC):
    """An index of one library. `set` trades time for recall."""

    family: ClassVar[str]
    package: ClassVar[str]
    multiple: ClassVar[int] = 1
    """The number of features must be a multiple of this."""

    @classmethod
    def missing(cls) -> str | None:
        """Why the family cannot be measured on this machine; None if it can."""
        if importlib.util.find_spec(cls.package) is None:
            return f"the package {cls.package} is not installed"
        return None

    @classmethod
    @abstractmethod
    def grid(cls, items: int) -> list[Settings]:
        """Build parameters to try; each has a `space`."""

    @classmethod
    @abstractmethod
    def settings(cls, items: int) -> list[Settings]:
        """Search parameters to try, from fast to thorough."""

    @abstractmethod
    def build(self, items: Floats, **parameters: Any) -> None: ...

    @abstractmethod
    def set(self, **settings: Any) -> None: ...

    @abstractmethod
    def search(self, query: Floats, k: int) -> Codes:
        """About the k best items for one query (1, feature), best first; empty places are -1."""

    @abstractmethod
    def nbytes(self) -> int:
        """Size of the whole index, including its vectors."""


class _Graph(Index):
    @classmethod
    def grid(cls, items: int) -> list[Settings]:
        return [
            {"space": PRODUCT, "neighbours": 16},
            {"space": DISTANCE, "neighbours": 16},
            {"space": PRODUCT, "neighbours": 32},
        ]

    @classmethod
    def settings(cls, items: int) -> list[Settings]:
        return [{"ef_search": one} for one in EF_SEARCH if one <= max(2 * items, EF_SEARCH[0])]


class HnswLib(_Graph):
    family, package = "hnswlib", "hnswlib"

    def build(self, items: Floats, *, space: str, neighbours: int) -> None:
        import hnswlib

        self._index = hnswlib.Index(space="ip" if space == PRODUCT else "l2", dim=items.shape[1])
        self._index.init_index(len(items), ef_construction=EF_CONSTRUCTION, M=neighbours, random_seed=0)
        self._index.set_num_threads(THREADS)
        self._index.add_items(items, np.arange(len(items)))
        self._index.set_num_threads(1)

    def set(self, *, ef_search: int) -> None:
        self._index.set_ef(ef_search)

    def search(self, query: Floats, k: int) -> Codes:
        try:
            return self._index.knn_query(query, k, num_threads=1)[0][0].astype(np.int64)
        except RuntimeError:
            # It raises if it reaches fewer than k items.
            return np.empty(0, np.int64)

    def nbytes(self) -> int:
        return int(self._index.index_file_size())


class USearch(_Graph):
    family, package = "usearch", "usearch"

    def build(self, items: Floats, *, space: str, neighbours: int) -> None:
        from usearch.index import Index as Graph

        self._index = Graph(
            ndim=items.shape[1],
            metric="ip" if space == PRODUCT else "l2sq",
            dtype="f32",
            connectivity=neighbours,
            expansion_add=EF_CONSTRUCTION,
        )
        self._index.add(np.arange(len(items)), items, threads=THREADS)

    def set(self, *, ef_search: int) -> None:
        self._index.expansion_search = ef_search

    def search(self, query: Floats, k: int) -> Codes:
        return self._index.search(query[0], k, threads=1).keys.astype(np.int64)

    def nbytes(self) -> int:
        return int(self._index.serialized_length)


class _Faiss(Index):
    package = "faiss"

    def _make(self, items: Floats, space: str, description: str) -> Any:
        import faiss

        faiss.omp_set_num_threads(THREADS)
        metric = faiss.METRIC_INNER_PRODUCT if space == PRODUCT else faiss.METRIC_L2
        self._index = faiss.index_factory(items.shape[1], description, metric)
        return faiss

    def _fill(self, items: Floats, faiss: Any) -> None:
        if not self._index.is_trained:
            self._index.train(items)
        self._index.add(items)
        faiss.omp_set_num_threads(1)

    def search(self, query: Floats, k: int) -> Codes:
        found: Codes = self._index.search(query, k)[1][0]
        return found

    def nbytes(self) -> int:
        import faiss

        return int(faiss.serialize_index(self._index).nbytes)


class FaissHNSW(_Faiss, _Graph):
    family = "faiss HNSW"

    def build(self, items: Floats, *, space: str, neighbours: int) -> None:
        faiss = self._make(items, space, f"HNSW{neighbours},Flat")
        self._index.hnsw.efConstruction = EF_CONSTRUCTION
        self._fill(items, faiss)

    def set(self, *, ef_search: int) -> None:
        self._index.hnsw.efSearch = ef_search


class FaissIVFFlat(_Faiss):
    family = "faiss IVF-Flat"

    @classmethod
    def grid(cls, items: int) -> list[Settings]:
        return [{"space": space, "lists": lists} for lists in list_counts(items) for space in (PRODUCT, DISTANCE)]

    @classmethod
    def settings(cls, items: int) -> list[Settings]:
        return [{"probes": one} for one in PROBES if one <= list_counts(items)[0]]

    def build(self, items: Floats, *, space: str, lists: int) -> None:
        faiss = self._make(items, space, f"IVF{lists},Flat")
        self._fill(items, faiss)
        self._lists = faiss.extract_index_ivf(self._index)

    def set(self, *, probes: int) -> None:
        self._lists.nprobe = probes


class FaissIVFPQ(_Faiss):
    """Product quantisation; the best are rescored with their full vectors."""

    family, multiple = "faiss IVF-PQ", 4

    @classmethod
    def grid(cls, items: int) -> list[Settings]:
        lists = list_counts(items)
        return [
            {"space": PRODUCT, "lists": lists[0], "bits": 8},
            {"space": DISTANCE, "lists": lists[0], "bits": 8},
            {"space": PRODUCT, "lists": lists[0], "bits": 4},
            {"space": PRODUCT, "lists": lists[1], "bits": 4},
        ]

    @classmethod
    def settings(cls, items: int) -> list[Settings]:
        chosen = [one for one in PROBES if one <= list_counts(items)[0]]
        return [{"probes": one, "refined": refined} for one in chosen for refined in (2, 8)]

    def build(self, items: Floats, *, space: str, lists: int, bits: int) -> None:
        parts = items.shape[1] // (2 if bits == 4 else 4)
        # np: no polysemous ordering of codes, which this search does not use and which takes a minute.
        code = f"PQ{parts}x4fs" if bits == 4 else f"PQ{parts}x8np"
        faiss = self._make(items, space, f"IVF{lists},{code},RFlat")
        self._fill(items, faiss)
        self._lists = faiss.extract_index_ivf(self._index)

    def set(self, *, probes: int, refined: int) -> None:
        self._lists.nprobe, self._index.k_factor = probes, refined


class ScaNN(Index):
    """A tree and anisotropic quantisation; the best are rescored with their full vectors."""

    family, package, multiple = "scann", "scann", 2

    @classmethod
    def grid(cls, items: int) -> list[Settings]:
        return [{"space": PRODUCT, "leaves": lists} for lists in list_counts(items)]

    @classmethod
    def settings(cls, items: int) -> list[Settings]:
        chosen = [one for one in PROBES if one <= list_counts(items)[0]]
        return [{"searched": one, "refined": refined} for one in chosen for refined in (2, 8)]

    def build(self, items: Floats, *, space: str, leaves: int) -> None:
        from scann import scann_ops_pybind as scann

        builder = scann.builder(items, 10, "dot_product").set_n_training_threads(THREADS)
        builder = builder.tree(leaves, leaves, training_sample_size=min(len(items), 250_000))
        self._index = builder.score_ah(2, anisotropic_quantization_threshold=0.2).reorder(100).build()

    def set(self, *, searched: int, refined: int) -> None:
        self._searched, self._refined = searched, refined

    def search(self, query: Floats, k: int) -> Codes:
        found = self._index.search(
            query[0],
            final_num_neighbors=k,
            pre_reorder_num_neighbors=self._refined * k,
            leaves_to_search=self._searched,
        )
        return found[0].astype(np.int64)

    def nbytes(self) -> int:
        with tempfile.TemporaryDirectory() as folder:
            self._index.serialize(folder)
            return sum(file.stat().st_size for file in Path(folder).iterdir())


FAMILIES: tuple[type[Index], ...] = (HnswLib, FaissHNSW, FaissIVFFlat, FaissIVFPQ, USearch, ScaNN)


def list_counts(items: int) -> tuple[int, int]:
    """Numbers of clusters to try: the square root of the catalogue size, and four times that."""
    root = max(4, round(math.sqrt(items)))
    return root, 4 * root
