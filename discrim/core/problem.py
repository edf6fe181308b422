"""What a method needs of a table (`Needs`), and what it is given to solve (`Problem`).

    rows → ProblemBuilder → Problem → the method's _solve → Solution ,    statistics → Problem → …

Every way of fitting reads the needs that a method declares once; a method looks at its parameters and at the problem,
and at nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from discrim.core.coordinates.basis import Basis, Features
from discrim.core.coordinates.choose import Plan, choose
from discrim.core.cross_validation import (
    Folds,
    Splits,
    TrainingSet,
    by_content,
    gathered_folds,
    hash_splitter,
    splits_of,
)
from discrim.core.eigen import Spectrum
from discrim.core.margin_vectors import Margins
from discrim.core.moments.class_moments import ClassMoments
from discrim.core.moments.gather import Gathering, Statistics
from discrim.core.moments.row_sample import SAMPLE_ROWS
from discrim.core.ratio import Ratio
from discrim.core.spread import Spread
from discrim.tables.check_parameters import class_factors, require_unnumbered, seed_number
from discrim.tables.rows import LabelledRows
from discrim.threads import computed_once

Array = NDArray[np.float64]
Request = int | float | None
EQUAL_MEANS = (
    "The means of all classes coincide, so no direction separates them by their means. Check the label column; "
    "MarginPCA(pairs='nearest') and BayesErrorPCA(score='bhattacharyya') use more than the means."
)


@dataclass(frozen=True, eq=False)
class Folding:
    """Folds as a method's parameters name them.

    statistics : what statistics of the folds are for: nothing (the method takes rows of its folds, or none), to judge
    the result, or to choose a parameter; in the last case those of all rows are their sum.
    on_sample : whether the choice may be made on some rows of a large sparse table.
    """

    cv: Any
    random_state: Any
    statistics: Literal["none", "judge", "choose"] = "none"
    on_sample: bool = False


@dataclass(frozen=True, eq=False, kw_only=True)
class Needs:
    """Requirements of a method, read by every way of fitting.

    scatter : which scatters its statistics hold: "means" none, "pooled" one, "each" one for each class, "weighted" one,
        pooled with `scatter_weights` (a function of the classes' totals), which parts of a table cannot know.
    directions : "leading", or "all" where even one direction depends on the smallest.
    matrix : why products with the rows are not enough and the scatter must be a matrix; None where they are enough.
    contrasts : whether there are at most as many directions as classes, less one.
    rows : why statistics are not enough; None where they are.
    margins : finds what the objective refers to beside the statistics, from the rows in their features.
    passes : whether products with one spread are all it takes, so that parts may be gone through several times.
    tells_labels : whether its statistics say what each component explains of the labels (vip_).
    coordinates : given coordinates, where the decision table is not to choose them.
    """

    supervised: bool = True
    scatter: Literal["means", "pooled", "each", "weighted"] = "pooled"
    scatter_weights: Callable[[Array], Array | None] | None = None
    directions: Literal["leading", "all"] = "leading"
    matrix: str | None = None
    contrasts: bool = False
    rows: str | None = None
    margins: Callable[[LabelledRows], Margins] | None = None
    folds: Folding | None = None
    passes: bool = False
    tells_labels: bool = True
    class_weight: Any = None
    coordinates: Plan | None = None

    def gathering(self, method: str) -> Gathering:
        """Return what every part of a table is asked for: moments where they suffice, else a sample of rows."""
        if self.rows is not None:
            require_unnumbered(None if self.folds is None else self.folds.cv)
            return Gathering(method, self.supervised, keep="means", sample_rows=SAMPLE_ROWS)
        keep = "each" if self.scatter == "weighted" else self.scatter
        factors = self.class_weight if isinstance(self.class_weight, dict) else None
        asked = Gathering(method, self.supervised, keep=keep, class_weight=factors)
        if self.folds is None or self.folds.statistics == "none":
            return asked
        splitter = hash_splitter(self.folds.cv, self.folds.random_state)
        if splitter is None:
            return asked
        sampled = SAMPLE_ROWS if self.folds.statistics == "choose" else 0
        seed = seed_number(splitter.random_state)
        return replace(asked, n_folds=splitter.get_n_splits(), seed=seed, sample_rows=sampled)

    def weighted(self, rows: LabelledRows) -> LabelledRows:
        """Return the rows with the class weights on their own."""
        factors = class_factors(self.class_weight, rows.classes, rows.class_totals)[rows.codes]
        return replace(rows, weights=factors * (1.0 if rows.weights is None else rows.weights))

    def plan(self, rows: LabelledRows, request: Request, *, grouped: bool) -> Plan:
        """Return the coordinates that suit what is wanted of the rows."""
        leading = self.directions == "leading"
        if self.coordinates is not None:
            return replace(self.coordinates, leading=leading)
        every = rows.n_classes - 1 if self.contrasts else None
        folds = self.folds
        can_sample = rows.is_sparse and folds is not None and folds.on_sample and by_content(folds.cv) and not grouped
        plan = choose(
            *rows.shape,
            stored=rows.X.nnz if rows.is_sparse else None,
            wanted=request if isinstance(request, int) else every,
            why_all=self.matrix,
            can_sample=can_sample,
        )
        return replace(plan, leading=leading)


@dataclass(frozen=True, eq=False, kw_only=True)
class Problem:
    """Everything that a method may look at, its own parameters aside.

    needs : what the method asked for, with its folds
    basis : the coordinates, with the rows in them (none where only statistics are known) and their margins
    request : the number of components that is asked for, a share, or None
    shape : numbers of rows and of features
    declared : the labels that a stream may bring, where they were named
    """

    needs: Needs
    basis: Basis
    moments: ClassMoments
    request: Request
    shape: tuple[int, int]
    dtype: np.dtype[Any]
    statistics: Statistics | None = None
    declared: NDArray[Any] | None = None
    groups: NDArray[Any] | None = None

    @classmethod
    def from_statistics(
        cls, total: Statistics, needs: Needs, request: Request, declared: NDArray[Any] | None = None
    ) -> Problem:
        """Return the problem of a table of which there are statistics only."""
        problem = cls.from_moments(Features.of_moments(total.moments), total.moments, needs, request, total.dtype)
        return replace(problem, statistics=total, declared=declared)

    @classmethod
    def from_moments(
        cls, basis: Basis, moments: ClassMoments, needs: Needs, request: Request, dtype: np.dtype[Any]
    ) -> Problem:
        """Return the problem of moments in the features."""
        shape = moments.n_rows, moments.n_features
        return cls(needs=needs, basis=basis, moments=moments, request=request, shape=shape, dtype=dtype)

    @computed_once
    def ratio(self) -> Ratio:
        """The class means over the within-class scatter, in the range of the total scatter."""
        return self.basis.ratio(self.moments)

    @property
    def separated(self) -> Ratio:
        """The same for a gain that is of the class means alone; refused where they coincide."""
        if not self.ratio.means_differ:
            raise ValueError(EQUAL_MEANS)
        return self.ratio

    def class_covariances(self, gamma: float) -> Array:
        """Return (1−γ) S_c/n_c + γ τ I of every class, in the ratio's coordinates; their mean is the ratio's Σ_γ."""
        assert self.moments.each is not None
        each, ratio = self.moments.each / self.moments.weights[:, None, None], self.ratio
        if ratio.embedding is not None:
            each = ratio.embedding @ each @ ratio.embedding.T
        return np.asarray((1 - gamma) * each + ratio.ridge(gamma) * np.eye(each.shape[1]))

    def spectrum(self, spread: Spread, wanted: int | None) -> Spectrum:
        """Return the leading eigenpairs of a spread (None: all)."""
        return self.basis.spectrum(spread, self.moments, wanted)

    @property
    def has_folds(self) -> bool:
        """Whether there are rows, or statistics of folds, to hold out."""
        if self.statistics is not None:
            return self.statistics.gathering.n_folds > 0
        return self.basis.points.shape[0] > 0

    def splits(self, points: LabelledRows | None = None) -> Splits:
        """Return training and test rows as the method's parameters name them."""
        assert self.needs.folds is not None
        points = self.basis.original if points is None else points
        return splits_of(points, self.needs.folds.cv, self.needs.folds.random_state, self.groups)

    def training_sets(self) -> Iterable[TrainingSet]:
        """Return statistics of each fold's training rows, with the rows that were held out of them."""
        if self.statistics is not None:
            return gathered_folds(self.statistics)
        if self.basis.folds is not None:
            return self.basis.folds
        return Folds(self.basis.points, self.splits())

    def training_sets_for_choice(self) -> tuple[Iterable[TrainingSet], bool]:
        """Return the folds that a choice is made by, and whether they hold a sample of the rows."""
        where = self.basis.to_choose_in()
        if where is self.basis:
            return self.training_sets(), False
        return Folds(where.points, self.splits(where.original)), True


@dataclass(frozen=True, eq=False)
class ProblemBuilder:
    """Problems of rows: in the coordinates of a plan, and in finer ones if small directions matter; each built once."""

    rows: LabelledRows
    needs: Needs
    request: Request
    groups: NDArray[Any] | None
    plan: Plan
    margins: Margins
    _built: dict[bool, Problem] = field(default_factory=dict)

    @classmethod
    def from_rows(
        cls, rows: LabelledRows, needs: Needs, request: Request, groups: NDArray[Any] | None = None
    ) -> ProblemBuilder:
        """Choose the coordinates of checked rows."""
        rows = rows if needs.class_weight is None else needs.weighted(rows)
        plan = needs.plan(rows, request, grouped=groups is not None)
        margins = Margins() if needs.margins is None else needs.margins(rows)
        return cls(rows, needs, request, groups, plan, margins)

    def problem(self, *, resolve: bool) -> Problem:
        """Return the problem in the cheapest coordinates, or with all directions, even the smallest."""
        if resolve not in self._built:
            basis = self._with_folds(self.plan.build(self.rows, self.margins, resolve=resolve))
            keep = "pooled" if self.needs.scatter == "weighted" else self.needs.scatter
            moments = basis.moments(keep, self.needs.scatter_weights)
            self._built[resolve] = Problem(
                needs=self.needs,
                basis=basis,
                moments=moments,
                request=self.request,
                shape=(moments.n_rows, self.rows.shape[1]),
                dtype=self.rows.X.dtype,
                groups=self.groups,
            )
        return self._built[resolve]

    def _with_folds(self, basis: Basis) -> Basis:
        """Return the basis with its points in folds, if a choice is made by their statistics."""
        folding = self.needs.folds
        if folding is None or folding.statistics != "choose":
            return basis  # the same fit, to the last digit, whether or not rows are held out of it
        try:
            splits = splits_of(basis.original, folding.cv, folding.random_state, self.groups)
        except ValueError:  # is raised again where the folds are needed, if the table has no worse fault
            return basis
        return replace(basis, folds=Folds(basis.points, splits))
