""".h5ad files of AnnData: X of the cells, labels from a column of obs, names of the genes from var.

Only these are read: neither layers nor anything else that the file holds.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse

from discrim.tables.archive import Archive, labels_of
from discrim.tables.formats import MissingExtraError
from discrim.tables.labelled_table import normal_text
from discrim.tables.table_error import MAX_BYTES, TableError, meant, plural, quoted, require_memory

NAMES = "obs_names"  # what AnnData calls the names of the cells


def read_annotated(path: Path, target: str | None, id_column: str | None, max_bytes: int = MAX_BYTES) -> Archive:
    """Cells as rows with the labels of obs[target] (none without a name); ids are obs[id_column], or obs_names."""
    try:
        import h5py
        from anndata.io import read_elem
    except ImportError as error:
        raise MissingExtraError(
            f"{path}: reading .h5ad files takes anndata, which is not installed. Install it with "
            "pip install 'discrim[anndata]'."
        ) from error
    if not path.is_file():
        raise FileNotFoundError(2, "No such file", str(path))
    try:
        with h5py.File(path) as file:
            lacking = [name for name in ("X", "obs", "var") if name not in file]
            if lacking:
                raise TableError(f"{path} is no AnnData file: it has no {quoted(lacking)}.")
            require_memory(path, _bytes(file["X"]), max_bytes)
            X, obs, var = (read_elem(file[name]) for name in ("X", "obs", "var"))
    except (OSError, KeyError, ValueError) as error:
        if isinstance(error, TableError):
            raise
        raise TableError(f"{path} is not a readable .h5ad file: damaged or cut short ({error}).") from error
    names = tuple(normal_text(str(name)) for name in var.index)
    labels = None if target is None else labels_of(f"{path}, obs[{target!r}]", _values(path, obs, target, "target"))
    ids = obs.index if id_column in (None, NAMES) else _values(path, obs, id_column, "id")
    rows = csr_array(X, dtype=np.float64) if issparse(X) else np.asarray(X, dtype=np.float64)
    if 0 in rows.shape:
        raise TableError(f"{path} is empty: {rows.shape[0]} cells × {rows.shape[1]} genes.")
    wanted = (
        f"name the column of obs with the classes as target; there are {quoted([str(one) for one in obs.columns])}."
    )
    called = np.array([normal_text(str(one)) for one in ids], dtype=np.str_)
    return Archive(rows, labels, target, names, called, id_column or NAMES, wanted)


def _bytes(X: Any) -> int:
    """Return the bytes of X as doubles, from its header alone."""
    if hasattr(X, "shape"):
        return int(np.prod(X.shape, dtype=np.float64)) * 8
    return int(X["data"].shape[0]) * 16 + int(X["indptr"].shape[0]) * 8


def _values(path: Path, obs: Any, name: str, role: str) -> list[Any]:
    """Return a column of obs, none of whose cells is missing."""
    if name not in obs:
        raise TableError(f"{path}: obs has no column {name!r} ({role}). {meant(name, map(str, obs.columns), 'It has')}")
    column = obs[name]
    absent = column.isna().to_numpy()
    if absent.any():
        raise TableError(
            f"{path}, obs[{name!r}]: {plural(int(absent.sum()), 'cell')} without a value, the first is "
            f"{obs.index[int(np.argmax(absent))]!r}. Leave these cells out before the file is written."
        )
    return list(column)
