"""Requirements of a method (`Needs`), and the input of its solver (`Problem`).

    rows → Problem → the method's _solve → Solution ,    statistics → Problem → …

A method declares its needs once, and every way of fitting reads them. Its solver uses only its parameters and the
problem.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from discrim.core.coordinates.basis import Basis, Features
from discrim.core.coordinates.choose import Plan, choose
from discrim.core.coordinates.products import Products
from discrim.core.cross_validation import (
    Folds,
    Splits,
    TrainingSet,
    by_content,
    gathered_folds,
    hash_splitter,
    require_unnumbered,
    splits_of,
)
from discrim.core.eigen import Spectrum
from discrim.core.moments.class_moments import ClassMoments
from discrim.core.moments.gather import Gathering, Statistics
from discrim.core.moments.row_sample import SAMPLE_ROWS
from discrim.core.ratio import Ratio
from discrim.core.row_hash import seed_number
from discrim.core.spread import Margins, Spread
from discrim.tables.check_parameters import class_factors
from discrim.tables.rows import LabelledRows
from discrim.threads import computed_once

Array = NDArray[np.float64]
Request = int | float | None
EQUAL_MEANS = (
    "X must have class means that differ; got means that are all equal. Check the label column; "
    "MarginPCA(pairs='nearest') and BayesErrorPCA(score='bhattacharyya') use more than the means."
)


@dataclass(frozen=True, eq=False)
class Folding:
    """Folds given by a method's parameters.

    statistics : use of the folds' statistics: "none" (the method uses rows of its folds, or no folds), "judge" the
    result, or "choose" a parameter. For "choose", the statistics of all rows are the sum over the folds.
    on_sample : True if the choice may use a sample of the rows of a large sparse table.
    """

    cv: Any
    random_state: Any
    statistics: Literal["none", "judge", "choose"] = "none"
    on_sample: bool = False


@dataclass(frozen=True, eq=False, kw_only=True)
class Needs:
    """Requirements of a method, read by every way of fitting.

    scatter : scatters in its statistics: "means" none, "pooled" one, "each" one per class, "weighted" one, pooled with
        `scatter_weights` (a function of the class totals), which cannot be known in parts.
    directions : "leading", or "all" if even one direction depends on the smallest.
    matrix : reason why the scatter must be a matrix; None if products with the rows suffice.
    contrasts : True if the method finds at most n_classes − 1 directions.
    rows : reason why statistics do not suffice; None if they do.
    margins : function of the rows that computes quantities needed in addition to the statistics.
    passes : True if products with one spread suffice, so the parts of a table may be read several times instead.
    tells_labels : True if its statistics show the label variance explained by each component (vip_).
    priors : class probabilities, "equal", or None for the class frequencies.
    coordinates : given coordinates; None to choose them by the size of the table.
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
    priors: Any = None
    coordinates: Plan | None = None

    def gathering(self, method: str) -> Gathering:
        """Return the statistics needed from every part of a table: moments if they suffice, else a sample of rows."""
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

    def plan(self, rows: LabelledRows, request: Request, groups: NDArray[Any] | None) -> Plan:
        """Choose the coordinates of rows by their shape."""
        folds, every = self.folds, rows.n_classes - 1 if self.contrasts else None
        by_content_alone = folds is not None and folds.on_sample and by_content(folds.cv) and groups is None
        return choose(
            *rows.shape,
            stored=rows.X.nnz if rows.is_sparse else None,
            wanted=request if isinstance(request, int) else every,
            why_all=self.matrix,
            can_sample=rows.is_sparse and self.scatter != "each" and by_content_alone,
        )

    def weighted(self, rows: LabelledRows) -> LabelledRows:
        """Return the rows with class weights applied."""
        factors = class_factors(self.class_weight, rows.classes, rows.class_totals)[rows.codes]
        return replace(rows, weights=factors * (1.0 if rows.weights is None else rows.weights))


@dataclass(frozen=True, eq=False, kw_only=True)
class Problem:
    """Input of a method's solver, in addition to the method's parameters.

    needs : requirements of the method, including its folds
    basis : coordinates, with the rows in them (none if only statistics are known) and their margins
    request : requested number of components, a share, or None
    shape : number of rows and of features
    declared : labels that a stream may contain, if they were given
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
    folds: Folds | None = None  # of the rows in these coordinates, if a choice uses them
    in_finer: Callable[[], Problem] | None = None  # builds the same problem in coordinates with all directions

    @classmethod
    def from_rows(
        cls, rows: LabelledRows, needs: Needs, request: Request, groups: NDArray[Any] | None = None
    ) -> Problem:
        """Build from validated rows, in the cheapest coordinates that show all directions that are needed."""
        rows = rows if needs.class_weight is None else needs.weighted(rows)
        plan = needs.coordinates or needs.plan(rows, request, groups)
        margins = Margins() if needs.margins is None else needs.margins(rows)
        basis = plan.build(rows, margins, leading=needs.directions == "leading")
        if needs.directions == "all" and basis.can_resolve and not basis.is_resolved:
            basis = plan.build(rows, margins, resolve=True)
        pose = partial(cls.in_coordinates, needs=needs, request=request, groups=groups)
        return replace(pose(basis), in_finer=lambda: pose(plan.build(rows, margins, resolve=True)))

    @classmethod
    def in_coordinates(cls, basis: Basis, needs: Needs, request: Request, groups: NDArray[Any] | None) -> Problem:
        """Build from rows in their coordinates, with the folds if a choice uses them."""
        points, folding, folds, emphasis = basis.points, needs.folds, None, None
        # folds that choose nothing must not change the last digits of a fit
        if folding is not None and folding.statistics == "choose":
            # raised again where the folds are needed, after more serious errors
            with contextlib.suppress(ValueError):
                folds = Folds(points, splits_of(basis.original, folding.cv, folding.random_state, groups))
        keep = needs.scatter if basis.has_scatters else "means"
        if folds is not None and folds.splits.divide and keep == "pooled":
            first = folds.training_sets[0]
            assert first.tested is not None
            moments = first.training + first.tested
        else:
            if keep == "weighted" and needs.scatter_weights is not None:
                keep, emphasis = "pooled", needs.scatter_weights(points.class_totals)
            moments = ClassMoments.from_rows(points, keep=keep, emphasis=emphasis, doubles=False)
        problem = cls.from_moments(basis, moments, needs, request, basis.original.X.dtype)
        return replace(problem, shape=(moments.n_rows, basis.original.shape[1]), groups=groups, folds=folds)

    @classmethod
    def from_statistics(
        cls, total: Statistics, needs: Needs, request: Request, declared: NDArray[Any] | None = None
    ) -> Problem:
        """Build from statistics, without rows."""
        problem = cls.from_moments(Features.from_moments(total.moments), total.moments, needs, request, total.dtype)
        return replace(problem, statistics=total, declared=declared)

    @classmethod
    def from_moments(
        cls, basis: Basis, moments: ClassMoments, needs: Needs, request: Request, dtype: np.dtype[Any]
    ) -> Problem:
        """Build from moments in the features."""
        shape = moments.n_rows, moments.n_features
        return cls(needs=needs, basis=basis, moments=moments, request=request, shape=shape, dtype=dtype)

    @computed_once
    def resolved(self) -> Problem:
        """Return the same problem in coordinates that show small directions."""
        assert self.in_finer is not None
        return self.in_finer()

    @computed_once
    def ratio(self) -> Ratio:
        """Return the ratio of the class means to the within-class scatter, in the range of the total scatter."""
        return self.basis.ratio(self.moments)

    @computed_once
    def priors(self) -> Array:
        """Return the class probabilities: the classes' own shares (None), "equal", or given ones."""
        priors, shares = self.needs.priors, self.moments.weights / self.moments.total_weight
        if priors is None:
            return shares
        if isinstance(priors, str) and priors == "equal":
            return np.full(len(shares), 1 / len(shares))
        if isinstance(priors, str):
            raise ValueError(f"priors must be None, 'equal' or one probability per class; got {priors!r}.")
        try:
            given = np.asarray(priors, dtype=np.float64)
        except (TypeError, ValueError):
            given = np.empty(0)
        if given.shape != shares.shape or not (given > 0).all() or abs(given.sum() - 1) > 1e-6:
            raise ValueError(
                f"priors must be {len(shares)} positive numbers (one per class, in the order of classes_) that sum to "
                f"1; got {priors!r}."
            )
        return given

    @property
    def separated(self) -> Ratio:
        """The ratio, for gains that depend on the class means only; raises if all class means are equal."""
        if not self.ratio.means_differ:
            raise ValueError(EQUAL_MEANS)
        return self.ratio

    def spectrum(self, spread: Spread, wanted: int | None) -> Spectrum:
        """Return the leading eigenpairs of a spread (wanted=None: all)."""
        return self.basis.spectrum(spread, self.moments, wanted)

    def splits(self, points: LabelledRows | None = None) -> Splits:
        """Return training and test rows as given by the method's parameters."""
        assert self.needs.folds is not None
        points = self.basis.original if points is None else points
        return splits_of(points, self.needs.folds.cv, self.needs.folds.random_state, self.groups)

    @computed_once
    def training_sets(self) -> list[TrainingSet]:
        """Return statistics of each fold's training rows, with its held-out rows; none if there are no folds."""
        if self.statistics is not None:
            return gathered_folds(self.statistics) if self.statistics.gathering.n_folds else []
        if not self.basis.points.shape[0]:
            return []
        folds = self.folds or Folds(self.basis.points, self.splits())
        return [self.basis.first_training_set(folds)] if isinstance(self.basis, Products) else folds.training_sets

    def training_sets_for_choice(self) -> tuple[list[TrainingSet], bool]:
        """Return the folds for a choice, and True if they hold a sample of the rows."""
        if not isinstance(self.basis, Products):
            return self.training_sets, False
        sample = self.basis.sample()
        return Folds(sample.points, self.splits(sample.original)).training_sets, True
