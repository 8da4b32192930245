"""Named arrays in one safetensors file.

The format is a length, a JSON header and the bytes of the arrays. It is written here and not by the safetensors
package, whose temporary file and rename are outside of our control and of our tests of crashes. The bytes are the same.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pathdex.storage.filesystem import write_file

_DTYPES = {
    np.dtype(name): tag
    for name, tag in {
        "?": "BOOL",
        "u1": "U8",
        "i1": "I8",
        "<i2": "I16",
        "<u2": "U16",
        "<f2": "F16",
        "<i4": "I32",
        "<u4": "U32",
        "<f4": "F32",
        "<f8": "F64",
        "<i8": "I64",
        "<u8": "U64",
    }.items()
}
"""In the order of the safetensors package, which writes the last of these first."""
_ALIGNMENT = 8


def write_tensors(file: Path, arrays: Mapping[str, NDArray[Any]], *, metadata: Mapping[str, str] | None = None) -> None:
    """Write arrays and text metadata to a new file, not yet synced."""
    order = list(_DTYPES)
    little = {name: np.ascontiguousarray(array, array.dtype.newbyteorder("<")) for name, array in arrays.items()}
    ordered = sorted(little.items(), key=lambda entry: (-order.index(entry[1].dtype), entry[0]))
    header: dict[str, Any] = {} if metadata is None else {"__metadata__": dict(sorted(metadata.items()))}
    end = 0
    for name, array in ordered:
        start, end = end, end + array.nbytes
        header[name] = {"dtype": _DTYPES[array.dtype], "shape": list(array.shape), "data_offsets": [start, end]}
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % _ALIGNMENT)
    blocks = [array.reshape(-1).view(np.uint8).data for _, array in ordered]
    write_file(file, [len(text).to_bytes(8, "little") + text, *blocks])
