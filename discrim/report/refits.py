"""The methods of a page, fitted once more on the first split, to be looked at: maps, margins, loadings, spectra."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from sklearn.neighbors import KNeighborsClassifier

from discrim.evaluation.comparison import JudgedRun
from discrim.evaluation.methods import METHODS, RAW, Method, named
from discrim.evaluation.summary import Line
from discrim.evaluation.trial import SplitData, fitted
from discrim.report.confusions import Confusions
from discrim.report.fitted import class_codes, reducer_of, scores_of
from discrim.report.importance import SeparationValues
from discrim.report.loadings import LoadingsValues
from discrim.report.margin_distribution import MarginValues
from discrim.report.placed_classes import LEAST_SHARE
from discrim.report.projection import ProjectionValues
from discrim.report.spectrum import SpectrumValues

MOST_COMPONENTS = 5
CLASSIFIERS_VIEW = "posterior-map"  # not linear: shown beside the best linear map, whatever was compared
MOST_ROWS_OF_A_VIEW = 2_500  # more take too long for a picture that nobody asked for
NEIGHBOURS = 5
MOST_SEPARATIONS = 3  # pairs of confused classes whose features are listed


class Allotment(NamedTuple):
    """How much of one data set a page can hold: methods that are fitted again, and points of each that are drawn."""

    methods: int = 8
    points: int = 500

    @classmethod
    def among(cls, n_datasets: int) -> Allotment:
        """A fair share of what one page can hold, so that it stays small whatever a store has."""
        methods = 8 if n_datasets <= 4 else 4 if n_datasets <= 16 else 2
        return cls(methods, max(60, ALONE.points // max(1, n_datasets)))


ALONE = Allotment()


@dataclass(frozen=True, eq=False)
class MapView:
    """Rows on the components of a fit with just so many, and what five neighbours there make of rows not fitted.

    predicted : the class of each new row by five neighbours
    """

    projection: ProjectionValues
    predicted: tuple[str, ...]
    confusions: Confusions


@dataclass(frozen=True, eq=False)
class MethodMap:
    """The maps of one method: `flat` of two components (or the only one), `deep` of three where there are so many."""

    method: str
    linear: bool
    flat: MapView
    deep: MapView | None

    @property
    def views(self) -> list[MapView]:
        return [self.flat] if self.deep is None else [self.flat, self.deep]

    @property
    def label(self) -> str:
        return f"{self.method}: {100 * self.flat.confusions.accuracy:.1f} %"


@dataclass(frozen=True, eq=False)
class Refit:
    """One method on the first split; `line` is its best line of results."""

    line: Line
    margins: MarginValues
    loadings: LoadingsValues
    spectrum: SpectrumValues


@dataclass(frozen=True, eq=False)
class Looks:
    """All that is fitted again for one data set.

    maps : the recommended method's first, then the best linear one, the classifier's view, the others by accuracy
    rows : what the fitted and the new rows are called
    refused : why a method could not be fitted again
    separations : by the classifier's view, which features separate the classes that are confused most
    """

    refits: list[Refit] = field(default_factory=list)
    maps: list[MethodMap] = field(default_factory=list)
    rows: tuple[Sequence[str], Sequence[str]] = ((), ())
    refused: list[str] = field(default_factory=list)
    separations: list[SeparationValues] = field(default_factory=list)


def lines_shown(results: JudgedRun, most: int = 8) -> list[Line]:
    """Return the best line of each reduction, the recommended one first, at most so many; PCA is always among them."""
    best: dict[str, Line] = {}
    for line in sorted(results.lines, key=lambda line: not _is_recommended(line, results)):
        if line.method != RAW.name:
            best.setdefault(line.method, line)
    chosen = list(best.values())[:most]
    if "pca" in best and best["pca"] not in chosen:
        chosen[-1] = best["pca"]
    return chosen


def _is_recommended(line: Line, results: JudgedRun) -> bool:
    """True if the line has the recommended method and classifier."""
    wanted = results.recommendation
    return wanted is not None and (line.method, line.classifier) == (wanted.method, wanted.classifier)


def looks_of(results: JudgedRun, allotment: Allotment = ALONE) -> Looks:
    """Every shown method fitted again, and for those where that was refused, why."""
    if results.data is None:
        return Looks()
    data = results.first_split()
    refits: list[Refit] = []
    maps: list[MethodMap] = []
    refused: list[str] = []
    separations: list[SeparationValues] = []
    for line in lines_shown(results, allotment.methods):
        with _refusals(line.method, refused):
            fits = Fits(named(line.method, results.methods, "method"), data, max(line.curve))
            refits.append(_refit(line, fits, results, allotment))
            maps.append(_map(line.method, fits.for_the_eye(), allotment))
            if line.method == CLASSIFIERS_VIEW:
                separations = _separations(fits, results.data.feature_names)
    compared = {one.method for one in maps}
    if CLASSIFIERS_VIEW in METHODS.keys() - compared and len(data.y_train) <= MOST_ROWS_OF_A_VIEW:
        with _refusals(CLASSIFIERS_VIEW, refused):
            view = Fits(METHODS[CLASSIFIERS_VIEW], data, 2).for_the_eye()
            maps.append(_map(CLASSIFIERS_VIEW, view, allotment, most=2))
            separations = _separations(view, results.data.feature_names)
    names = np.arange(1, results.data.n_samples + 1) if results.data.ids is None else np.asarray(results.data.ids)
    train, test = ([str(name) for name in names[part].tolist()] for part in results.grid.splits[0])
    first = refits[0].line.method if refits else ""
    return Looks(refits, _in_order(maps, first), (train, test), refused, separations)


@contextmanager
def _refusals(method: str, refused: list[str]) -> Iterator[None]:
    """Whatever a method says of these rows, the page is written; what it said comes to `refused`."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what matters of them was noted in the trials
            yield
    except Exception as error:
        refused.append(f"{method}: {type(error).__name__}: {' '.join(str(error).split())}")


def _refit(line: Line, fits: Fits, results: JudgedRun, allotment: Allotment) -> Refit:
    assert results.data is not None
    data, names, method = fits.data, results.data.feature_names, line.method
    parts = (data.train, data.y_train, data.test, data.y_test)
    model = fits.model(line.k)
    most = min(line.k, MOST_COMPONENTS)
    return Refit(
        line,
        MarginValues.of(model, *parts, method=method, n_components=line.k, most_rows=2 * allotment.points),
        LoadingsValues.of(
            model, data.train, method=method, names=names, most_components=most, linear=fits.method.linear
        ),
        SpectrumValues.of(fits.model(fits.largest), data.train, data.y_train, method=method, chosen=line.k),
    )


# ---------------------------------------------------------------------- maps


def _map(name: str, fits: Fits, allotment: Allotment, most: int = 3) -> MethodMap:
    model = fits.model(2)
    flat, deeper = _view(model, 2, fits.data, name, allotment.points), fits.model(most)
    has_three = scores_of(deeper, fits.data.test[:1]).shape[1] > 2
    deep = _view(deeper, 3, fits.data, name, allotment.points // 2) if has_three else None
    return MethodMap(name, fits.method.linear, flat, deep)


def _view(model: Any, k: int, data: SplitData, name: str, points: int) -> MapView:
    parts = (data.train, data.y_train, data.test, data.y_test)
    values = ProjectionValues.of(model, *parts, method=name, most_points=points, most_components=k)
    train, test = (scores_of(model, rows)[:, :k] for rows in (data.train, data.test))
    judge = KNeighborsClassifier(min(NEIGHBOURS, len(train))).fit(train, data.y_train)
    predicted = judge.predict(test)
    _, (_, actual, found) = class_codes(data.y_train, data.y_test, predicted)
    matrix = np.zeros((len(values.classes),) * 2, dtype=np.intp)
    np.add.at(matrix, (actual, found), 1)
    return MapView(values, tuple(str(label) for label in predicted.tolist()), Confusions(values.classes, matrix))


def _separations(fits: Fits, names: Any) -> list[SeparationValues]:
    """Return which features separate the pairs of classes that held-out rows confuse most."""
    model, data = fits.model(2), fits.data
    view = reducer_of(model)
    shares = np.triu((view.confusions_ + view.confusions_.T) / 2, 1)
    most = np.argsort(-shares, axis=None, kind="stable")[:MOST_SEPARATIONS].tolist()
    pairs = [divmod(at, len(shares)) for at in most if shares.flat[at] >= LEAST_SHARE]
    labels = [(view.classes_[a], view.classes_[b]) for a, b in pairs]
    return [SeparationValues.of(model, data.train, data.y_train, pair, names=names) for pair in labels]


def _in_order(maps: list[MethodMap], recommended: str) -> list[MethodMap]:
    """Return the recommended method's map first, then the best linear one, the classifier's view, and the others."""
    ranked = sorted(maps, key=lambda one: -one.flat.confusions.accuracy)
    linear = next((one.method for one in ranked if one.linear), "")
    ahead = [recommended, linear, CLASSIFIERS_VIEW]
    return sorted(ranked, key=lambda one: ahead.index(one.method) if one.method in ahead else len(ahead))


@dataclass
class Fits:
    """Fits of one method to the training rows; where the components are nested one fit serves every K.

    largest : the most components that were tried
    """

    method: Method
    data: SplitData
    largest: int
    done: dict[int, Any] = field(default_factory=dict)

    def for_the_eye(self) -> Fits:
        """Those to be drawn: a sharp view lays nearly all rows on as many dots as there are classes."""
        if self.method.name != CLASSIFIERS_VIEW:
            return self
        tempered = {**self.method.options, "sharpness": "tempered"}
        return Fits(replace(self.method, options=tempered), self.data, self.largest)

    def model(self, k: int) -> Any:
        """A fit with k components, or with as many as there are."""
        most = self.method.most_components(self.data.sizes)
        k = min(k, most)
        if k >= self.method.nested_from(self.data.sizes):
            k = min(max(k, self.largest, 3), most)  # three for a look in three dimensions
        if k not in self.done:
            self.done[k] = self._fitted(k)
        return self.done[k]

    def _fitted(self, k: int) -> Any:
        """The fit with k components, or with the most below k that the rows allow."""
        for count in range(k, 0, -1):
            try:
                model = self.method.estimator(count, self.data.seed)
                return fitted(model, self.data.train, self.data.y_train, self.data.train_weight)
            except ValueError:
                if count == 1:
                    raise
        raise ValueError(f"{self.method.name} has no components for these rows.")
