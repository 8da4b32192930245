"""Random changes of saved models: arrays, shapes, dtypes, settings, weights, manifests and raw bytes."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save_file

from pathdex.storage.array_folder import MANIFEST
from pathdex.storage.bundle import WEIGHTS
from tests.bundle_edits import sign_files

INTEGERS = (0, 1, -1, -2, 7, 10**9, 2**31 - 1, 2**31, 2**53, 2**62, 2**63 - 1, -(2**63))
FLOATS = (0.0, -0.0, 1.0, np.nan, np.inf, -np.inf, 1e-40, 1e3, 9.9e3, 9.9e4, -9.9e4, 1e6, 1e30, 3.4e38, -3.4e38)
DTYPES = ("int8", "uint8", "int16", "int32", "int64", "uint64", "float16", "float32", "float64", "bool", ">i8", ">f4")
VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 2, 3, 7, 64, 1000, 2**31 - 1, 2**31, 2**53, 2**63, 2**64, 10**400),
    *(0.0, 0.5, 1e-7, 1e9, 1e308, float("nan"), float("inf"), "", "gru", "pooled", "attention", "mlp", "recurrent"),
    *("deep-retrieval", "popularity", "\ud800", "../x", [], {}, [[[]]], {"a": {"b": {}}}),
)


@dataclass
class Draft:
    """A saved model in memory, to be changed and written with checksums that are valid again."""

    estimator: Any
    settings: Any
    arrays: dict[str, NDArray[Any]]
    weights: dict[str, NDArray[Any]]
    facts: dict[str, Any] = field(default_factory=dict)
    """Keys of the manifest to replace."""
    raw: list[Callable[[Path], None]] = field(default_factory=list)
    """Changes of written files."""
    kinds: list[str] = field(default_factory=list)
    """The names of the changes made."""

    def write(self, path: Path) -> None:
        path.mkdir()
        for name, array in self.arrays.items():
            np.save(path / f"{name}.npy", array, allow_pickle=False)
        if self.weights:
            save_file({name: np.ascontiguousarray(one) for name, one in self.weights.items()}, path / WEIGHTS)
        manifest = {"format": "pathdex-bundle", "schema": 2, "estimator": self.estimator, "settings": self.settings}
        for change in self.raw:
            change(path)
        (path / MANIFEST).write_text(json.dumps({**manifest, "files": {}, **self.facts}))
        sign_files(path)


def mutate(draft: Draft, random: np.random.Generator) -> Draft:
    """Change one thing, or a few."""
    for _ in range(1 + int(random.integers(4) == 0) * int(random.integers(1, 4))):
        change = CHANGES[int(random.integers(len(CHANGES)))]
        change(draft, random)
        draft.kinds.append(change.__name__.removeprefix("_"))
    return draft


def mutate_array(array: NDArray[Any], random: np.random.Generator) -> NDArray[Any]:
    """An array with other values, another shape or another dtype."""
    changed = np.array(array)
    kind = int(random.integers(17))
    flat = changed.reshape(-1)
    if kind < 6 and flat.size:
        places = random.integers(0, flat.size, 1 if kind < 4 else int(random.integers(1, 9)))
        values = FLOATS if changed.dtype.kind == "f" else INTEGERS
        with np.errstate(all="ignore"):
            flat[places] = np.array(values[int(random.integers(len(values)))]).astype(changed.dtype)
        return changed
    if kind == 6 and flat.size:
        flat[int(random.integers(flat.size))] += changed.dtype.type(1)
        return changed
    if kind == 7 and flat.size:
        data = flat.view(np.uint8)
        data[int(random.integers(data.size))] ^= np.uint8(1 << int(random.integers(8)))
        return changed
    if kind == 8:
        return np.ascontiguousarray(changed[::-1])
    if kind == 9:
        return random.permuted(changed, axis=0) if len(changed) else changed
    if kind == 10:
        return np.ascontiguousarray(changed[: int(random.integers(len(changed) + 1))])
    if kind == 11:
        return (
            np.concatenate([changed, changed[: int(random.integers(1, len(changed) + 1))]]) if len(changed) else changed
        )
    if kind == 12:
        with np.errstate(all="ignore"):
            return changed.astype(DTYPES[int(random.integers(len(DTYPES)))])
    if kind == 13:
        return [changed[None], changed.reshape(-1), np.asfortranarray(changed), changed.T][int(random.integers(4))]
    if kind == 14:
        return np.zeros_like(changed)
    if kind == 15:
        return np.sort(changed, axis=None).reshape(changed.shape)
    with np.errstate(all="ignore"):
        return (changed * changed.dtype.type(int(random.integers(2, 100)))).astype(changed.dtype)


def _arrays(draft: Draft, random: np.random.Generator) -> None:
    name = _choice(draft.arrays, random)
    if name is not None:
        draft.arrays[name] = mutate_array(draft.arrays[name], random)


def _weights(draft: Draft, random: np.random.Generator) -> None:
    name = _choice(draft.weights, random)
    if name is not None:
        changed = mutate_array(draft.weights[name], random)
        if changed.dtype.byteorder != ">":  # safetensors has no such numbers.
            draft.weights[name] = changed


def _scale(draft: Draft, random: np.random.Generator) -> None:
    """Larger weights, perhaps all of them, as a diverged training would leave."""
    factor = np.float32(10.0 ** random.integers(-3, 6))
    for name, weight in draft.weights.items():
        if random.integers(2) and weight.dtype == np.float32:
            with np.errstate(all="ignore"):
                draft.weights[name] = np.clip(weight * factor, -1e4, 1e4)
    if "rows" in draft.arrays and draft.arrays["rows"].dtype == np.float32:
        with np.errstate(all="ignore"):
            draft.arrays["rows"] = np.clip(draft.arrays["rows"] * factor, -1e5, 1e5)


def _names(draft: Draft, random: np.random.Generator) -> None:
    """A missing, renamed or further array."""
    part = draft.arrays if random.integers(2) else draft.weights
    name = _choice(part, random)
    if name is None:
        return
    kind = int(random.integers(3))
    if kind:
        part[["more", "items.removed", "neighbours.items", "structure.more"][int(random.integers(4))]] = part[name]
    if kind < 2:
        del part[name]


def _swap(draft: Draft, random: np.random.Generator) -> None:
    """One array in the place of another."""
    part = draft.arrays if random.integers(3) else draft.weights
    first, second = _choice(part, random), _choice(part, random)
    if first is not None and second is not None:
        part[first], part[second] = part[second], part[first]


def _settings(draft: Draft, random: np.random.Generator) -> None:
    """Another value somewhere in the settings."""
    place: Any = draft.settings
    while isinstance(place, dict | list) and place:
        key = (
            list(place)[int(random.integers(len(place)))]
            if isinstance(place, dict)
            else int(random.integers(len(place)))
        )
        inner = place[key]
        if isinstance(inner, dict | list) and inner and random.integers(4):
            place = inner
            continue
        kind = int(random.integers(8))
        if kind == 0:
            del place[key]
        elif kind == 1 and isinstance(place, dict):
            place[f"{key}s"] = inner
        elif kind < 4 and isinstance(inner, int | float):
            place[key] = inner + int(random.integers(-2, 3)) if kind == 2 else inner * int(random.integers(2, 9))
        else:
            place[key] = VALUES[int(random.integers(len(VALUES)))]
        return


def _manifest(draft: Draft, random: np.random.Generator) -> None:
    key = ["estimator", "settings", "schema", "format", "more", "digest"][int(random.integers(6))]
    value = VALUES[int(random.integers(len(VALUES)))]
    names = ["brute-force", "tdm", "item-cf", "ffm-hnsw", "youtube-dnn", "implicit-als"]
    draft.facts[key] = names[int(random.integers(6))] if key == "estimator" and random.integers(2) else value


def _bytes(draft: Draft, random: np.random.Generator) -> None:
    """Other bytes in a file, mostly in its header."""
    files = [f"{name}.npy" for name in draft.arrays] + ([WEIGHTS] if draft.weights else [])
    if not files:
        return
    name, kind = files[int(random.integers(len(files)))], int(random.integers(3))
    places, values = random.random(4), random.integers(0, 256, 4)

    def change(path: Path) -> None:
        if not (path / name).exists():
            return
        content = bytearray((path / name).read_bytes())
        if kind == 2:
            del content[int(places[0] * len(content)) :]
        for place, value in zip(places, values, strict=True):
            limit = min(len(content), 128 if kind == 0 else len(content))
            if limit:
                content[int(place * limit)] = int(value)
        (path / name).write_bytes(content)

    draft.raw.append(change)


CHANGES = (
    _arrays,
    _arrays,
    _arrays,
    _arrays,
    _weights,
    _weights,
    _scale,
    _names,
    _swap,
    _settings,
    _settings,
    _settings,
    _manifest,
    _bytes,
)


def _choice(part: dict[str, Any], random: np.random.Generator) -> str | None:
    return sorted(part)[int(random.integers(len(part)))] if part else None
