"""Principal components of differences between classes, and of rows shifted by a support vector machine."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from copy import copy
from dataclasses import replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from discrim.core.coordinates.basis import Basis
from discrim.core.eigen import Spectrum, kept_count
from discrim.core.enemies import TIES, enemy_pairs
from discrim.core.margin_vectors import Margins, Pairs, class_medians
from discrim.core.moments.class_moments import ClassMoments
from discrim.core.problem import Needs, Problem, ProblemBuilder
from discrim.core.spread import Spread
from discrim.core.svm.shift import Shift, added_rows, class_pulls, margin_shift
from discrim.decompositions import eigh
from discrim.estimators.base import Reducer
from discrim.estimators.solution import Solution, leading_directions
from discrim.tables.check_parameters import COUNT, Constraints, named, number, plain_count
from discrim.tables.rows import LabelledRows
from discrim.tables.validation import require_finite, require_whole_weights
from discrim.tables.warn_once import warn

Array = NDArray[np.float64]
MOST_ENEMIES = 2**26  # pairs of nearest enemies: about 60 bytes each where they are put together, 4 GB
PAIRS = ("all", "mean", "median", "nearest")


class MarginPCA(Reducer):
    """Maximum-margin principal components (M-PCA0, 1a, 1b, 2): PCA of differences between rows of different classes.

        maximise  tr WᵀAW  subject to  WᵀW = I,    A = Σ z zᵀ over differences z between classes

    ========= ============================================================ =========
    pairs     z                                                            the paper
    ========= ============================================================ =========
    "all"     x_i − x_j for all rows of different classes                  M-PCA0
    "mean"    x_i − mean of each other class                               M-PCA1a
    "median"  x_i − per-feature median of each other class                 M-PCA1b
    "nearest" x_i − x_j where one is the other's nearest enemy, each once  M-PCA2
    ========= ============================================================ =========

    No classifier is needed and no matrix is inverted. "all" and "mean" cost what PCA costs (the pairs are never formed)
    and stream; use "mean" first, "nearest" where the border between the classes is bent or the classes overlap.
    With more than two classes A is summed over the pairs of classes.

    Parameters
    ----------
    n_components : int, float or None, default=None
        How many components to keep; a fraction in (0, 1) keeps the fewest that reach that share of the spread, None
        all directions of numerical rank.
    pairs : {"all", "mean", "median", "nearest"}, default="all"
        Which differences count, see above.
    enemies : {"each", "any"}, default="each"
        For "nearest": look for the nearest row of each other class, or of all other classes together.
    ties : {"share", "all", "lowest"}, default="share"
        For "nearest": what a row gives its t equally near enemies of a class. "share": 1/t each, a pair found from both
        sides having the larger share, so that the order of rows does not matter; "all": 1 each, as in the paper's
        figure 3; "lowest": 1 to the one that is listed first, at most n pairs for two classes, as in the paper's text.

    Attributes
    ----------
    components_ : array of shape (n_components_, n_features)
        The directions, one per row, orthonormal.
    eigenvalues_ : array of shape (n_components_,)
        Of A divided by the total weight, along each direction.
    explained_variance_ratio_ : array of shape (n_components_,)
        Each direction's share of their sum over all directions.
    rank_ : int
        Numerical rank: how many directions there are (on the Lanczos path: how many were found).
    {fitted}

    References
    ----------
    X. Luo and R. J. Durrant, "Maximum Margin Principal Components", equations 10 and 12 and figures 1 to 3.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from discrim import MarginPCA
    >>> X, y = load_wine(return_X_y=True)
    >>> MarginPCA(n_components=2, pairs="mean").fit(X, y).transform(X).shape
    (178, 2)
    """

    _parameter_constraints: ClassVar[Constraints] = {
        "n_components": COUNT,
        "pairs": named(*PAIRS),
        "enemies": named("each", "any"),
        "ties": named(*TIES),
    }

    def __init__(
        self,
        n_components: int | float | None = None,
        *,
        pairs: str = "all",
        enemies: str = "each",
        ties: str = "share",
    ) -> None:
        self.n_components = n_components
        self.pairs = pairs
        self.enemies = enemies
        self.ties = ties

    def _needs(self) -> Needs:
        rows = None
        if self.pairs in ("median", "nearest"):
            rows = f"pairs={self.pairs!r} needs all rows at once. Use fit, or pairs='all' or 'mean', which add up."
        of_rows = {"median": self._medians, "nearest": self._nearest}
        return Needs(
            scatter={"all": "weighted", "nearest": "means"}.get(self.pairs, "pooled"),  # type: ignore[arg-type]
            scatter_weights=self._scatter_weights,
            rows=rows,
            margins=of_rows.get(self.pairs),
            passes=True,
            tells_labels=False,  # scatters are pooled by pairs, or not at all
        )

    def _scatter_weights(self, totals: Array) -> Array | None:
        weights = self._class_weights(totals)
        # equal ones need no pass of their own; float32 ends at 1e38
        return None if (weights == weights[0]).all() else weights / weights.max()

    def _medians(self, rows: LabelledRows) -> Margins:
        return Margins(landmarks=class_medians(rows))

    def _nearest(self, rows: LabelledRows) -> Margins:
        return Margins(pairs=self._enemy_pairs(rows))

    def _enemy_pairs(self, rows: LabelledRows) -> Pairs:
        if self.ties == "lowest":
            require_whole_weights(rows.weights, 'MarginPCA(pairs="nearest", ties="lowest")')
        n_pairs = rows.shape[0] * rows.n_classes
        if self.enemies == "each" and n_pairs > MOST_ENEMIES:
            raise ValueError(
                f"enemies='each' takes a nearest row in every other class for every row, at most {MOST_ENEMIES:,} "
                f"pairs in memory; got {rows.shape[0]} rows of {rows.n_classes} classes, {n_pairs:,} pairs. Pass "
                "enemies='any', or pairs='mean'."
            )
        require_finite(rows.X)  # distances come before the sums that would show it
        try:
            return enemy_pairs(
                rows.X,
                rows.codes,
                rows.n_classes,
                weights=rows.weights,
                enemies=self.enemies,
                ties=self.ties,
                most=MOST_ENEMIES,
            )
        except MemoryError:
            raise ValueError(
                f"ties={self.ties!r} takes all rows that are equally near, and among {rows.shape[0]} rows more than "
                f"{MOST_ENEMIES:,} pairs are nearest enemies, which do not fit into memory. Pass ties='lowest', which "
                "takes one for each row and class, or pairs='mean'."
            ) from None

    def _class_weights(self, totals: Array) -> Array:
        """Compute w_c, how often a row of class c takes part."""
        if self.pairs == "all":
            return totals.sum() - totals
        return np.full(len(totals), 0.0 if self.pairs == "nearest" else len(totals) - 1.0)

    def _solve(self, problem: Problem) -> Solution:
        return leading_directions(problem, self._spread(problem.moments, problem.basis))

    def _spread(self, moments: ClassMoments, basis: Basis) -> Spread:
        n_c = moments.weights
        means = moments.centred_means()
        # Σ_c n_c (μ_c − μ) = 0, so the sums over pairs of classes come down to one row per class
        if self.pairs == "all":
            rows = np.sqrt(n_c.sum() * n_c)[:, None] * means
        elif self.pairs == "mean":
            rows = np.sqrt(len(n_c) * n_c + n_c.sum())[:, None] * means
        elif self.pairs == "median":
            assert basis.margins.landmarks is not None
            medians = moments.centred(basis.margins.landmarks)
            rows = _median_rows(n_c, means, medians)
        else:
            rows = means[:0]
        return Spread(self._class_weights(n_c), rows, basis.margins.pairs)


def _median_rows(n_c: Array, means: Array, medians: Array) -> Array:
    """Return rows whose Gram matrix is Σ_{a≠b} n_a (μ_a − m_b)(μ_a − m_b)ᵀ.

    As Σ n_a μ_a = 0 it is Σ_a [(C−1) n_a μ_a μ_aᵀ + n_a (μ_a m_aᵀ + m_a μ_aᵀ) + (n − n_a) m_a m_aᵀ]: two rows for each
    class, unless one has more than (C−1)/C of the weight, where its own share is negative and only the sum is not.
    """
    C, n = len(n_c), n_c.sum()
    of_means = np.sqrt((C - 1) * n_c)
    both = n_c / of_means
    of_medians = n - n_c - both**2
    if (of_medians < 0).any():
        return _laplacian_factor(n_c) @ np.concatenate([means, medians])
    first = of_means[:, None] * means + both[:, None] * medians
    return np.concatenate([first, np.sqrt(of_medians)[:, None] * medians])


def _laplacian_factor(n_c: Array) -> Array:
    """Compute F with FᵀF the 2C×2C Laplacian of Σ_{a≠b} n_a (μ_a − m_b)(μ_a − m_b)ᵀ on [means; medians]."""
    C = len(n_c)
    edges = np.repeat(n_c[:, None], C, axis=1) * (1 - np.eye(C))
    laplacian = np.block([[np.diag(edges.sum(axis=1)), -edges], [-edges.T, np.diag(edges.sum(axis=0))]])
    values, vectors = eigh(laplacian)
    kept = values > 1e-12 * values[-1]  # the root of a zero that came out as 1e-16 would be a row of 1e-8
    return np.sqrt(values[kept])[:, None] * vectors.T[kept]


class MaximumMarginCriterion(Reducer):
    """Maximum margin criterion: class means far apart, classes tight, no inverse needed.

        maximise  tr W(S_b − weight·S_w)Wᵀ   subject to  WWᵀ = I

    Never singular and not limited to C−1 directions, but it depends on the features' scales, as PCA does.

    Parameters
    ----------
    n_components : int, float or None, default=None
        How many components to keep; a fraction in (0, 1) keeps the fewest that reach that share of the positive
        eigenvalues, None the directions along which S_b outweighs weight·S_w (at least one).
    weight : float, default=1.0
        How much the spread within classes counts (≥ 0).

    Attributes
    ----------
    components_ : array of shape (n_components_, n_features)
        The directions, one per row, orthonormal.
    eigenvalues_ : array of shape (n_components_,)
        Of the difference of scatters, per unit of weight, along each direction.
    explained_variance_ratio_ : array of shape (n_components_,)
        Each direction's share of the sum of the positive eigenvalues.
    rank_ : int
        Numerical rank: how many directions there are (on the Lanczos path: how many were found).
    {fitted_with_vip}

    References
    ----------
    Li, Jiang and Zhang, "Efficient and robust feature extraction by maximum margin criterion" (2006).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from discrim import MaximumMarginCriterion
    >>> X, y = load_iris(return_X_y=True)
    >>> MaximumMarginCriterion(n_components=2).fit_transform(X, y).shape
    (150, 2)
    """

    _parameter_constraints: ClassVar[Constraints] = {
        "n_components": COUNT,
        "weight": (number("a number ≥ 0 (how much the spread within classes counts)", lambda w: 0 <= w < np.inf),),
    }

    def __init__(self, n_components: int | float | None = None, *, weight: float = 1.0) -> None:
        self.n_components = n_components
        self.weight = weight

    def _needs(self) -> Needs:
        return Needs(passes=True)

    def _solve(self, problem: Problem) -> Solution:
        moments = problem.moments
        spread = Spread(np.full(len(moments.weights), -float(self.weight)), moments.between_rows())
        return leading_directions(problem, spread, None if isinstance(problem.request, int) else self._count)

    def _count(self, request: int | float | None, spectrum: Spectrum, shape: tuple[int, int]) -> int:
        positive = int((spectrum.values > 1e-12 * np.abs(spectrum.values).max(initial=0.0)).sum())
        if positive == 0 and spectrum.rank > 0:
            warn(
                f"Along no direction does the between-class spread exceed weight={self.weight} times the within-class "
                "spread; only the best direction is kept. Pass an int n_components, or a smaller weight.",
            )
            return 1
        return kept_count(request, spectrum.values, spectrum.total, positive, shape)


class ShiftedPCA(Reducer):
    """PCA of max-margin shifted rows, for `MaxMarginShift`.

        maximise  tr Wᵀ(S_w + S_b + ηᵀ(2σ²I + σ⁴G)η)W  subject to  WᵀW = I

    The scatter of T[X] in closed form (see discrim.core.svm.shift), hence on every path: tall, wide, sparse, Lanczos.
    `mean_` is that of the rows as they came, which is where the components are applied.
    """

    def __init__(
        self,
        n_components: int | float | None = None,
        *,
        shift: float = 1.0,
        C: float = 1.0,
        tol: float = 1e-10,
        max_iter: int = 10_000,
    ) -> None:
        self.n_components = n_components
        self.shift = shift
        self.C = C
        self.tol = tol
        self.max_iter = max_iter

    def _needs(self) -> Needs:
        return Needs(rows="the SVM needs all rows at once. Use fit.", margins=self._margins, passes=True)

    def _margins(self, rows: LabelledRows) -> Margins:
        return unit_shift(margin_shift(rows, rows.n_classes, C=self.C, tol=self.tol, max_iter=self.max_iter))

    def _solve(self, problem: Problem) -> Solution:
        basis = problem.basis
        assert basis.margins.duals is not None
        return leading_directions(
            problem, shifted_spread(problem.moments, basis, np.sqrt(self.shift) * basis.margins.duals)
        )

    def fitted_to(self, rows: LabelledRows, found: Shift, shifts: Iterable[float]) -> Iterator[ShiftedPCA]:
        """Yield a fitted copy for each shift of rows whose SVM is solved; they share it, coordinates and scatter.

        The last of the rows' classes may hold rows without a label.
        """
        model = copy(self)
        model.n_features_in_ = rows.shape[1]
        needs = replace(model._needs(), margins=lambda _: unit_shift(found))
        builder = ProblemBuilder.from_rows(rows, needs, plain_count(self.n_components))
        for shift in shifts:
            fitted = copy(model)
            fitted.shift = shift
            fitted._publish(fitted._solve_rows(rows, builder=builder), rows.classes)
            yield fitted


def unit_shift(found: Shift) -> Margins:
    """Return σA at shift 1: any other shift is a factor away."""
    return Margins(duals=np.sqrt(found.sigma2(1.0)) * found.duals)


def shifted_spread(moments: ClassMoments, basis: Basis, duals: Array) -> Spread:
    """Return the scatter of T[X] = X + σ²Aη from σA."""
    eta = class_pulls(basis.points, moments.exponent, duals)
    rows = [moments.between_rows(), added_rows(eta, duals, basis.points.weights)]
    return Spread(np.ones(len(moments.weights)), np.concatenate(rows))
