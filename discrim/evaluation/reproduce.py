"""A paper's tables done again: the printed figure beside ours, and which of the paper's claims hold.

`reproduced` follows the paper's conventions to the letter. `judged` tests each claim against the paper's baseline by
the corrected t test, with the paper's sign test beside it: by the paper's conventions, or with the same methods used as
they should be (inside the split, centred, with an intercept).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from discrim.data.labelled_table import LabelledTable
from discrim.evaluation.grid import Cell, Grid
from discrim.evaluation.protocol import named_protocol
from discrim.evaluation.run import Progress, run
from discrim.evaluation.statistics import paired_t_test
from discrim.evaluation.store import Store
from discrim.evaluation.study import Names, PrintedCell, PrintedTable, Study, prepared
from discrim.evaluation.summary import Difference, adjusted, difference, scores_by_cell, test_to_train
from discrim.evaluation.trial import Row

Load = Callable[[str], LabelledTable]


@dataclass(frozen=True)
class Outcome:
    """A printed cell and what came out here."""

    table: PrintedTable
    cell: PrintedCell
    ours: float
    deviation: float
    n_failed: int = 0

    @property
    def off(self) -> float:
        """Ours minus the printed figure."""
        return self.ours - self.cell.printed

    def near_print(self, tolerance: float) -> bool:
        """Within one printed deviation, or where none is printed within the study's tolerance."""
        deviation = self.cell.printed_deviation
        return abs(self.off) <= (tolerance if np.isnan(deviation) else deviation)

    @property
    def near_reference(self) -> bool:
        return abs(self.ours - self.cell.reference) <= self.cell.reference_deviation


@dataclass(frozen=True)
class Claim:
    """One claim of the paper: a method's score minus the baseline's, in the paper's names."""

    table: PrintedTable
    cell: PrintedCell
    score: float
    against: Difference | None
    n_failed: int = 0


def grids_of(study: Study, load: Load, splits: int | None = None) -> list[tuple[PrintedTable, list[Grid]]]:
    """For each table the grids that give its figures, one for each draw of the splits."""
    found = []
    for table in study.tables:
        rows, names = prepared(load(table.dataset), table), study.names_in(table)
        cells = tuple(dict.fromkeys(_cell(cell, names, rows) for cell in [*table.cells, *_initial(table)]))
        protocol = named_protocol(study.protocol, n_splits=splits or table.splits)
        grids = [Grid(table.dataset, rows, cells, protocol, scale="none", seed=draw) for draw in range(study.draws)]
        found.append((table, grids))
    return found


def reproduced(
    study: Study,
    store: Store,
    load: Load,
    *,
    splits: int | None = None,
    jobs: int | None = None,
    progress: Progress | None = None,
) -> list[Outcome]:
    """Every cell of the study by the paper's conventions."""
    outcomes: list[Outcome] = []
    for table, grids in grids_of(study, load, splits):
        rows, names = [run(grid, store, jobs=jobs, progress=progress) for grid in grids], study.names_in(table)
        for cell in table.cells:
            name = _cell(cell, names, grids[0].table)
            initial = [_cell(one, names, grids[0].table) for one in _initial(table)]
            drawn = [
                MEASURES[table.measure](_of_cell(draw, name), *(_of_cell(draw, one) for one in initial))
                for draw in rows
            ]
            figures = np.concatenate([np.atleast_1d(figure) for figure in drawn])
            failed = sum(_n_failed(draw, name) for draw in rows)
            deviation = float(figures.std(ddof=1)) if len(figures) > 1 else np.nan
            outcomes.append(Outcome(table, cell, float(figures.mean()) if len(figures) else np.nan, deviation, failed))
    return outcomes


def judged(
    study: Study,
    store: Store,
    load: Load,
    *,
    as_printed: bool = False,
    splits: int | None = None,
    jobs: int | None = None,
    progress: Progress | None = None,
) -> list[Claim]:
    """Every claim of the study against the baseline at the same K, Holm over each table.

    as_printed : by the paper's own conventions; else the methods as they should be used
    """
    if study.honest is None:
        raise ValueError(f"{study.name} makes no claims that could be judged this way.")
    claims: list[Claim] = []
    for table in study.tables:
        # as it should be, nothing is done to the rows before the split, and columns are standardised inside
        names, prepare, scale = (
            (study.names_in(table), table.prepare, "none") if as_printed else (study.honest, "", "standard")
        )
        rows = prepared(load(table.dataset), replace(table, prepare=prepare))
        ours = {cell: _cell(cell, names, rows) for cell in table.cells if cell.method in study.claims}
        theirs = {cell: one._replace(method=names.methods[study.baseline]) for cell, one in ours.items()}
        protocol = named_protocol(study.protocol, n_splits=splits or table.splits)
        grid = Grid(table.dataset, rows, tuple(dict.fromkeys([*ours.values(), *theirs.values()])), protocol, scale)
        claims += _claims(table, ours, theirs, run(grid, store, jobs=jobs, progress=progress))
    return claims


def _claims(
    table: PrintedTable, ours: dict[PrintedCell, Cell], theirs: dict[PrintedCell, Cell], rows: list[Row]
) -> list[Claim]:
    good = [row for row in rows if row["status"] == "ok"]
    scores, ratio = scores_by_cell(good, "accuracy"), test_to_train(good)
    found = adjusted([difference(scores.get(ours[cell], {}), scores.get(theirs[cell], {}), ratio) for cell in ours])
    means = [float(np.mean(list(scores[one].values()))) if one in scores else np.nan for one in ours.values()]
    return [
        Claim(table, cell, mean, against, _n_failed(rows, ours[cell]))
        for cell, mean, against in zip(ours, means, found, strict=True)
    ]


def _cell(cell: PrintedCell, names: Names, table: LabelledTable) -> Cell:
    return Cell(names.methods[cell.method], cell.k or table.n_features, names.classifiers[cell.classifier])


def _initial(table: PrintedTable) -> list[PrintedCell]:
    """The cell that t compares with, where the table is one of t."""
    missing = np.nan
    return [PrintedCell("rows", 0, table.initial, missing, missing, missing, missing)] if table.initial else []


def _is(row: Row, cell: Cell) -> bool:
    trial = row["trial"]
    return (trial["method"], trial["k"], trial["classifier"]) == tuple(cell)


def _n_failed(rows: Iterable[Row], cell: Cell) -> int:
    return sum(row["status"] == "failed" and _is(row, cell) for row in rows)


def _of_cell(rows: Iterable[Row], cell: Cell) -> list[Row]:
    return [row for row in rows if row["status"] == "ok" and _is(row, cell)]


# ---------------------------------------------------------------------- what the papers print, from rows of one draw


def _accuracies(rows: list[Row]) -> Any:
    return np.array([100 * row["scores"]["accuracy"] for row in rows])


def _t_statistic(rows: list[Row], initial: list[Row]) -> float:
    by_split: dict[int, float] = defaultdict(float)
    for sign, of in ((1, rows), (-1, initial)):
        for row in of:
            by_split[row["trial"]["split"]] += sign * 100 * row["scores"]["accuracy"]
    return float(paired_t_test(np.array(list(by_split.values()))).statistic)


def _f_measure(rows: list[Row], *, smaller: bool) -> float:
    """2TP / (2TP + FP + FN) over all test rows of all folds, of the smaller or the larger class."""
    hits, actual, predicted = (
        np.sum([row["scores"][name] for row in rows], axis=0) for name in ("hits", "actual", "predicted")
    )
    at = actual.argmin() if smaller else actual.argmax()
    return float(2 * hits[at] / (actual[at] + predicted[at]))


MEASURES: dict[str, Callable[..., Any]] = {
    "accuracy": _accuracies,
    "error": lambda rows: 100 - _accuracies(rows),
    "margin": lambda rows: np.array([row["scores"]["margin"] for row in rows]),
    "t": _t_statistic,
    "F smaller": lambda rows: _f_measure(rows, smaller=True),
    "F larger": lambda rows: _f_measure(rows, smaller=False),
}
POINTS = ("accuracy", "error")


def summary(outcomes: list[Outcome], tolerance: float) -> str:
    """How many cells agree, and how far the others are off; figures that are no percentages are counted apart."""
    points = [one for one in outcomes if one.table.measure in POINTS and not np.isnan(one.ours)]
    if not points:
        return "no figures in percent"
    near = sum(one.near_print(tolerance) for one in points)
    off = float(np.mean([abs(one.off) for one in points]))
    deviations = not np.isnan([one.cell.printed_deviation for one in points]).any()
    within = "one printed deviation" if deviations else f"{tolerance:g} points of print"
    line = f"{near} of {len(points)} cells ({near / len(points):.0%}) within {within}, mean difference {off:.2f} points"
    known = [one for one in points if not np.isnan(one.cell.reference_deviation)]
    if known:
        agree = sum(one.near_reference for one in known)
        line += f"; {agree} of {len(known)} ({agree / len(known):.0%}) within one deviation of the reference"
    return line
