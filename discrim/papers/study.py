"""Studies of the papers as TOML files: protocol, conventions, and the printed figures cell by cell.

The files are in the folder `studies`; users can write their own. A table of a study is a data set with cells

    [method, K, classifier, printed, its deviation, reference, its deviation]

in the paper's own names; the study maps them to our methods and classifiers. K = 0 means all features. A figure of the
paper is a table without printed values: every method with every K and classifier, and the kind of chart.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import ndimage

from discrim.evaluation.classifiers import named
from discrim.evaluation.protocol import Holdout, Indices, Protocol, Split, named_protocol
from discrim.tables import catalogue
from discrim.tables.labelled_table import LabelledTable
from discrim.tables.read import read_table

_FOLDER = Path(__file__).with_name("studies")


class PrintedCell(NamedTuple):
    """Cell of a paper's table."""

    method: str
    k: int
    classifier: str
    printed: float = math.nan
    printed_deviation: float = math.nan
    reference: float = math.nan
    reference_deviation: float = math.nan
    measure: str = "accuracy"


@dataclass(frozen=True)
class Names:
    """Our names of the paper's methods and classifiers."""

    methods: Mapping[str, str]
    classifiers: Mapping[str, str]


@dataclass(frozen=True)
class AllRows(Protocol):
    """Protocol with all rows in the training set and in the test set, for examples that only illustrate a method."""

    def _splits_of_codes(self, codes: Indices, seed: int) -> Iterator[Split]:
        yield np.arange(len(codes)), np.arange(len(codes))

    def _smallest_class(self) -> int:
        return 1


@dataclass(frozen=True)
class PrintedTable:
    """Cells of a table, or points of a figure, on one data set, with the protocol and preparation of its rows.

    against : method or classifier that t and sign tests compare a cell with
    drawn : kind of chart of a figure: "curves" over K, "splits" one by one, "shifts", "embedding",
        "scatter", "directions", "boundaries" or "merged" (docs/reproduce.md)
    train, per_class : number of training rows, in total or of each class, if the protocol does not set it
    """

    name: str
    dataset: str
    cells: tuple[PrintedCell, ...]
    names: Names
    protocol: str
    splits: int
    draws: int = 1
    prepare: str = ""
    classes: tuple[str, ...] = ()
    train: int | None = None
    per_class: int | None = None
    against: str = ""
    drawn: str = ""

    @property
    def title(self) -> str:
        kind = "" if " " in self.name else "Figure " if self.drawn else "Table "
        return f"{kind}{self.name}, {self.dataset}"

    def opponent(self, cell: PrintedCell) -> PrintedCell:
        """Return the cell that a cell is compared with."""
        if self.against in self.names.methods:
            return cell._replace(method=self.against)
        return cell._replace(classifier=self.against)

    def splitting(self, n_rows: int) -> Protocol:
        """Return the protocol with the paper's sizes."""
        if self.protocol == "all-rows":
            return AllRows("all-rows", 1)
        if self.train is None:
            return named_protocol(self.protocol, n_splits=self.splits, per_class=self.per_class)
        return Holdout(f"holdout-{self.train}", self.splits, test_share=1 - self.train / n_rows)


@dataclass(frozen=True)
class Study:
    """Experiments of a paper. `valid`: names with valid conventions; `claims` are compared with `baseline`."""

    name: str
    title: str
    by: str
    tolerance: float
    valid: Names | None
    baseline: str
    claims: tuple[str, ...]
    tables: tuple[PrintedTable, ...] = field(repr=False)
    left_out: Mapping[str, str] = field(default_factory=dict)
    folder: Path = Path()

    def part(self, table: str | None = None, dataset: str | None = None, figure: str | None = None) -> Study:
        """Return the study with one table, figure ("all" for each) or data set only; without a figure its tables."""
        drawn = figure is not None
        name = figure if drawn else table
        chosen = tuple(
            one
            for one in self.tables
            if bool(one.drawn) == drawn
            and (name in (None, "all") or one.name.lower() == str(name).lower())
            and (dataset is None or one.dataset == dataset)
        )
        if not chosen:
            self._refuse(table, figure, dataset)
        return replace(self, tables=chosen)

    def _refuse(self, table: str | None, figure: str | None, dataset: str | None) -> None:
        why = [
            f"{what} {self.left_out[what]}" for what in (f"table {table}", f"figure {figure}") if what in self.left_out
        ]
        if why:
            raise ValueError(f"{self.name}: {why[0]}")
        kind = "figure" if figure else "table"
        listed = dict.fromkeys(f"{one.name} ({one.dataset})" for one in self.tables if bool(one.drawn) == bool(figure))
        if not listed:
            other = "table" if figure else "figure"
            names = ", ".join(dict.fromkeys(one.name for one in self.tables))
            raise ValueError(f"--{other} must be one of {names} or all: {self.name} has no {kind}s.")
        got = ", ".join(f"{name} {value}" for name, value in ((kind, figure or table), ("dataset", dataset)) if value)
        raise ValueError(f"--{kind} and --dataset must be one of {', '.join(listed)} of {self.name}; got {got}.")

    def rows_of(self, table: PrintedTable, draw: int = 0) -> LabelledTable:
        """Return the table's rows as the paper's experiment uses them; simulated data are new in each draw."""
        if table.dataset in MADE_UP:
            return prepared(MADE_UP[table.dataset](draw), table)
        path = self._file_of(table.dataset)
        return prepared(
            catalogue.load(table.dataset, download=False) if path is None else read_table(path, None), table
        )

    def absent(self, dataset: str) -> str:
        """Return the reason why a data set is not available; empty if it is."""
        path = self._file_of(dataset)
        if dataset in MADE_UP or (path is not None and path.is_file()):
            return ""
        if path is not None:
            return f"there is no file {path}"
        place = catalogue.where(dataset)
        return "" if place.here else place.place

    def _file_of(self, dataset: str) -> Path | None:
        return self.folder / dataset if Path(dataset).suffix else None


# ---------------------------------------------------------------------- reading


def study_names() -> list[str]:
    return sorted(path.stem.replace("_", "-") for path in _FOLDER.glob("*.toml"))


def study(name: str) -> Study:
    """Return the study of that name."""
    named(name, dict.fromkeys(study_names()), "study")
    return read_study(_FOLDER / f"{name.replace('-', '_')}.toml", name)


def read_study(path: str | Path, name: str = "") -> Study:
    """Read a study from a file; a data set with a suffix is a file in the same folder."""
    path = Path(path)
    try:
        listed = tomllib.loads(path.read_text(encoding="utf-8"))
        return _study(listed, name or path.stem, path.parent)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} must be a TOML file: {error}.") from None
    except KeyError as error:
        raise ValueError(f"{path}: {error.args[0]} is missing. docs/reproduce.md shows a study.") from None
    except TypeError as error:
        raise ValueError(f"{path}: {error}. docs/reproduce.md shows a study.") from None


_OF_ALL = ("protocol", "splits", "draws", "prepare", "measure")
_OF_A_TABLE = {one.name for one in fields(PrintedTable)} | {"methods", "classifiers", "measure", "features"}
_OF_A_FIGURE = _OF_A_TABLE - {"cells"} | {"counts", "take", "measures", "shifts"}


def _study(listed: dict[str, Any], name: str, folder: Path) -> Study:
    valid = listed.get("valid")
    common: dict[str, Any] = {key: listed[key] for key in _OF_ALL if key in listed}
    common["names"] = Names(listed["methods"], listed["classifiers"])
    of_data = listed.get("datasets", {})
    found: list[PrintedTable] = []
    for key, make, known in (("tables", _table, _OF_A_TABLE), ("figures", _figure, _OF_A_FIGURE)):
        for one in listed.get(key, ()):
            if strange := sorted(set(one) - known):
                may = ", ".join(sorted(known - {"names"}))
                raise TypeError(
                    f"keys of {key[:-1]} {one.get('name', '')} must be among {may}; got {', '.join(strange)}"
                )
            whole = {**common, **of_data.get(one["dataset"], {}), **one}
            if missing := [needed for needed in ("name", "dataset", "protocol", "splits") if needed not in whole]:
                raise KeyError(f"{missing[0]} of a {key[:-1]}")
            found.append(make(whole))
    return Study(
        name=name,
        title=listed["title"],
        by=listed.get("by", ""),
        tolerance=listed.get("tolerance", math.inf),
        valid=None if valid is None else Names(valid["methods"], valid["classifiers"]),
        baseline=listed.get("baseline", ""),
        claims=tuple(listed.get("claims", ())),
        tables=tuple(found),
        left_out=listed.get("left_out", {}),
        folder=folder,
    )


def _table(one: dict[str, Any]) -> PrintedTable:
    cells, measure = one.pop("cells"), one.pop("measure", "accuracy")
    by_measure = cells if isinstance(cells, dict) else {measure: cells}
    return _made(one, [_cell(cell, which) for which, some in by_measure.items() for cell in some])


def _cell(listed: list[Any], measure: str) -> PrintedCell:
    if not 4 <= len(listed) <= 7:
        entries = ", ".join(PrintedCell._fields[:7]).replace("_", " ")
        raise TypeError(f"a cell must be [{entries}], the last three optional; got {listed}")
    return PrintedCell(*listed)._replace(measure=measure)


def _figure(one: dict[str, Any]) -> PrintedTable:
    """Return all points of a figure.

    `take`: its methods (with `shifts`, each shifted) and classifiers; `counts`: its K.
    """
    (methods, classifiers), counts = one.pop("take"), one.pop("counts")
    if shifts := one.pop("shifts", ()):
        known = one["names"].methods
        shifted = {(m, s): f"{m} {s:g}" if s else m for m in methods for s in shifts}
        one["methods"] = {name: known[m] + (f" shifted by {s:g}" if s else "") for (m, s), name in shifted.items()}
        methods = list(shifted.values())
    measures = one.pop("measures", [one.pop("measure", "accuracy")])
    one.pop("measure", None)
    counts = range(1, counts + 1) if isinstance(counts, int) else counts
    every = product(measures, classifiers, methods, counts)
    return _made(one, [PrintedCell(m, k, c, measure=measure) for measure, c, m, k in every])


def _made(one: dict[str, Any], cells: list[PrintedCell]) -> PrintedTable:
    """Return the table; {features} in a method's name is replaced by the data set's value."""
    common, features = one.pop("names"), one.pop("features", "")
    methods = {**common.methods, **one.pop("methods", {})}
    methods = {name: method.replace("{features}", features) for name, method in methods.items()}
    names = Names(methods, {**common.classifiers, **one.pop("classifiers", {})})
    for cell in cells:
        named(cell.method, dict(names.methods), "method of the study")
        named(cell.classifier, dict(names.classifiers), "classifier of the study")
    return PrintedTable(**{**one, "cells": tuple(cells), "names": names, "classes": tuple(one.get("classes", ()))})


# ---------------------------------------------------------------------- preparation before any split


def prepared(table: LabelledTable, printed: PrintedTable) -> LabelledTable:
    """Return the rows as the paper's experiment uses them."""
    table = table.for_evaluation()
    if printed.classes:
        kept = np.isin(table.y, printed.classes)
        table = replace(table, X=table.X[kept], y=table.y[kept])
    return table if not printed.prepare else named(printed.prepare, PREPARATIONS, "preparation")(table)


def standardised_to_smaller_class(table: LabelledTable) -> LabelledTable:
    """Standardise to mean 0 and variance 1 in the smaller class; drop columns that are constant there."""
    counts = table.class_counts()
    smaller = table.X[table.y == min(counts, key=lambda label: counts[label])]
    deviations = smaller.std(axis=0)
    kept = deviations > 1e-10 * np.abs(smaller).max(axis=0)
    X = (table.X[:, kept] - smaller[:, kept].mean(axis=0)) / deviations[kept]
    return replace(table, X=X, feature_names=tuple(np.array(table.feature_names)[kept].tolist()))


def rows_standardised(table: LabelledTable) -> LabelledTable:
    """Standardise each row to mean 0 and variance 1, as is usual for microarrays."""
    centred = table.X - table.X.mean(axis=1, keepdims=True)
    return replace(table, X=centred / centred.std(axis=1, keepdims=True))


def rows_of_length_1(table: LabelledTable) -> LabelledTable:
    """Divide each row by its length, as is usual for faces."""
    return replace(table, X=table.X / np.linalg.norm(table.X, axis=1, keepdims=True))


def gradients(table: LabelledTable) -> LabelledTable:
    """Replace square images by histograms of oriented gradients."""
    side = math.isqrt(table.n_features)
    X = hog(np.asarray(table.X).reshape(-1, side, side))
    return replace(table, X=X, feature_names=tuple(f"gradient {at}" for at in range(X.shape[1])))


PREPARATIONS: dict[str, Callable[[LabelledTable], LabelledTable]] = {
    "standardised-to-smaller-class": standardised_to_smaller_class,
    "rows-standardised": rows_standardised,
    "rows-of-length-1": rows_of_length_1,
    "gradients": gradients,
}


def two_normals(seed: int, *, mean: float, covariance: float) -> LabelledTable:
    """Draw 50 rows of each of two normal classes with means (0, 0) and (mean, mean) and one covariance."""
    rng = np.random.default_rng(seed)
    spread = np.array([[1.0, covariance], [covariance, 1.0]])
    X = np.concatenate([rng.multivariate_normal([place, place], spread, 50) for place in (0.0, mean)])
    return LabelledTable(X, np.repeat(["1", "2"], 50), ("x1", "x2"), "class", "made up")


MADE_UP: dict[str, Callable[[int], LabelledTable]] = {
    "artificial": partial(two_normals, mean=0.9, covariance=-0.9),
    "two_groups": partial(two_normals, mean=4.0, covariance=-0.3),
}


ORIENTATIONS = 16


def hog(images: np.ndarray) -> np.ndarray:
    """Return an n×64 array for n×height×width images: a weighted histogram of 16 directions for each quarter.

    The features are square roots of shares, scaled to length 1, so distances are Hellinger's.
    """
    pixels = images.astype(np.float64)
    across, down = ndimage.sobel(pixels, axis=2), ndimage.sobel(pixels, axis=1)
    strength = np.hypot(across, down)
    direction = np.floor(ORIENTATIONS * (np.arctan2(down, across) % (2 * np.pi)) / (2 * np.pi)).astype(int)
    direction = np.minimum(direction, ORIENTATIONS - 1)
    n, height, width = images.shape
    rows, columns = np.indices((height, width))
    quarter = 2 * (2 * rows // height) + 2 * columns // width
    cell = (np.arange(n)[:, None, None] * 4 + quarter) * ORIENTATIONS + direction
    counts = np.bincount(cell.ravel(), strength.ravel(), minlength=n * 4 * ORIENTATIONS).reshape(n, -1)
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1e-12)
    roots = np.sqrt(shares)
    return roots / np.maximum(np.linalg.norm(roots, axis=1, keepdims=True), 1e-12)
