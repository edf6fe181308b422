"""Reproduction of a paper's tables, and tests of its claims.

`reproduced` follows the paper's conventions exactly. `judged` tests each claim against the paper's baseline by the
corrected t test and by the paper's sign test: by the paper's conventions, or by valid ones (everything fitted inside
the split, rows centred, classifiers with an intercept).
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discrim.evaluation.classifiers import named
from discrim.evaluation.plan import Grid
from discrim.evaluation.results import Cell, Result, Scores
from discrim.evaluation.run import Memory, Progress, run
from discrim.evaluation.statistics import paired_t_test, sign_test
from discrim.evaluation.store import Store
from discrim.evaluation.summary import LEVEL, Difference, adjusted, cell_difference
from discrim.papers.conventions import ALL_CLASSIFIERS, ALL_METHODS, any_classifier, any_method
from discrim.papers.study import Names, PrintedCell, PrintedTable, Study
from discrim.tables.labelled_table import LabelledTable

Near = Callable[[PrintedCell, float, float], bool]  # arguments: a printed cell, our figure, the study's tolerance


@dataclass(frozen=True)
class Measure:
    """Measure that a paper prints.

    of : function of a cell's rows (and its opponent's if `paired`) that returns one figure, or one for each split
    near : True if ours is near the printed figure; None if the measure has no tolerance
    within : text that describes `near` for a tolerance
    shown : format of a figure
    """

    of: Callable[..., Any]
    near: Near | None = None
    within: Callable[[float], str] = str
    shown: str = ".2f"
    unit: str = ""
    paired: bool = False


def _accuracies(rows: list[Result]) -> NDArray[np.float64]:
    return np.array([100 * row.scores["accuracy"] for row in rows])


def _differences(rows: list[Result], others: list[Result]) -> NDArray[np.float64]:
    """Return the difference of accuracy in points for each split that both have."""
    by_split: dict[int, list[float]] = defaultdict(list)
    for of in (rows, others):
        for row in of:
            by_split[row.split].append(100 * row.scores["accuracy"])
    return np.array([ours - theirs for ours, theirs in (both for both in by_split.values() if len(both) == 2)])


def _tested(figure: Callable[[NDArray[np.float64]], float], least: int) -> Callable[..., Any]:
    """Return a function that tests the differences; it returns [] if fewer than `least` splits have both."""

    def of(rows: list[Result], others: list[Result]) -> Any:
        differences = _differences(rows, others)
        return float(figure(differences)) if len(differences) >= least else []

    return of


def _f_measure(rows: list[Result], *, smaller: bool) -> Any:
    """Return 2TP / (2TP + FP + FN) of the smaller or larger class over the test rows of all folds."""
    if not rows:
        return []
    hits, actual, predicted = (
        np.sum([row.scores[name] for row in rows], axis=0) for name in ("hits", "actual", "predicted")
    )
    at = actual.argmin() if smaller else actual.argmax()
    return float(2 * hits[at] / (actual[at] + predicted[at]))


def _score(name: str) -> Callable[[list[Result]], NDArray[np.float64]]:
    return lambda rows: np.array([row.scores[name] for row in rows if name in row.scores])


def _in_points(cell: PrintedCell, ours: float, tolerance: float) -> bool:
    """Return whether ours is within one printed deviation or, if none is printed, within the study's tolerance."""
    reach = tolerance if math.isnan(cell.printed_deviation) else cell.printed_deviation
    return abs(ours - cell.printed) <= reach + 1e-9


def _within_points(tolerance: float) -> str:
    return "within one printed deviation" if math.isinf(tolerance) else f"within {tolerance:g} points of print"


def _f(smaller: bool) -> Measure:
    return Measure(
        lambda rows: _f_measure(rows, smaller=smaller),
        lambda cell, ours, tolerance: abs(ours - cell.printed) <= tolerance / 100 + 1e-9,
        lambda tolerance: f"within {tolerance / 100:g} of print",
    )


MEASURES: dict[str, Measure] = {
    "accuracy": Measure(_accuracies, _in_points, _within_points, unit="points"),
    "error": Measure(lambda rows: 100 - _accuracies(rows), _in_points, _within_points, unit="points"),
    "F smaller": _f(smaller=True),
    "F larger": _f(smaller=False),
    "sign p": Measure(
        _tested(lambda differences: sign_test(differences).p_value, 1),
        lambda cell, ours, tolerance: (cell.printed < LEVEL) == (ours < LEVEL),
        lambda tolerance: f"on the printed side of p = {LEVEL:g}",
        ".4g",
        paired=True,
    ),
    "t": Measure(_tested(lambda differences: paired_t_test(differences).statistic, 2), paired=True),
    "margin": Measure(_score("margin"), shown=".4g"),
    "reconstruction error": Measure(_score("reconstruction_error"), shown=".4g"),
    "shift": Measure(_score("shift"), shown="g"),
}


def measure_of(cell: PrintedCell) -> Measure:
    return named(cell.measure, MEASURES, "measure")


RowsByCell = Mapping[Cell, list[Result]]


@dataclass(frozen=True)
class Outcome:
    """Reproduced cell: a figure for every split or draw, or the reason for its absence."""

    table: PrintedTable
    cell: PrintedCell
    figures: tuple[float, ...]
    n_failed: int = 0
    reason: str = ""
    n_splits: int = 0  # number of splits in each draw

    @property
    def measure(self) -> Measure:
        return measure_of(self.cell)

    @property
    def ours(self) -> float:
        return float(np.mean(self.figures)) if self.figures else np.nan

    @property
    def deviation(self) -> float:
        return float(np.std(self.figures, ddof=1)) if len(self.figures) > 1 else np.nan

    @property
    def missing(self) -> bool:
        return not self.figures

    @property
    def off(self) -> float:
        """Difference of our figure and the printed one."""
        return self.ours - self.cell.printed

    def near_print(self, tolerance: float) -> bool | None:
        """Return whether ours is near the printed figure; None if there is no tolerance or no printed figure."""
        if self.measure.near is None or np.isnan(self.cell.printed):
            return None
        return not self.missing and self.measure.near(self.cell, self.ours, tolerance)

    @property
    def near_reference(self) -> bool:
        return abs(self.ours - self.cell.reference) <= self.cell.reference_deviation

    @property
    def words(self) -> str:
        """Name of the cell: method, K and classifier."""
        return f"{self.cell.method}, {f'K = {self.cell.k}, ' if self.cell.k else ''}{self.cell.classifier}"


@dataclass(frozen=True)
class Claim:
    """Claim of the paper: a method's score minus the baseline's, in the paper's names."""

    table: PrintedTable
    cell: PrintedCell
    score: float
    against: Difference | None
    n_failed: int = 0


def grids_of(study: Study, table: PrintedTable, splits: int | None = None) -> list[Grid]:
    """Return the grids of a table's figures, one for each draw of the splits."""
    grids = []
    for draw in range(table.draws):
        rows = study.rows_of(table, draw)
        wanted = [one for cell in table.cells for one in _with_opponent(cell, table)]
        cells = tuple(dict.fromkeys(_cell(one, table.names, rows) for one in wanted))
        grids.append(_grid(table, rows, cells, splits, "none", draw))
    return grids


def reproduced(
    study: Study,
    store: Store | Memory,
    *,
    splits: int | None = None,
    jobs: int | None = None,
    progress: Progress | None = None,
    as_stored: bool = False,
) -> list[Outcome]:
    """Compute every cell of the study by the paper's conventions.

    as_stored : compute nothing; cells that are not in the store are missing
    """
    results_of = _results_by_grid(store, jobs, progress, as_stored)
    outcomes: list[Outcome] = []
    for table in study.tables:
        grids = grids_of(study, table, splits)
        draws = [_by_cell(results_of(grid)) for grid in grids]
        outcomes += [_outcome(table, cell, grids[0].table, draws) for cell in table.cells]
    return outcomes


def fitted_features(study: Study, table: PrintedTable, cell: PrintedCell) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the features and labels of the first split's test rows, by the method of a cell."""
    rows = study.rows_of(table)
    train, test = next(iter(table.splitting(rows.n_samples).splits(rows.y)))
    method = any_method(table.names.methods[cell.method])
    if method.build is None:
        return np.asarray(rows.X[test]), rows.y[test]
    model = method.estimator(cell.k, 0).fit(rows.X[train], rows.y[train])
    return np.asarray(model.transform(rows.X[test])), rows.y[test]


def first_direction(study: Study, table: PrintedTable, cell: PrintedCell) -> NDArray[Any]:
    """Return the unit vector of the first component that the method of a cell finds in all rows."""
    rows = study.rows_of(table)
    direction = any_method(table.names.methods[cell.method]).estimator(1, 0).fit(rows.X, rows.y).components_[0]
    return np.asarray(direction / np.linalg.norm(direction))


def fitted_hyperplane(study: Study, table: PrintedTable, cell: PrintedCell) -> tuple[LabelledTable, Any]:
    """Return all rows, and the linear classifier of a cell fitted to them."""
    rows = study.rows_of(table)
    return rows, any_classifier(table.names.classifiers[cell.classifier]).estimator().fit(rows.X, rows.y)


def judged(
    study: Study,
    store: Store | Memory,
    *,
    as_printed: bool = False,
    splits: int | None = None,
    jobs: int | None = None,
    progress: Progress | None = None,
    as_stored: bool = False,
) -> list[Claim]:
    """Test every claim of the study against the baseline at the same K, with Holm's correction in each table.

    as_printed : use the paper's own conventions; else valid ones
    """
    results_of = _results_by_grid(store, jobs, progress, as_stored)
    claims: list[Claim] = []
    if study.valid is None:
        raise ValueError(f"The study must have [valid] conventions to test its claims; {study.name} has none.")
    for table in study.tables:
        if not any(cell.method in study.claims and not measure_of(cell).paired for cell in table.cells):
            continue  # it scores no method that is claimed to be better
        # valid conventions prepare nothing before the split and standardise columns inside it
        names, prepare, scale = (table.names, table.prepare, "none") if as_printed else (study.valid, "", "standard")
        rows = study.rows_of(replace(table, prepare=prepare))
        ours = {cell: _cell(cell, names, rows) for cell in table.cells if cell.method in study.claims}
        theirs = {cell: one._replace(method=names.methods[study.baseline]) for cell, one in ours.items()}
        cells = tuple(dict.fromkeys([*ours.values(), *theirs.values()]))
        claims += _claims(table, ours, theirs, results_of(_grid(table, rows, cells, splits, scale)))
    return claims


def _results_by_grid(
    store: Store | Memory, jobs: int | None, progress: Progress | None, as_stored: bool
) -> Callable[[Grid], list[Result]]:
    """Return a function that gives a grid's results: from the store only, or computed if they are missing."""
    if as_stored:
        return store.rows_of
    return partial(run, store=store, jobs=jobs, progress=progress)


def _claims(
    table: PrintedTable, ours: dict[PrintedCell, Cell], theirs: dict[PrintedCell, Cell], rows: list[Result]
) -> list[Claim]:
    by_cell, scored = _by_cell(rows), Scores.from_rows(rows, "accuracy")
    found = adjusted([cell_difference(scored, ours[cell], theirs[cell]) for cell in ours])
    means = [float(scored.of_cell(one).mean()) if one in scored.cells else np.nan for one in ours.values()]
    return [
        Claim(table, cell, mean, against, _n_failed(by_cell[ours[cell]]))
        for cell, mean, against in zip(ours, means, found, strict=True)
    ]


def _outcome(table: PrintedTable, cell: PrintedCell, rows: LabelledTable, draws: list[RowsByCell]) -> Outcome:
    needed = [_cell(one, table.names, rows) for one in _with_opponent(cell, table)]
    figures = [measure_of(cell).of(*([row for row in draw[one] if row.ok] for one in needed)) for draw in draws]
    found = tuple(float(one) for of_draw in figures for one in np.atleast_1d(np.asarray(of_draw)))
    failed = sum(_n_failed(draw[needed[0]]) for draw in draws)
    why = Counter(row.reason for draw in draws for one in needed for row in draw[one] if not row.ok)
    reason = "" if found else next(iter(dict(why.most_common(1))), "not tried")
    n_splits = max(len({row.split for row in draw[needed[0]] if row.ok}) for draw in draws)
    return Outcome(table, cell, found, failed, reason, n_splits)


def _grid(
    table: PrintedTable, rows: LabelledTable, cells: tuple[Cell, ...], splits: int | None, scale: str, seed: int = 0
) -> Grid:
    """Return the grid of the paper's splits, or of the first few of them (two of ten folds are not two folds)."""
    fewer = None if splits is None else min(splits, table.splits)
    known: dict[str, Any] = {"methods": ALL_METHODS, "classifiers": ALL_CLASSIFIERS}
    return Grid(table.dataset, rows, cells, table.splitting(rows.n_samples), scale, seed, n_splits=fewer, **known)


def _cell(cell: PrintedCell, names: Names, table: LabelledTable) -> Cell:
    return Cell(names.methods[cell.method], cell.k or table.n_features, names.classifiers[cell.classifier])


def _with_opponent(cell: PrintedCell, table: PrintedTable) -> list[PrintedCell]:
    return [cell, table.opponent(cell)] if measure_of(cell).paired else [cell]


def _by_cell(rows: Iterable[Result]) -> RowsByCell:
    found: dict[Cell, list[Result]] = defaultdict(list)
    for row in rows:
        found[row.cell].append(row)
    return found


def _n_failed(rows: list[Result]) -> int:
    return sum(row.status == "failed" for row in rows)


# ---------------------------------------------------------------------- summary in one line


def summary(outcomes: list[Outcome], tolerance: float) -> str:
    """Describe how many cells agree, by measure, and by how much they differ; a missing cell does not agree."""

    def meaning(one: Outcome) -> str:
        return one.measure.within(tolerance if np.isnan(one.cell.printed_deviation) else np.inf)

    parts = []
    near_print = [one for one in outcomes if one.near_print(tolerance) is not None]
    for within, group in groupby(sorted(near_print, key=meaning), key=meaning):
        some = list(group)
        near = sum(bool(one.near_print(tolerance)) for one in some)
        points = [abs(one.off) for one in some if one.measure.unit and not one.missing]
        distance = f", mean difference {np.mean(points):.2f} points" if points else ""
        parts.append(f"{near} of {len(some)} cells ({near / len(some):.0%}) {within}{distance}")
    known = [one for one in outcomes if not np.isnan(one.cell.reference_deviation) and not one.missing]
    if known:
        agree = sum(one.near_reference for one in known)
        parts.append(f"{agree} of {len(known)} ({agree / len(known):.0%}) within one deviation of the reference")
    done: dict[int, tuple[int, int]] = {}
    for one in outcomes:
        most, _ = done.get(id(one.table), (0, 0))
        done[id(one.table)] = max(most, one.n_splits), one.table.splits
    if fewer := sorted({f"{n} of {splits}" for n, splits in done.values() if 0 < n < splits}):
        parts.append(f"{' or '.join(fewer)} splits")
    if missing := sum(one.missing for one in outcomes):
        parts.append(f"{missing} cell{'' if missing == 1 else 's'} without a result")
    return "; ".join(parts) or "no printed figures to compare with"
