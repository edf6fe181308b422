"""HTML page of a reproduction: printed figures against ours, and the papers' charts."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from discrim.evaluation.statistics import corrected_interval
from discrim.papers.reproduce import Outcome, first_direction, fitted_features, fitted_hyperplane, summary
from discrim.papers.study import PrintedTable, Study
from discrim.report.chart import Axis, Chart, Mark, Words, figure_json
from discrim.report.page import framed
from discrim.tables.writing import whole_file

Charts = Iterator[tuple[str, Chart]]  # each with its name in the menu


def agreement_chart(outcomes: Sequence[Outcome]) -> Chart | None:
    """Draw our figures against the printed ones in percent, with whiskers of one printed deviation."""
    there = [one for one in outcomes if one.measure.unit and not one.missing and np.isfinite(one.cell.printed)]
    if not there:
        return None
    marks: list[Mark] = []
    figures = np.array([[one.cell.printed, one.ours] for one in there])
    ends = np.array([figures.min() - 2.0, figures.max() + 2.0])
    for at, (title, group) in enumerate(groupby(there, key=lambda one: one.table.title)):
        marks += _agreement(list(group), title, at)
    equal = Mark("line", "equal", ends, ends, colour="soft", dash="dash", size=1)
    limits = (float(ends[0]), float(ends[1]))
    return Chart((equal, *marks), Axis("printed, %", limits), Axis("ours, %", limits), equal=True, height=5.4)


def _agreement(outcomes: list[Outcome], title: str, at: int) -> list[Mark]:
    printed, ours = (np.array(some) for some in zip(*((one.cell.printed, one.ours) for one in outcomes), strict=True))
    reach = np.array([one.cell.printed_deviation for one in outcomes])
    hover = {"cell": [one.words for one in outcomes], "printed": [f"{x:.1f}" for x in printed]}
    hover["ours"] = [f"{y:.1f}" for y in ours]
    points = Mark("points", "points", printed, ours, title, title, at, at, 7, 0.85, hover=hover)
    if np.isnan(reach).all():
        return [points]
    nothing = np.full(len(reach), np.nan)
    x = np.column_stack([printed - reach, printed + reach, nothing]).ravel()
    return [Mark("line", "deviations", x, np.repeat(ours, 3), title, colour=at, size=1, opacity=0.35), points]


# ---------------------------------------------------------------------- the papers' figures


def figure_charts(study: Study, table: PrintedTable, outcomes: Sequence[Outcome]) -> Charts:
    """Yield the charts of one figure."""
    there = [one for one in outcomes if not one.missing]
    if table.drawn in _FROM_ROWS:
        yield from _FROM_ROWS[table.drawn](study, table)
    elif there:
        yield from {"curves": _curves, "splits": _splits, "shifts": _shifts}[table.drawn](there)


def _curves(outcomes: list[Outcome]) -> Charts:
    """Draw accuracy over K with Student's interval of the mean, which assumes independent splits as the paper does."""
    for classifier, group in groupby(outcomes, key=lambda one: one.cell.classifier):
        marks: list[Mark] = []
        shown = list(group)
        for at, (method, points) in enumerate(groupby(shown, key=lambda one: one.cell.method)):
            marks += _curve(list(points), method, at)
        measure = shown[0].cell.measure
        up = Axis(f"{measure}, %" if shown[0].measure.unit else measure)
        yield classifier, Chart(tuple(marks), Axis("components", whole=True), up, title=classifier)


def _curve(points: list[Outcome], method: str, at: int) -> list[Mark]:
    k = np.array([one.cell.k for one in points], dtype=float)
    line = Mark(
        "line", "lines", k, np.array([one.ours for one in points]), method, method, at, at, tip="K = {x}: {y:.1f}"
    )
    if min(len(one.figures) for one in points) < 2:
        return [line]
    found = [corrected_interval(one.figures, 0.0) for one in points]
    low, high = (np.array([getattr(one, end) for one in found]) for end in ("low", "high"))
    outline = np.concatenate([k, k[::-1]]), np.concatenate([high, low[::-1]])
    return [Mark("area", "bands", *outline, method, colour=at, opacity=0.2), line]


def _splits(outcomes: list[Outcome]) -> Charts:
    """Draw the figure of each split for all methods."""
    marks = [
        Mark("line", "lines", np.arange(1, len(one.figures) + 1), np.array(one.figures), one.cell.method,
             one.cell.method, at, at, 1.5, tip="split {x}: {y:.1f}")
        for at, one in enumerate(outcomes)
    ]  # fmt: skip
    title = f"{outcomes[0].cell.measure} of every split, %"
    yield outcomes[0].cell.classifier, Chart(tuple(marks), Axis("split", whole=True), Axis(title))


def _shifts(outcomes: list[Outcome]) -> Charts:
    """Draw accuracy and reconstruction error over the shift, each scaled to [0, 1] as in the paper."""
    by_extractor: dict[str, list[Outcome]] = {}
    for one in outcomes:
        by_extractor.setdefault(one.cell.method.split()[0], []).append(one)
    for extractor, some in by_extractor.items():
        shifts = [*dict.fromkeys(shift_of(one) for one in some)]
        fewest = min(len(one.figures) for one in some)  # shifts are compared on the same splits
        marks = []
        for at, (measure, group) in enumerate(groupby(some, key=lambda one: one.cell.measure)):
            values = np.array([np.mean(one.figures[:fewest]) for one in group])
            scaled = (values - values.min()) / (np.ptp(values) or 1.0)
            label = f"{measure.split()[-1]}, {values.min():.3g} to {values.max():.3g}"
            marks.append(
                Mark("line", "lines", np.arange(len(values)), scaled, measure, label, 1 - at, at, tip="{y:.2f}")
            )
        ticks = {float(place): f"{shift:g}" for place, shift in enumerate(shifts)}
        yield extractor, Chart(tuple(marks), Axis("shift", ticks=ticks), Axis("minimum to maximum"), title=extractor)


def shift_of(one: Outcome) -> float:
    """Return the shift in a method's name, 0 if there is none."""
    return float((*one.cell.method.split(), "0")[1])


def _embeddings(study: Study, table: PrintedTable) -> Charts:
    """Draw held-out rows in the plane of each method, by class."""
    for cell in table.cells:
        marks = _class_points(*fitted_features(study, table, cell))
        yield cell.method, Chart(tuple(marks), Axis("component 1"), Axis("component 2"), title=cell.method, equal=True)


def _scatters(study: Study, table: PrintedTable) -> Charts:
    """Draw all rows in the plane of each method, and the normal distribution of each class along both axes."""
    for cell in table.cells:
        features, labels = fitted_features(study, table, cell)
        names = [f"{'feature' if cell.method == 'Raw' else 'component'} {at}" for at in (1, 2)]
        axes = Axis(names[0]), Axis(names[1])
        yield f"{cell.method}, rows", Chart(tuple(_class_points(features, labels)), *axes, cell.method, equal=True)
        for name, values in zip(names, features.T, strict=False):
            title = f"{cell.method}, {name}"
            yield title, Chart(tuple(_bell_curves(values, labels)), Axis(name), Axis("density"), title)


def _bell_curves(values: NDArray[np.float64], labels: NDArray[Any]) -> Iterator[Mark]:
    for at, label in enumerate(np.unique(labels).tolist()):
        own = values[labels == label]
        middle, width = own.mean(), own.std()
        x = np.linspace(middle - 3.5 * width, middle + 3.5 * width, 101)
        density = np.exp(-0.5 * ((x - middle) / width) ** 2) / (width * np.sqrt(2 * np.pi))
        yield Mark("line", "lines", x, density, label, label, at, at)


def _directions(study: Study, table: PrintedTable) -> Charts:
    """Draw all rows with the first direction of each method through their mean."""
    rows = study.rows_of(table)
    marks = _class_points(rows.X, rows.y)
    middle, reach = rows.X.mean(axis=0), 1.2 * np.abs(rows.X - rows.X.mean(axis=0)).max()
    for at, cell in enumerate(table.cells):
        x, y = (middle + np.outer([-reach, reach], first_direction(study, table, cell))).T
        marks.append(Mark("line", "lines", x, y, cell.method, cell.method, 2 + at, at, 2))
    yield "directions", Chart(tuple(marks), Axis("feature 1"), Axis("feature 2"), table.title, equal=True)


def _boundaries(study: Study, table: PrintedTable) -> Charts:
    """Draw all rows with the line of each classifier, and dashed the lines at half the margin from it."""
    for cell in table.cells:
        rows, model = fitted_hyperplane(study, table, cell)
        marks, weights = _class_points(rows.X, rows.y), np.ravel(model.coef_)
        ends = np.array([rows.X[:, 0].min() - 1, rows.X[:, 0].max() + 1])
        for level, dash in ((0.0, "solid"), (1.0, "dash"), (-1.0, "dash")):
            heights = (level - float(np.ravel(model.intercept_)[0]) - weights[0] * ends) / weights[1]
            marks.append(Mark("line", "lines", ends, heights, f"{level:+g}", colour="soft", dash=dash, size=1.5))
        title = f"{cell.classifier}: margin {2 / np.linalg.norm(weights):.2f}"
        yield cell.classifier, Chart(tuple(marks), Axis("feature 1"), Axis("feature 2"), title, equal=True)


def _merged(study: Study, table: PrintedTable) -> Charts:
    """Draw all rows in the space of two merged terms, with the initial line and, dashed, the refined one."""
    for cell in table.cells:
        rows, model = fitted_hyperplane(study, table, cell)
        U, found = model.merged_features(rows.X), model.refinements_[0]
        marks, ends = _class_points(U, rows.y), np.array([U[:, 0].min(), U[:, 0].max()])
        lines = {
            "LDA": (1.0, 1.0, found.initial.intercept),
            "refined": (*found.in_merged.weights, found.in_merged.intercept),
        }
        for at, (name, (first, second, intercept)) in enumerate(lines.items()):
            heights = -(intercept + first * ends) / second
            dash = "dash" if at else "solid"
            marks.append(Mark("line", "lines", ends, heights, name, name, 2 + at, at, 1.5, dash=dash))
        yield cell.classifier, Chart(tuple(marks), Axis("u1"), Axis("u2"), cell.classifier)


def _class_points(features: NDArray[np.float64], labels: NDArray[Any]) -> list[Mark]:
    classes = [(label, features[labels == label]) for label in np.unique(labels).tolist()]
    return [
        Mark("points", "points", own[:, 0], own[:, 1], label, label, at, at, 5, 0.7)
        for at, (label, own) in enumerate(classes)
    ]


_FROM_ROWS: dict[str, Callable[[Study, PrintedTable], Charts]] = {
    "embedding": _embeddings,
    "scatter": _scatters,
    "directions": _directions,
    "boundaries": _boundaries,
    "merged": _merged,
}


class PrintedLine(NamedTuple):
    """Printed cell in words, with the numbers to sort by."""

    outcome: Outcome
    printed: str
    ours: str
    off: str
    reference: str
    far: bool
    sorted: list[str]  # the four as numbers, empty if there is none


def write_reproduction(
    study: Study,
    outcomes: Sequence[Outcome],
    path: str | os.PathLike[str],
    *,
    command: str = "",
    absent: Mapping[str, str] | None = None,
) -> None:
    """Write the page atomically. `absent`: skipped data sets with the reason."""
    text = reproduction_page(study, outcomes, command, absent or {})
    with whole_file(path) as handle:
        handle.write(text.encode("utf-8", "replace"))


def reproduction_page(study: Study, outcomes: Sequence[Outcome], command: str, absent: Mapping[str, str]) -> str:
    """Return the page as text."""
    words = Words()
    parts: list[dict[str, Any]] = []
    charts: dict[str, Any] = {}
    for title, group in groupby(outcomes, key=lambda one: one.table.title):
        some = list(group)
        drawn = list(figure_charts(study, some[0].table, some)) if some[0].table.drawn else []
        charts[f"part-{len(parts)}"] = figure_json({(at,): chart for at, (_, chart) in enumerate(drawn)}, words)
        part = {"title": title, "summary": summary(some, study.tolerance), "drawn": some[0].table.drawn}
        part["lines"] = [printed_line(one, study.tolerance) for one in some]
        parts.append(part | {"menu": [name for name, _ in drawn]})  # names of a figure's charts
    agreement = agreement_chart(outcomes)
    charts["agreement"] = figure_json({(): agreement} if agreement else {}, words)
    return framed(
        "reproduction.html",
        {"blocks": [{"figures": charts}], "ranks": {}, "words": list(words)},
        package="discrim.papers",
        study=study,
        parts=parts,
        summary=summary(list(outcomes), study.tolerance),
        agreement=agreement is not None,
        command=command,
        absent={**absent, **study.left_out},
    )


def printed_line(one: Outcome, tolerance: float) -> PrintedLine:
    """Format a cell's figures."""
    shown, cell = one.measure.shown, one.cell
    return PrintedLine(
        one,
        figure(cell.printed, cell.printed_deviation, shown),
        figure(one.ours, one.deviation, shown),
        "–" if math.isnan(one.off) else f"{one.off:+{shown}}",
        figure(cell.reference, cell.reference_deviation, shown),
        one.near_print(tolerance) is False,
        ["" if math.isnan(value) else repr(value) for value in (cell.printed, one.ours, one.off, cell.reference)],
    )


def figure(value: float, deviation: float, shown: str) -> str:
    """Format a figure with its deviation, if there is one."""
    if math.isnan(value):
        return "–"
    return f"{value:{shown}}" if math.isnan(deviation) else f"{value:{shown}} ± {deviation:{shown}}"
