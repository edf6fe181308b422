"""The methods of a page, fitted once more on the first split, to be looked at: rows, margins, loadings, spectra."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from discrim.evaluation.methods import Method
from discrim.evaluation.paper_conventions import any_method
from discrim.evaluation.summary import Line
from discrim.evaluation.trial import SplitData
from discrim.report.loadings import LoadingsValues
from discrim.report.margin_distribution import MarginValues
from discrim.report.projection import ProjectionValues
from discrim.report.results import RAW, Results
from discrim.report.spectrum import SpectrumValues

MOST_COMPONENTS = 5
LEAST = 3  # components of a fit where the method has so many: for a look in three dimensions


class Allotment(NamedTuple):
    """How much of one data set a page can hold: methods that are fitted again, and points of each that are drawn."""

    methods: int = 8
    points: int = 1_500

    @classmethod
    def among(cls, n_datasets: int) -> Allotment:
        """A fair share of what one page can hold, so that it stays below 8 MB whatever a store has."""
        methods = 8 if n_datasets <= 4 else 4 if n_datasets <= 16 else 2
        return cls(methods, max(60, ALONE.points // max(1, n_datasets)))


ALONE = Allotment()


@dataclass(frozen=True, eq=False)
class Refit:
    """One method on the first split. `line` is its best line of results, `k` the components that count."""

    line: Line
    projection: ProjectionValues
    margins: MarginValues
    loadings: LoadingsValues
    spectrum: SpectrumValues

    @property
    def k(self) -> int:
        return self.line.k


def lines_shown(results: Results, most: int = 8) -> list[Line]:
    """The best line of each reduction, best first, at most so many; PCA is always among them."""
    best: dict[str, Line] = {}
    for line in results.lines:
        if line.method != RAW:
            best.setdefault(line.method, line)
    chosen = list(best.values())[:most]
    if "pca" in best and best["pca"] not in chosen:
        chosen[-1] = best["pca"]
    return chosen


def refits(results: Results, allotment: Allotment = ALONE) -> tuple[list[Refit], list[str]]:
    """Every shown method fitted again, and for those where that was refused, why."""
    if results.table is None:
        return [], []
    data = results.first_split()
    found: list[Refit] = []
    refused = []
    for line in lines_shown(results, allotment.methods):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # what matters of them was noted in the trials
                found.append(_refit(line, data, results, allotment.points))
        except Exception as error:  # whatever a method says of these rows, the page is written
            refused.append(f"{line.method}: {type(error).__name__}: {' '.join(str(error).split())}")
    return found, refused


def _refit(line: Line, data: SplitData, results: Results, points: int) -> Refit:
    fits = Fits(any_method(line.method), data, max(line.curve))
    assert results.table is not None
    names, method = results.table.feature_names, line.method
    parts = (data.train, data.y_train, data.test, data.y_test)
    model = fits.model(max(line.k, LEAST))
    return Refit(
        line,
        ProjectionValues.of(model, *parts, method=method, most_points=points, most_components=MOST_COMPONENTS),
        MarginValues.of(fits.model(line.k), *parts, method=method, n_components=line.k, most_rows=points),
        LoadingsValues.of(model, data.train, method=method, names=names, most_components=MOST_COMPONENTS),
        SpectrumValues.of(fits.model(fits.largest), data.train, data.y_train, method=method, chosen=line.k),
    )


@dataclass
class Fits:
    """Fits of one method to the training rows; where the components are nested one fit serves every K.

    largest : the most components that were tried
    """

    method: Method
    data: SplitData
    largest: int
    done: dict[int, Any] = field(default_factory=dict)

    def model(self, k: int) -> Any:
        """A fit with k components, or with as many as there are."""
        most = self.method.most_components(self.data.sizes)
        k = min(k, most)
        if k >= self.method.nested_from(self.data.sizes):
            k = min(max(k, self.largest, LEAST), most)
        if k not in self.done:
            self.done[k] = self._fitted(k)
        return self.done[k]

    def _fitted(self, k: int) -> Any:
        """The fit with k components, or with the most below k that the rows allow."""
        for count in range(k, 0, -1):
            try:
                return self.method.estimator(count, self.data.seed).fit(self.data.train, self.data.y_train)
            except ValueError:
                if count == 1:
                    raise
        raise ValueError(f"{self.method.name} has no components for these rows.")
