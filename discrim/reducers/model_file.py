"""Fitted reducers as files: plain numbers and JSON behind a checksum. Nothing is ever unpickled.

    discrim model 2
    <SHA-256 of all that follows, as hex>
    {"model": …, "arrays": [{"dtype": "<f8", "shape": [2, 30]}, …], "about": …}       one line of JSON, UTF-8
    <the arrays' bytes, one after the other, row by row>

Saved are the reducers of discrim, alone or in a scikit-learn pipeline behind an imputer and a scaler. A model that was
fitted on a stream keeps its directions, not its statistics: it transforms, and a further partial_fit begins anew.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from discrim.data.writing import whole_file
from discrim.objectives.held_out import HeldOut
from discrim.reducers.base import Reducer
from discrim.reducers.bayes_error_lda import Pairing
from discrim.registry import PUBLIC, found
from discrim.solve.shrinkage_path import PathScores

_FIRST = b"discrim model "
_VERSION = b"2"
# where the estimators of a model file stand: every reducer of the registry, their parts, and what comes before them
_ESTIMATORS: dict[str, str] = {
    **{name: entry.target for name, entry in PUBLIC.items() if entry.saved},
    "ShiftedPCA": "discrim.reducers.shifted_pca:ShiftedPCA",
    "LinearMap": "discrim.reducers.linear_map:LinearMap",
    "SimpleImputer": "sklearn.impute:SimpleImputer",
    **{name: f"sklearn.preprocessing:{name}" for name in ("StandardScaler", "MinMaxScaler", "MaxAbsScaler")},
}
_VALUES: dict[str, Any] = {kind.__name__: kind for kind in (PathScores, HeldOut, Pairing)}


# what a file that was made to look like a model can run into; its checksum says nothing about who wrote it
_MALFORMED = (ArithmeticError, AttributeError, LookupError, MemoryError, RecursionError, TypeError, ValueError)


class ModelFileError(ValueError):
    """A file that is no model of discrim, is damaged, or was written by another version."""


def save(model: Any, path: str | os.PathLike[str], *, about: Mapping[str, Any] | None = None) -> None:
    """Write a fitted reducer, or a pipeline of a scaler and a reducer, to `path`; whole or not at all.

    about : text, numbers and lists to keep with it, such as the names of the columns
    """
    check_is_fitted(model)
    arrays: list[np.ndarray] = []
    described = {
        "model": _described(model, arrays, type(model).__name__),
        "about": dict(about or {}),
        "versions": {name: version(name) for name in ("discrim", "numpy", "scikit-learn")},
        "arrays": [{"dtype": array.dtype.str, "shape": list(array.shape)} for array in arrays],
    }
    content = json.dumps(described, ensure_ascii=False, allow_nan=False).encode() + b"\n"
    content += b"".join(array.tobytes() for array in arrays)
    checksum = hashlib.sha256(content).hexdigest().encode()
    with whole_file(path) as handle:
        handle.write(_FIRST + _VERSION + b"\n" + checksum + b"\n" + content)


def load(path: str | os.PathLike[str]) -> Any:
    """The model that was saved to `path`."""
    described, content = _checked(Path(path))
    try:
        model = _restored(described["model"], _arrays(described["arrays"], content))
        for step in [one for _, one in model.steps] if isinstance(model, Pipeline) else [model]:
            if not isinstance(step, BaseEstimator):
                raise TypeError(f"a {type(step).__name__} where an estimator belongs")
            check_is_fitted(step)
    except _MALFORMED as error:
        raise ModelFileError(f"{path} holds no model that this discrim can read ({error}).") from error
    return model


def about(path: str | os.PathLike[str]) -> dict[str, Any]:
    """What was kept with the model."""
    kept = _checked(Path(path))[0].get("about")
    return kept if isinstance(kept, dict) else {}


def _checked(path: Path) -> tuple[dict[str, Any], bytes]:
    """The description and the arrays' bytes of a file whose checksum is right."""
    whole = path.read_bytes()
    first, _, rest = whole.partition(b"\n")
    if not first.startswith(_FIRST):
        raise ModelFileError(f"{path} is not a model of discrim: it begins with {whole[:16]!r}.")
    if first != _FIRST + _VERSION:
        raise ModelFileError(
            f"{path} is a model of format {first.removeprefix(_FIRST).decode(errors='replace')!r}; this discrim knows "
            f"format {_VERSION.decode()}. Upgrade discrim to use it."
        )
    checksum, _, content = rest.partition(b"\n")
    if hashlib.sha256(content).hexdigest().encode() != checksum:
        raise ModelFileError(f"{path} is damaged: its content does not match its checksum. Fit and save it again.")
    line, _, data = content.partition(b"\n")
    try:
        described = json.loads(line)
    except _MALFORMED as error:
        raise ModelFileError(f"{path} holds no model that this discrim can read ({error}).") from error
    if not isinstance(described, dict):
        raise ModelFileError(f"{path} holds no model but a {type(described).__name__}.")
    return described, data


# ---------------------------------------------------------------------- to plain values


def _described(value: Any, arrays: list[np.ndarray], place: str) -> Any:
    """The value as JSON; arrays are put aside and stand there by their number."""
    if isinstance(value, Pipeline):
        return {"pipeline": [[name, _described(step, arrays, f"{place}.{name}")] for name, step in value.steps]}
    kind = type(value).__name__
    if kind in _ESTIMATORS and found(_ESTIMATORS[kind]) is type(value):
        return {"estimator": kind, "state": _described(_state(value), arrays, kind)}
    if is_dataclass(value) and _VALUES.get(kind) is type(value):
        state = {field.name: getattr(value, field.name) for field in fields(value)}
        return {"value": kind, "state": _described(state, arrays, place)}
    if isinstance(value, np.generic):
        return _described(np.asarray(value), arrays, place)
    if isinstance(value, np.ndarray):
        return _described_array(value, arrays, place)
    if isinstance(value, np.dtype):
        return {"dtype": value.str}
    if isinstance(value, Mapping):
        items = [
            [_described(key, arrays, place), _described(one, arrays, f"{place}.{key}")] for key, one in value.items()
        ]
        return {"map": items}
    if isinstance(value, list | tuple):
        return {"list": [_described(one, arrays, place) for one in value], "tuple": isinstance(value, tuple)}
    if isinstance(value, float) and not math.isfinite(value):
        return _described(np.asarray(value), arrays, place)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise TypeError(
        f"{place} is a {kind}, which cannot be saved. Possible are the reducers of discrim with numbers and text for "
        "parameters, alone or in a pipeline behind SimpleImputer, StandardScaler, MinMaxScaler or MaxAbsScaler."
    )


def _state(estimator: Any) -> dict[str, Any]:
    """All that an estimator knows; of a stream the directions, solved now, without the statistics."""
    if not isinstance(estimator, Reducer) or not estimator.__sklearn_is_fitted__():
        return vars(estimator)
    estimator._require_solution()
    return {**vars(estimator), "_moments": None}


def _described_array(array: np.ndarray, arrays: list[np.ndarray], place: str) -> dict[str, Any]:
    if array.dtype.kind in "OU":
        items = [_described(one, arrays, place) for one in array.ravel().tolist()]
        return {"items": items, "shape": list(array.shape), "text": array.dtype.kind == "U"}
    if array.dtype.kind not in "biuf":
        raise TypeError(f"{place} is an array of {array.dtype}, which cannot be saved. Possible are numbers and text.")
    little = array.dtype.newbyteorder("<")
    arrays.append(np.ascontiguousarray(array, dtype=little).reshape(array.shape))
    return {"array": len(arrays) - 1}


# ---------------------------------------------------------------------- and back


def _arrays(described: list[dict[str, Any]], data: bytes) -> list[np.ndarray]:
    """The arrays of the file; what the description claims must be exactly what is there."""
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


def _restored(value: Any, arrays: list[np.ndarray]) -> Any:
    if not isinstance(value, dict):
        return value
    if "pipeline" in value:
        return Pipeline([(name, _restored(step, arrays)) for name, step in value["pipeline"]])
    if "estimator" in value:
        kind = found(_ESTIMATORS[value["estimator"]])
        estimator = kind.__new__(kind)
        vars(estimator).update(_restored(value["state"], arrays))
        return estimator
    if "value" in value:
        return _VALUES[value["value"]](**_restored(value["state"], arrays))
    if "map" in value:
        return {_restored(key, arrays): _restored(one, arrays) for key, one in value["map"]}
    if "list" in value:
        items = [_restored(one, arrays) for one in value["list"]]
        return tuple(items) if value["tuple"] else items
    if "dtype" in value:
        return np.dtype(value["dtype"])
    if "items" in value:
        items = [_restored(one, arrays) for one in value["items"]]
        flat = np.array(items, dtype=np.str_) if value["text"] else np.fromiter(items, dtype=object, count=len(items))
        return flat.reshape(value["shape"])
    array = arrays[value["array"]]
    return array[()] if array.ndim == 0 else array
