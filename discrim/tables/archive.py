"""Files of arrays: .npz archives and .h5ad files of AnnData.

An .npz archive has dense rows (arrays X and target or y) or CSR rows (data, indices, indptr, shape and target). Of an
.h5ad file, X of the cells, labels from a column of obs and the names of the genes from var are read, and nothing else.

Nothing is unpickled, and no size in a header is believed: every array must take exactly the bytes its header
claims before memory is set aside for it.
"""

from __future__ import annotations

import math
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from scipy.sparse import csr_array, issparse

from discrim.tables.cells import Dialect, as_integers, label_of, normal_cell
from discrim.tables.formats import MissingExtraError
from discrim.tables.labelled_table import LabelledTable, normal_text
from discrim.tables.table_error import MAX_BYTES, TableError, meant, plural, quoted, require_memory

_CSR = ("data", "indices", "indptr", "shape")
_LABELS = ("target", "y", "labels")
NAMES = "obs_names"  # what AnnData calls the names of the cells


@dataclass(frozen=True)
class Archive:
    """Content of a file of arrays: rows, and labels and column names if it has any."""

    X: Any  # float64 array or CSR array
    labels: list[Any] | None
    target: str | None
    feature_names: tuple[str, ...] | None
    ids: np.ndarray | None = None
    id_name: str | None = None
    wanted: str = "add an array called target with one label per row."  # what to do where there are no labels


def read_archive(path: Path, target: str | None, id_array: str | None = None, max_bytes: int = MAX_BYTES) -> Archive:
    """Return the checked arrays of a file; missing cells are NaN.

    `target` names the label array; None: target, y or labels, if there. `id_array` names one of the rows' names.
    """
    try:
        with zipfile.ZipFile(path) as files:
            return _read(path, _Members(files, path, max_bytes), target, id_array)
    except (FileNotFoundError, PermissionError, IsADirectoryError):
        raise
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, NotImplementedError, RuntimeError) as error:
        raise TableError(f"{path} is not a readable .npz archive: damaged or cut short ({error}).") from error


def write_archive(handle: IO[bytes], table: LabelledTable) -> None:
    """Write a labelled table in the form that `read_archive` reads."""
    rows: dict[str, Any] = {"X": table.X}
    if issparse(table.X):
        X = table.X
        rows = {"data": X.data, "indices": X.indices, "indptr": X.indptr, "shape": np.array(X.shape)}
    np.savez_compressed(handle, target=table.y, feature_names=np.array(table.feature_names), **rows)


class _Members:
    """The arrays inside the archive, each read once and only on access."""

    def __init__(self, files: zipfile.ZipFile, path: Path, max_bytes: int) -> None:
        self._files, self._path, self._taken, self.max_bytes = files, path, 0, max_bytes
        self.names = [name.removesuffix(".npy") for name in files.namelist()]

    def __getitem__(self, name: str) -> np.ndarray:
        if name not in self.names:
            raise TableError(f"{self._path} has no array {name!r}. {meant(name, self.names, 'It has')}")
        info = self._files.getinfo(f"{name}.npy")
        self._taken += info.file_size
        require_memory(self._path, self._taken, self.max_bytes, is_known=False)
        with self._files.open(info) as handle:
            try:
                return _array(handle, info.file_size)
            except ValueError as error:
                raise TableError(f"{self._path}, array {name!r}: {error}") from error

    def of_rows(self, name: str, n_rows: int) -> list[Any]:
        """Return an array with a value for each row."""
        values = self[name]
        if values.shape != (n_rows,):
            raise TableError(
                f"{self._path}, array {name!r}: shape {values.shape}, but there are {plural(n_rows, 'row')}."
            )
        return list(values.tolist())


def _array(handle: IO[bytes], size: int) -> np.ndarray:
    version = np.lib.format.read_magic(handle)
    if version not in ((1, 0), (2, 0)):
        raise ValueError(f"unknown .npy version {version}.")
    header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, fortran, dtype = header(handle)
    if dtype.hasobject:
        raise ValueError("holds Python objects, which are never unpickled. Save plain numbers or text.")
    content = handle.read(size)
    if len(content) != math.prod(shape) * dtype.itemsize:
        raise ValueError(f"its header claims shape {shape}, which {len(content):,} bytes cannot be.")
    return np.frombuffer(content, dtype=dtype).reshape(shape, order="F" if fortran else "C")


def _read(path: Path, members: _Members, target: str | None, id_array: str | None) -> Archive:
    X = _rows(path, members)
    if target is None:
        target = next((name for name in _LABELS if name in members.names), None)
    labels = None
    if target is not None:
        labels = labels_of(f"{path}, array {target!r}", members.of_rows(target, X.shape[0]))
    names = None
    if "feature_names" in members.names:
        names = tuple(normal_text(str(name)) for name in members["feature_names"].ravel())
        if len(names) != X.shape[1]:
            raise TableError(f"{path}: {len(names)} feature_names for {plural(X.shape[1], 'column')}.")
    ids = None
    if id_array is not None:
        ids = np.array([normal_cell(one) for one in members.of_rows(id_array, X.shape[0])])
    return Archive(X, labels, target, names, ids, id_array)


def labels_of(place: str, values: Sequence[Any]) -> list[Any]:
    """Return labels in their type: bool, integers where all are whole numbers, else text; none may be missing."""
    labels = [label_of(value, Dialect(), place) for value in values]
    if absent := [row for row, label in enumerate(labels) if label is None]:
        raise TableError(
            f"{place}, row {absent[0] + 1}: {plural(len(absent), 'label')} missing. Leave these rows out before the "
            "file is written."
        )
    kinds = {"number" if type(label) in (int, float) else type(label).__name__ for label in labels}
    if len(kinds) > 1:
        raise TableError(f"{place}: labels must be of one type; got {', '.join(sorted(kinds))}. Write all as text.")
    if kinds != {"number"}:
        return labels
    whole = as_integers(labels)
    return [str(float(label)) for label in labels] if whole is None else list(whole)


def _rows(path: Path, members: _Members) -> Any:
    if set(_CSR) <= set(members.names):
        X = _csr(path, members)
    elif "X" in members.names:
        X = _numbers(path, "X", members["X"])
        if X.ndim != 2:
            raise TableError(f"{path}, array 'X': shape {X.shape}; rows × columns are needed.")
    else:
        raise TableError(
            f"{path} holds {quoted(members.names)}. Needed: X, or {', '.join(_CSR)} of a CSR matrix; and target."
        )
    if 0 in X.shape:
        raise TableError(f"{path} is empty: {X.shape[0]} rows × {X.shape[1]} columns.")
    # A sparse matrix can claim any number of columns; each has at least a name and a mean.
    require_memory(path, 100 * X.shape[1], members.max_bytes)
    return X


def _numbers(path: Path, name: str, values: np.ndarray) -> np.ndarray:
    if values.dtype.kind not in "buif":
        raise TableError(f"{path}, array {name!r}: {values.dtype} instead of real numbers.")
    return values.astype(np.float64)


def _csr(path: Path, members: _Members) -> csr_array:
    if "format" in members.names and members["format"].tobytes().strip(b"\0") != b"csr":
        raise TableError(f"{path} holds a sparse matrix in another format than CSR: save it as CSR.")
    values, indices, indptr, shape = (members[name] for name in _CSR)
    if (
        indices.dtype.kind not in "iu"
        or indptr.dtype.kind not in "iu"
        or shape.dtype.kind not in "iu"
        or shape.size != 2
    ):
        raise TableError(f"{path}: indices, indptr and shape (two numbers) of a CSR matrix must be integers.")
    try:
        X = csr_array((_numbers(path, "data", values), indices, indptr), shape=tuple(shape.ravel().tolist()), copy=True)
        X.check_format(full_check=True)
    except (ValueError, IndexError, OverflowError) as error:
        raise TableError(f"{path}: data, indices, indptr and shape do not make a CSR matrix ({error}).") from error
    X.sum_duplicates()
    return X


# ---------------------------------------------------------------------- .h5ad files


def read_annotated(path: Path, target: str | None, id_column: str | None, max_bytes: int = MAX_BYTES) -> Archive:
    """Return cells as rows with the labels of obs[target], if named; ids are obs[id_column], or obs_names."""
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
