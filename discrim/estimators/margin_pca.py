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
from discrim.core.moments.class_moments import ClassMoments
from discrim.core.problem import Needs, Problem
from discrim.core.spread import Margins, Pairs, Spread, class_medians
from discrim.core.svm.shift import Shift, added_rows, class_pulls, margin_shift
from discrim.decompositions import eigh
from discrim.estimators.base import Reducer
from discrim.estimators.solution import Solution, leading_directions
from discrim.tables.check_parameters import COUNT, Constraints, named, number, plain_count
from discrim.tables.rows import LabelledRows
from discrim.tables.validation import require_finite
from discrim.warn_once import warn

Array = NDArray[np.float64]
MAX_ENEMY_PAIRS = 2**26  # pairs of nearest enemies: about 60 bytes each when they are merged, 4 GB
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
    "nearest" x_i − x_j if one is the other's nearest enemy, each once     M-PCA2
    ========= ============================================================ =========

    No classifier is needed and no matrix is inverted. "all" and "mean" are as fast as PCA (the pairs are never formed)
    and can be streamed. Try "mean" first, and "nearest" if the boundary between the classes is curved or the classes
    overlap. With more than two classes, A is summed over the pairs of classes.

    Parameters
    ----------
    n_components: Number of components. A fraction in (0, 1) keeps the fewest components that reach this share of the
        spread, None all directions up to the numerical rank.
    pairs : {"all", "mean", "median", "nearest"}, default="all"
        The differences to use, see above.
    enemies : {"each", "any"}, default="each"
        For "nearest": use the nearest row of each other class, or the nearest row of all other classes.
    ties : {"share", "all", "lowest"}, default="share"
        For "nearest": how a row divides its weight between t equally near enemies of a class. "share": 1/t each, where
        a pair found from both sides gets the larger share, so the order of rows does not matter. "all": 1 each, as in
        figure 3 of the paper. "lowest": 1 to the first one in the table, which gives at most n pairs for two classes,
        as in the text of the paper.

    Attributes
    ----------
    {orthonormal}
    eigenvalues_: Eigenvalues of A divided by the total weight.
    explained_variance_ratio_: Share of each direction in the sum of all eigenvalues.
    {found_rank}
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
        of_rows = {
            "median": lambda rows: Margins(landmarks=class_medians(rows)),
            "nearest": lambda rows: Margins(pairs=self._enemy_pairs(rows)),
        }
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
        # equal weights need no separate pass; float32 overflows at 1e38
        return None if (weights == weights[0]).all() else weights / weights.max()

    def _enemy_pairs(self, rows: LabelledRows) -> Pairs:
        weights = rows.weights
        if self.ties == "lowest" and weights is not None and not (weights == np.round(weights)).all():
            first = int(np.argmax(weights != np.round(weights)))
            raise ValueError(
                'MarginPCA(pairs="nearest", ties="lowest") takes whole-number sample weights (how often a row counts); '
                f"got {float(weights[first])}. Pass integer weights, or another choice of pairs, which takes any "
                "weights."
            )
        n_pairs = rows.shape[0] * rows.n_classes
        if self.enemies == "each" and n_pairs > MAX_ENEMY_PAIRS:
            raise ValueError(
                f"enemies='each' must find at most {MAX_ENEMY_PAIRS:,} pairs, one per row and other class, to fit into "
                f"memory; got {n_pairs:,} for {rows.shape[0]} rows of {rows.n_classes} classes. Pass enemies='any', or "
                "pairs='mean'."
            )
        require_finite(rows.X)  # distances are computed before the sums that would detect it
        try:
            return enemy_pairs(
                rows.X,
                rows.codes,
                rows.n_classes,
                weights=rows.weights,
                enemies=self.enemies,
                ties=self.ties,
                max_pairs=MAX_ENEMY_PAIRS,
            )
        except MemoryError:
            raise ValueError(
                f"ties={self.ties!r} must find at most {MAX_ENEMY_PAIRS:,} pairs of nearest enemies to fit into "
                f"memory; got more for {rows.shape[0]} rows. Pass ties='lowest', which takes one enemy per row and "
                "class, or pairs='mean'."
            ) from None

    def _class_weights(self, totals: Array) -> Array:
        """Compute w_c, the number of differences of a row of class c."""
        if self.pairs == "all":
            return totals.sum() - totals
        return np.full(len(totals), 0.0 if self.pairs == "nearest" else len(totals) - 1.0)

    def _solve(self, problem: Problem) -> Solution:
        return leading_directions(problem, self._spread(problem.moments, problem.basis))

    def _spread(self, moments: ClassMoments, basis: Basis) -> Spread:
        n_c = moments.weights
        means = moments.centred_means()
        # Σ_c n_c (μ_c − μ) = 0, so the sums over pairs of classes reduce to one row per class
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

    Because Σ n_a μ_a = 0, this is Σ_a [(C−1) n_a μ_a μ_aᵀ + n_a (μ_a m_aᵀ + m_a μ_aᵀ) + (n − n_a) m_a m_aᵀ]: two rows
    per class, unless one class has more than (C−1)/C of the weight. Its own term is then negative, and only the sum is
    not.
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
    """Compute F with FᵀF equal to the 2C×2C Laplacian of Σ_{a≠b} n_a (μ_a − m_b)(μ_a − m_b)ᵀ on [means; medians]."""
    C = len(n_c)
    edges = np.repeat(n_c[:, None], C, axis=1) * (1 - np.eye(C))
    laplacian = np.block([[np.diag(edges.sum(axis=1)), -edges], [-edges.T, np.diag(edges.sum(axis=0))]])
    values, vectors = eigh(laplacian)
    kept = values > 1e-12 * values[-1]  # the root of a zero that was computed as 1e-16 would give a row of 1e-8
    return np.sqrt(values[kept])[:, None] * vectors.T[kept]


class MaximumMarginCriterion(Reducer):
    """Maximum margin criterion: maximise between-class minus within-class scatter, without an inverse.

        maximise  tr W(S_b − weight·S_w)Wᵀ   subject to  WWᵀ = I

    It is never singular and not limited to C−1 directions, but depends on the scales of the features, as PCA does.

    Parameters
    ----------
    n_components: Number of components. A fraction in (0, 1) keeps the fewest components that reach this share of the
        positive eigenvalues, None the directions along which S_b exceeds weight·S_w (at least one).
    weight : float, default=1.0
        Weight of the within-class scatter (≥ 0).

    Attributes
    ----------
    {orthonormal}
    eigenvalues_: Eigenvalues of the difference of scatters divided by the total weight.
    explained_variance_ratio_: Share of each direction in the sum of the positive eigenvalues.
    {found_rank}
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
        "weight": (number("a number ≥ 0 (the weight of the within-class scatter)", lambda w: 0 <= w < np.inf),),
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
                f"The between-class spread exceeds weight={self.weight} times the within-class spread in no direction; "
                "only the best direction is kept. Pass an int n_components, or a smaller weight.",
            )
            return 1
        return kept_count(request, spectrum.values, spectrum.total, positive, shape)


class ShiftedPCA(Reducer):
    """PCA of max-margin shifted rows, for `MaxMarginShift`.

        maximise  tr Wᵀ(S_w + S_b + ηᵀ(2σ²I + σ⁴G)η)W  subject to  WᵀW = I

    The scatter of T[X] has a closed form (see discrim.core.svm.shift), so every solver can be used: dense, wide,
    sparse, Lanczos. `mean_` is the mean of the original rows, because the components are applied to those.
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
        """Yield a fitted copy for each shift; they share the solved SVM, the coordinates and the scatter.

        The last class may hold the rows without a label.
        """
        model = copy(self)
        model.n_features_in_ = rows.shape[1]
        needs = replace(model._needs(), margins=lambda _: unit_shift(found))
        problem = Problem.from_rows(rows, needs, plain_count(self.n_components))
        for shift in shifts:
            fitted = copy(model)
            fitted.shift = shift
            fitted._publish(fitted._solve_in_features(problem), rows.classes)
            yield fitted


def unit_shift(found: Shift) -> Margins:
    """Return σA at shift 1; other shifts only scale it."""
    return Margins(duals=np.sqrt(found.sigma2(1.0)) * found.duals)


def shifted_spread(moments: ClassMoments, basis: Basis, duals: Array) -> Spread:
    """Return the scatter of T[X] = X + σ²Aη from σA."""
    eta = class_pulls(basis.points, moments.exponent, duals)
    rows = [moments.between_rows(), added_rows(eta, duals, basis.points.weights)]
    return Spread(np.ones(len(moments.weights)), np.concatenate(rows))
