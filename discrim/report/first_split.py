"""Models of the first split for the page: maps, margins, loadings, spectra.

The run of a comparison keeps these models. Results from a store have none; then the methods are fitted here.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.neighbors import KNeighborsClassifier

from discrim.evaluation.classifiers import named
from discrim.evaluation.comparison import Comparison
from discrim.evaluation.methods import RAW
from discrim.evaluation.summary import Line
from discrim.evaluation.trial import SplitData
from discrim.registry import Method
from discrim.report.features import LoadingsValues, SeparationValues
from discrim.report.fitted import class_codes, for_plotting, natural, reducer_of, scores_of
from discrim.report.projection import LEAST_SHARE, ProjectionValues
from discrim.report.rows import MarginValues
from discrim.report.spectrum import SpectrumValues

MOST_COMPONENTS, MOST_POINTS = 5, 500
CLASSIFIERS_VIEW = "posterior-map"  # not linear; shown with the best linear map, even if it was not compared
MOST_ROWS_OF_A_VIEW = 2_500  # a map that was not compared is fitted on at most so many rows
NEIGHBOURS = 5
MOST_SEPARATIONS = 3  # pairs of confused classes whose features are listed
MOST_OF_A_MATRIX = 12  # classes; for more classes, the most frequent confusions are listed


@dataclass(frozen=True, eq=False)
class Confusions:
    """Confusion matrix: held-out rows by class (rows) and predicted class (columns)."""

    classes: tuple[str, ...]
    matrix: NDArray[np.intp]

    @classmethod
    def of(cls, classes: Sequence[str], matrix: ArrayLike) -> Confusions:
        """Return the matrix with the classes in natural order."""
        order = sorted(range(len(classes)), key=lambda at: natural(classes[at]))
        return cls(tuple(classes[at] for at in order), np.asarray(matrix, dtype=np.intp)[np.ix_(order, order)])

    @property
    def accuracy(self) -> float:
        return float(np.trace(self.matrix) / max(1, self.matrix.sum()))

    @property
    def rows(self) -> list[tuple[str, list[int], float | None]]:
        """Return the name of every class, its rows by predicted class, and the share that is right."""
        shares = [float(row[at] / row.sum()) if row.sum() else None for at, row in enumerate(self.matrix)]
        return list(zip(self.classes, self.matrix.tolist(), shares, strict=True))

    @property
    def weakest(self) -> list[tuple[str, list[int], float | None]]:
        """Return the classes that are recognised least, the worst first."""
        judged = [row for row in self.rows if row[2] is not None]
        return sorted(judged, key=lambda row: row[2] or 0.0)[:MOST_OF_A_MATRIX]

    @property
    def pairs(self) -> list[tuple[str, str, int, int]]:
        """Return class, predicted class, number of such rows and rows of the class; most frequent first."""
        wrong = self.matrix * (1 - np.eye(len(self.matrix), dtype=np.intp))
        order = np.argsort(-wrong, axis=None, kind="stable")[:MOST_OF_A_MATRIX]
        sizes = self.matrix.sum(axis=1)
        found = [divmod(int(at), len(wrong)) for at in order if wrong.flat[at]]
        return [(self.classes[a], self.classes[b], int(wrong[a, b]), int(sizes[a])) for a, b in found]

    @property
    def is_small(self) -> bool:
        return len(self.matrix) <= MOST_OF_A_MATRIX


@dataclass(frozen=True, eq=False)
class MapView:
    """Rows on the components of a model, and predictions of five nearest neighbours there for held-out rows.

    predicted : predicted class of each held-out row
    """

    projection: ProjectionValues
    predicted: tuple[str, ...]
    confusions: Confusions


class MethodMap(NamedTuple):
    """Maps of one method: with two components (or the only one), then with three if there are so many."""

    method: str
    linear: bool
    accuracy: float
    views: Sequence[MapView]


class MethodView(NamedTuple):
    """Model of one method on the first split; `line` is its best line of results."""

    line: Line
    margins: MarginValues
    loadings: LoadingsValues
    spectrum: SpectrumValues


@dataclass(frozen=True, eq=False)
class Looks:
    """Pictures of the models for one data set.

    maps : the recommended method's first, then the best linear one, the posterior map, the others by accuracy
    rows : names of the training rows and of the held-out rows
    refused : errors of methods that could not be shown
    separations : features that separate the classes that the posterior map confuses most
    """

    methods: list[MethodView] = field(default_factory=list)
    maps: list[MethodMap] = field(default_factory=list)
    rows: tuple[Sequence[str], Sequence[str]] = ((), ())
    refused: list[str] = field(default_factory=list)
    separations: list[SeparationValues] = field(default_factory=list)


def page_budget(n_datasets: int) -> tuple[int, int]:
    """Return the numbers of methods and of drawn points per data set, so that the page stays small."""
    return 8 if n_datasets <= 4 else 4 if n_datasets <= 16 else 2, max(60, MOST_POINTS // n_datasets)


def lines_shown(results: Comparison, most: int = 8) -> list[Line]:
    """Return the best line of each reduction, the recommended one first, at most so many; PCA is always among them."""
    best: dict[str, Line] = {}
    taken = None if results.verdict is None else results.verdict.recommended
    for line in sorted(results.lines, key=lambda line: line.cell != taken):
        if line.method != RAW.name:
            best.setdefault(line.method, line)
    chosen = list(best.values())[:most]
    if "pca" in best and best["pca"] not in chosen:
        chosen[-1] = best["pca"]
    return chosen


def looks_of(results: Comparison, n_datasets: int = 1) -> Looks:
    """Return the pictures of every shown method, and the errors of those that could not be shown."""
    if results.grid is None:
        return Looks()
    most_methods, points = page_budget(n_datasets)
    table, data, found = results.grid.table, results.first_split(), Looks()
    maps: list[MethodMap] = []
    shown: list[tuple[str, Line | None]] = [(line.method, line) for line in lines_shown(results, most_methods)]
    if CLASSIFIERS_VIEW not in dict(shown) and len(data.y_train) <= MOST_ROWS_OF_A_VIEW:
        shown.append((CLASSIFIERS_VIEW, None))  # as a map only
    for name, line in shown:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # the trials have noted those that matter
                method, kept = named(name, results.methods, "method"), dict(results.models.get(name, {}))
                models = Models(method, data, max(line.curve) if line else 2, kept)
                if line:
                    found.methods.append(_method_view(line, models, table.feature_names, 2 * points))
                maps.append(_map(name, models, points, most=3 if line else 2))
                if name == CLASSIFIERS_VIEW:
                    found.separations.extend(_separations(models, table.feature_names))
        except Exception as error:  # the page is written without this method
            found.refused.append(f"{name}: {type(error).__name__}: {' '.join(str(error).split())}")
    names = np.arange(1, table.n_samples + 1) if table.ids is None else np.asarray(table.ids)
    train, test = ([str(name) for name in names[part].tolist()] for part in results.grid.splits[0])
    ahead = found.methods[0].line.method if found.methods else ""
    return replace(found, maps=maps_in_order(maps, ahead), rows=(train, test))


def _method_view(line: Line, models: Models, names: Sequence[str], most_rows: int) -> MethodView:
    data, model, name = models.data, models.model(line.k), line.method
    parts = (data.train, data.y_train, data.test, data.y_test)
    shown: dict[str, Any] = {"most_components": min(line.k, MOST_COMPONENTS), "linear": models.method.linear}
    margins = MarginValues.from_estimator(model, *parts, n_components=line.k, most_rows=most_rows)
    loadings = LoadingsValues.from_estimator(model, data.train, names=names, **shown)
    largest = models.model(models.largest)
    spectrum = SpectrumValues.from_estimator(largest, data.train, data.y_train, chosen=line.k)
    return MethodView(
        line, replace(margins, method=name), replace(loadings, method=name), replace(spectrum, method=name)
    )


# ---------------------------------------------------------------------- maps


def _map(name: str, models: Models, points: int, most: int) -> MethodMap:
    """Return the maps of a method; that with three components has half the points, because these have three numbers."""
    views = [_view(models.model(2), 2, models.data, name, points)]
    if models.serves(most) and scores_of(models.model(most), models.data.test[:1]).shape[1] > 2:
        views.append(_view(models.model(most), 3, models.data, name, points // 2))
    return MethodMap(name, models.method.linear, views[0].confusions.accuracy, views)


def _view(model: Any, k: int, data: SplitData, name: str, points: int) -> MapView:
    drawn = for_plotting(model)
    parts = (data.train, data.y_train, data.test, data.y_test)
    values = ProjectionValues.from_estimator(drawn, *parts, most_points=points, most_components=k)
    train, test = (scores_of(drawn, rows)[:, :k] for rows in (data.train, data.test))
    judge = KNeighborsClassifier(min(NEIGHBOURS, len(train))).fit(train, data.y_train)
    predicted = judge.predict(test)
    _, (_, actual, found) = class_codes(data.y_train, data.y_test, predicted)
    matrix = np.zeros((len(values.classes),) * 2, dtype=np.intp)
    np.add.at(matrix, (actual, found), 1)
    confusions = Confusions(values.classes, matrix)
    return MapView(replace(values, method=name), tuple(str(label) for label in predicted.tolist()), confusions)


def _separations(models: Models, names: Any) -> list[SeparationValues]:
    """Return the features that separate the pairs of classes that held-out rows confuse most."""
    model, data = models.model(2), models.data
    view = reducer_of(model)
    shares = np.triu((view.confusions_ + view.confusions_.T) / 2, 1)
    most = np.argsort(-shares, axis=None, kind="stable")[:MOST_SEPARATIONS].tolist()
    pairs = [divmod(at, len(shares)) for at in most if shares.flat[at] >= LEAST_SHARE]
    labels = [(view.classes_[a], view.classes_[b]) for a, b in pairs]
    return [SeparationValues.from_estimator(model, data.train, data.y_train, pair, names=names) for pair in labels]


def maps_in_order(maps: Sequence[MethodMap], recommended: str) -> list[MethodMap]:
    """Return the recommended method's map first, then the best linear one, the posterior map, and the others."""
    ranked = sorted(maps, key=lambda one: -one.accuracy)
    ahead = [recommended, next((one.method for one in ranked if one.linear), ""), CLASSIFIERS_VIEW]
    return sorted(ranked, key=lambda one: ahead.index(one.method) if one.method in ahead else len(ahead))


@dataclass
class Models:
    """Models of one method by number of components, fitted on the training rows of the first split.

    largest : the largest number of components that was tried
    kept : models of the run, by number of components; the others are fitted when they are needed
    """

    method: Method
    data: SplitData
    largest: int
    kept: dict[int, Any]

    def serves(self, k: int) -> bool:
        """Return True if a model with k components needs no other fit, or if the run kept no model."""
        nested = self.method.resizes or k >= self.method.nested_from(self.data.sizes)
        return not self.kept or k in self.kept or (nested and k <= max(self.kept))

    def model(self, k: int) -> Any:
        """Return a model with k components, or with as many as there are; a nested model may have more."""
        most = self.method.most_components(self.data.sizes)
        k = min(k, most)
        top, nested = max(self.kept, default=0), k >= self.method.nested_from(self.data.sizes)
        if nested and k <= top:
            return self.kept[top]
        if k not in self.kept and k < top and self.method.resizes:
            self.kept[k] = self.kept[top].with_components(k)
        if k in self.kept:
            return self.kept[k]
        count = min(max(k, self.largest, 3), most) if nested else k  # three for a map with three components
        self.kept[count] = self._fitted(count)
        return self.kept[count]

    def _fitted(self, k: int) -> Any:
        """Fit with k components, or with the largest number below k that the rows allow."""
        for count in range(k, 0, -1):
            try:
                return self.data.fit(self.method, count)
            except ValueError:
                if count == 1:
                    raise
        raise ValueError(f"{self.method.name} has no components for these rows.")
