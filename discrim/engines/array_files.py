"""`.npy` files as pyarrow.dataset shows others: named columns, read batch by batch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from discrim.tables.columnar import arrow, column_names
from discrim.tables.table_error import TableError
from discrim.threads import computed_once


class ArrayFile:
    """One file, of n×d numbers; its columns are called c1, c2, … ."""

    def __init__(self, path: str) -> None:
        self.path = path

    @computed_once
    def rows(self) -> Any:
        """The numbers, which stay in the file."""
        try:
            rows = np.load(self.path, mmap_mode="r")
        except (ValueError, EOFError) as error:
            raise TableError(
                f"{self.path} is no .npy file of numbers, or cut short: {error}. Write it anew, or leave it out."
            ) from error
        if rows.ndim != 2 or rows.dtype.kind not in "fiub":
            raise TableError(
                f"{self.path} holds an array of shape {rows.shape} and kind {rows.dtype}. A table is one of rows and "
                "columns of numbers, the labels in one of them."
            )
        return rows

    @computed_once
    def physical_schema(self) -> Any:
        pyarrow = arrow("pyarrow", Path(self.path))
        kind = pyarrow.from_numpy_dtype(self.rows.dtype.newbyteorder("="))
        return pyarrow.schema([(name, kind) for name in column_names([""] * self.rows.shape[1], named=False)])

    def to_batches(self, *, schema: Any, columns: Sequence[str], batch_size: int) -> Iterator[Any]:
        """As a fragment of pyarrow's gives them."""
        pyarrow = arrow("pyarrow", Path(self.path))
        at = [schema.get_field_index(name) for name in columns]
        for start in range(0, len(self.rows), batch_size):
            block = np.asarray(self.rows[start : start + batch_size, at], dtype=self.rows.dtype.newbyteorder("="))
            yield pyarrow.record_batch(list(np.asfortranarray(block).T), names=list(columns))


class ArrayFiles:
    """The files of a table, as a dataset of pyarrow's."""

    def __init__(self, files: Sequence[str]) -> None:
        self._fragments = [ArrayFile(file) for file in files]

    @property
    def schema(self) -> Any:
        return self._fragments[0].physical_schema

    def get_fragments(self) -> list[ArrayFile]:
        return self._fragments

    def count_rows(self) -> int:
        return sum(len(one.rows) for one in self._fragments)
