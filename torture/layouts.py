"""A table in many layouts: files and parts, formats, types and column orders give the same model."""

from __future__ import annotations

import gzip
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq

from discrim import MaximumMarginCriterion
from discrim.tables.read import read_table
from discrim.tables.writing import write_table
from torture.outcome import Outcome

FORMATS = ("csv", "csv.gz", "tsv", "parquet", "feather", "npy")
LABELS: tuple[tuple[Any, ...], ...] = (
    (0, 1, 2),
    (7, -3),
    (True, False),
    ("x", "y", "café"),
    ("01", "1"),
    ("=a", "a,b"),
)


def ways_in(rng: np.random.Generator, until: float) -> Outcome:
    """Write random tables in two random layouts each, and fit both."""
    outcome = Outcome("tables written in two layouts (format, parts, types, order of columns)", "the same model")
    while time.monotonic() < until:
        table = drawn_table(rng)
        with tempfile.TemporaryDirectory() as folder:
            paths = [written(rng, Path(folder) / f"{at}", table) for at in range(2)]
            with outcome.run(of=f"{[path.name for path in paths]}: "):
                models = [fitted(path) for path in paths]
                if not same(*models):
                    shapes = [sorted(one.name for one in path.rglob("*")) or path.name for path in paths]
                    outcome.faults.append(f"{shapes}: classes {models[0][0]} and {models[1][0]}"[:300])
    return outcome


def drawn_table(rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Return columns of integers, halves and booleans, which every numeric type holds exactly, and labels."""
    n_rows, n_columns = int(rng.integers(6, 40)), int(rng.integers(1, 5))
    kinds = [rng.integers(-9, 100, n_rows), rng.integers(-9, 9, n_rows) / 2, rng.integers(0, 2, n_rows)]
    columns = {f"f{at}": kinds[rng.integers(3)] + 0.0 for at in range(n_columns)}
    columns["f0"] = rng.permutation(n_rows) / 4  # at least one column is not constant
    labels = LABELS[rng.integers(len(LABELS))]
    return columns | {"t": np.array([labels[at % len(labels)] for at in rng.permutation(n_rows)])}


def written(rng: np.random.Generator, place: Path, table: dict[str, np.ndarray]) -> Path:
    """Write a table in a random layout; return the file, or the folder of its parts."""
    labels = table["t"].dtype.kind
    ending = FORMATS[rng.integers(len(FORMATS) - (labels not in "iu"))]
    if labels == "b" and "sv" in ending:
        ending = "parquet"  # booleans are text in a delimited file
    place.mkdir(parents=True)
    n_rows = len(table["t"])
    cuts = np.sort(rng.integers(0, n_rows + 1, int(rng.integers(0, 4))))
    for number, rows in enumerate(np.split(np.arange(n_rows), cuts)):
        part = {name: values[rows] for name, values in table.items()}
        order = list(part) if ending == "npy" else list(rng.permutation(list(part)))
        write_part(rng, place / f"p{number}.{ending}", {str(name): part[name] for name in order})
    return place if len(cuts) or rng.integers(2) else place / f"p0.{ending}"


def write_part(rng: np.random.Generator, path: Path, part: dict[str, np.ndarray]) -> None:
    """Write one file, each column in a random type that holds its numbers exactly."""
    if path.suffix == ".npy":
        np.save(path, np.column_stack(list(part.values())).astype(rng.choice(["<f8", ">f8", "<f4"])))
        return
    if path.suffix in (".csv", ".gz", ".tsv"):
        if len(part["t"]):
            write_table(path, part)
        else:
            content = ("\t" if path.suffix == ".tsv" else ",").join(part).encode() + b"\n"
            path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
        return
    columns = {name: values if name == "t" else retyped(rng, values) for name, values in part.items()}
    arrays = pa.table({n: c if isinstance(c, pa.Array) else pa.array(c.tolist() or c) for n, c in columns.items()})
    (pq.write_table if path.suffix == ".parquet" else feather.write_feather)(arrays, str(path))


def retyped(rng: np.random.Generator, values: np.ndarray) -> Any:
    """Return numbers in a random type that holds them exactly."""
    types = [np.float64, np.float32, np.float16]
    if (values == np.round(values)).all():
        types += [np.int64, np.int16]
    if np.isin(values, (0, 1)).all():
        types.append(np.bool_)
    return pa.array(values.astype(types[rng.integers(len(types))]))


def fitted(path: Path) -> tuple[list[Any], np.ndarray, np.ndarray]:
    """Return classes, directions and sorted rows of a table; raise if batches and memory differ."""
    target = "t" if not any(path.rglob("*.npy")) and path.suffix != ".npy" else None
    table = read_table(path, target)
    label = table.target
    model = MaximumMarginCriterion(1).fit(path, label)
    again = MaximumMarginCriterion(1).fit(table.X.astype(np.float64), table.y)
    order = np.argsort(table.feature_names)
    if model.classes_.tolist() != again.classes_.tolist():
        raise AssertionError(f"classes {model.classes_} in parts and {again.classes_} in memory")
    rows = np.column_stack([table.X[:, order], np.searchsorted(model.classes_, table.y)])
    components = model.components_[:, np.argsort(model.feature_names_in_)]
    np.testing.assert_allclose(np.abs(model.components_), np.abs(again.components_), atol=2e-5)
    return model.classes_.tolist(), components, rows[np.lexsort(rows.T)]


def same(one: tuple[Any, ...], other: tuple[Any, ...]) -> bool:
    """Return True if two fits agree in classes and their types, in rows, and in directions up to sign."""
    types = [[type(label) for label in classes] for classes in (one[0], other[0])]
    if one[0] != other[0] or types[0] != types[1] or not np.array_equal(one[2], other[2]):
        return False
    return bool(np.allclose(np.abs(one[1]), np.abs(other[1]), atol=2e-5))
