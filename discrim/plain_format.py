"""Values as bytes that any machine reads: plain numbers and JSON behind a checksum. Nothing is ever unpickled.

discrim <noun> <version>
<SHA-256 of all that follows, as hex>
{"<noun>": …, "arrays": [{"dtype": "<f8", "shape": [2, 30]}, …], "about": …}       one line of JSON, UTF-8
<the arrays' bytes, one after the other, row by row>
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from importlib.metadata import version
from typing import Any

import numpy as np
import scipy.sparse as sp

# what bytes that were made to look right can run into; a checksum says nothing about who wrote them
MALFORMED = (ArithmeticError, AttributeError, LookupError, MemoryError, RecursionError, TypeError, ValueError)


class PlainFormatError(ValueError):
    """Bytes that are not what they should be, are damaged, or were written by another version."""


class PlainFormat:
    """The form of one kind of thing (`noun`): numbers, text, arrays, lists, maps, and dataclasses among `values`."""

    error: type[PlainFormatError] = PlainFormatError
    possible = "numbers and text"
    remedy = "Make it again."

    def __init__(self, noun: str, number: int, values: Iterable[type]) -> None:
        self.noun, self.number = noun, str(number)
        self.values = {kind.__name__: kind for kind in values}

    @property
    def _first(self) -> bytes:
        return f"discrim {self.noun} ".encode()

    def to_bytes(self, value: Any, about: Mapping[str, Any] | None = None) -> bytes:
        """Return a value as bytes. about : text, numbers and lists to keep with it."""
        arrays: list[np.ndarray] = []
        described = {
            self.noun: self._described(value, arrays, type(value).__name__),
            "about": dict(about or {}),
            "versions": {name: version(name) for name in ("discrim", "numpy", "scikit-learn")},
            "arrays": [{"dtype": array.dtype.str, "shape": list(array.shape)} for array in arrays],
        }
        content = json.dumps(described, ensure_ascii=False, allow_nan=False).encode() + b"\n"
        content += b"".join(array.tobytes() for array in arrays)
        checksum = hashlib.sha256(content).hexdigest().encode()
        return self._first + self.number.encode() + b"\n" + checksum + b"\n" + content

    def from_bytes(self, data: bytes, source: Any) -> Any:
        """Return the value that was written as these bytes; `source` names their origin in errors."""
        described, content = self._checked(data, source)
        try:
            value = self._restored(described[self.noun], _arrays(described["arrays"], content))
            self._require_whole(value)
        except MALFORMED as error:
            raise self.error(f"{source} holds no {self.noun} that this discrim can read ({error}).") from error
        return value

    def _require_whole(self, value: Any) -> None:
        """Raise where what was restored is no such thing."""

    def about(self, data: bytes, source: Any) -> dict[str, Any]:
        """Return what was kept with a value."""
        kept = self._checked(data, source)[0].get("about")
        return kept if isinstance(kept, dict) else {}

    def _checked(self, data: bytes, source: Any) -> tuple[dict[str, Any], bytes]:
        """Return the description and the bytes of the arrays; raise if the checksum is wrong."""
        first, _, rest = data.partition(b"\n")
        if not first.startswith(self._first):
            raise self.error(f"{source} is not a {self.noun} of discrim: it begins with {data[:16]!r}.")
        if first != self._first + self.number.encode():
            raise self.error(
                f"{source} is a {self.noun} of format {first.removeprefix(self._first).decode(errors='replace')!r}; "
                f"this discrim knows format {self.number}. Upgrade discrim to use it."
            )
        checksum, _, content = rest.partition(b"\n")
        if hashlib.sha256(content).hexdigest().encode() != checksum:
            raise self.error(f"{source} is damaged: its content does not match its checksum. {self.remedy}")
        line, _, arrays = content.partition(b"\n")
        try:
            described = json.loads(line)
        except MALFORMED as error:
            raise self.error(f"{source} holds no {self.noun} that this discrim can read ({error}).") from error
        if not isinstance(described, dict):
            raise self.error(f"{source} holds no {self.noun} but a {type(described).__name__}.")
        return described, arrays

    # ------------------------------------------------------------------ to plain values, and back

    def _described(self, value: Any, arrays: list[np.ndarray], place: str) -> Any:
        """Return the value as JSON; arrays are collected and replaced by their numbers."""
        kind = type(value).__name__
        if is_dataclass(value) and self.values.get(kind) is type(value):
            state = {field.name: getattr(value, field.name) for field in fields(value) if field.init}
            return {"value": kind, "state": self._described(state, arrays, place)}
        if sp.issparse(value):
            rows = value.tocsr()
            pieces = self._described([rows.data, rows.indices, rows.indptr], arrays, place)
            return {"sparse": pieces, "shape": list(rows.shape)}
        if isinstance(value, np.generic):
            return self._described(np.asarray(value), arrays, place)
        if isinstance(value, np.ndarray):
            return self._described_array(value, arrays, place)
        if isinstance(value, np.dtype):
            return {"dtype": value.str}
        if isinstance(value, Mapping):
            items = [
                [self._described(key, arrays, place), self._described(one, arrays, f"{place}.{key}")]
                for key, one in value.items()
            ]
            return {"map": items}
        if isinstance(value, list | tuple):
            return {"list": [self._described(one, arrays, place) for one in value], "tuple": isinstance(value, tuple)}
        if isinstance(value, float) and not math.isfinite(value):
            return self._described(np.asarray(value), arrays, place)
        if value is None or isinstance(value, bool | int | float | str):
            return value
        what = kind if place == kind else f"{place} is a {kind}, which"
        raise TypeError(f"{what} cannot be saved. Possible are {self.possible}.")

    def _described_array(self, array: np.ndarray, arrays: list[np.ndarray], place: str) -> dict[str, Any]:
        if array.dtype.kind in "OU":
            items = [self._described(one, arrays, place) for one in array.ravel().tolist()]
            return {"items": items, "shape": list(array.shape), "text": array.dtype.kind == "U"}
        if array.dtype.kind not in "biuf":
            raise TypeError(
                f"{place} is an array of {array.dtype}, which cannot be saved. Possible are numbers and text."
            )
        little = array.dtype.newbyteorder("<")
        arrays.append(np.ascontiguousarray(array, dtype=little).reshape(array.shape))
        return {"array": len(arrays) - 1}

    def _restored(self, value: Any, arrays: list[np.ndarray]) -> Any:
        if not isinstance(value, dict):
            return value
        if "value" in value:
            return self.values[value["value"]](**self._restored(value["state"], arrays))
        if "sparse" in value:
            rows = sp.csr_array(tuple(self._restored(value["sparse"], arrays)), shape=tuple(value["shape"]))
            rows.check_format(full_check=True)  # a column that is not there would be read from foreign memory
            return rows
        if "map" in value:
            return {self._restored(key, arrays): self._restored(one, arrays) for key, one in value["map"]}
        if "list" in value:
            items = [self._restored(one, arrays) for one in value["list"]]
            return tuple(items) if value["tuple"] else items
        if "dtype" in value:
            return np.dtype(value["dtype"])
        if "items" in value:
            items = [self._restored(one, arrays) for one in value["items"]]
            if value["text"]:
                # a single text, such as a key of class_weight, is no array: arrays cannot be keys
                return np.array(items, dtype=np.str_).reshape(value["shape"])[()]
            return np.fromiter(items, dtype=object, count=len(items)).reshape(value["shape"])
        array = arrays[value["array"]]
        return array[()] if array.ndim == 0 else array


def _arrays(described: list[dict[str, Any]], data: bytes) -> list[np.ndarray]:
    """Return the arrays; raise if the content is not exactly what the description states."""
    arrays, start = [], 0
    for one in described:
        dtype, shape = np.dtype(one["dtype"]), tuple(int(size) for size in one["shape"])
        if dtype.kind not in "biuf" or min(shape, default=1) < 0:
            raise ValueError(f"an array of {dtype} and shape {shape}")
        end = start + math.prod(shape) * dtype.itemsize
        if end > len(data):
            raise ValueError(f"an array of shape {shape} that is not there")
        arrays.append(np.frombuffer(data[start:end], dtype).reshape(shape).copy())
        start = end
    if start != len(data):
        raise ValueError(f"{len(data) - start} bytes that belong to no array")
    return arrays
