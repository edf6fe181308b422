"""The subspace of a multiclass SVM's weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import helmert

from discrim.core.coordinates.basis import Basis
from discrim.core.count import kept_count
from discrim.core.eigen import spectrum_of_factor
from discrim.core.margin_vectors import Margins
from discrim.core.problem import Needs, Problem
from discrim.core.svm.shift import class_pulls, margin_shift
from discrim.estimators.base import Reducer, Solution
from discrim.tables.check_parameters import COUNT, PASSES, POSITIVE, Constraints
from discrim.tables.fit_messages import refuse_subspace_count
from discrim.tables.rows import LabelledRows

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False, kw_only=True)
class MarginSolution(Solution):
    """Of the SVM also its weights, in the coordinates until lifted."""

    class_coef_: Array
    duality_gap_: float
    n_iter_: int

    def _also_lifted(self, basis: Basis, signs: Array) -> dict[str, Any]:
        return {"class_coef_": basis.lift(self.class_coef_)}


class MarginSubspace(Reducer):
    """Margin subspace: the directions in which a large-margin classifier tells the classes apart.

        maximise  tr WᵀηᵀηW  subject to  WᵀW = I,    η_y the Crammer–Singer SVM's weights for class y

    The top right singular vectors of the weights, at most C − 1 of them. The limit of `MaxMarginShift(PCA())` for large
    shifts is a near relative (the same span at C − 1 components); this one needs no shift to be chosen. Use it when few
    components are to serve a linear classifier; for more than C − 1 use `MaxMarginShift`.

    Parameters
    ----------
    n_components : int, float or None, default=None
        How many directions, or the fraction of Σ‖η_y‖² in (0, 1) that they are to hold; None for all, which are at most
        C − 1.
    C : float, default=1.0
        Weight of the hinge losses. The SVM sees centred rows divided by one number (mean square length 1), so that C
        means the same on every data set.
    tol : float, default=1e-10
        Relative duality gap at which the SVM stops.
    max_iter : int, default=10_000
        Its most passes over the rows.

    Attributes
    ----------
    components_ : ndarray of shape (n_components_, n_features)
        The directions, orthonormal rows.
    eigenvalues_ : ndarray of shape (n_components_,)
        Squared singular values of η divided by the total weight.
    explained_variance_ratio_ : ndarray of shape (n_components_,)
        Each direction's share of Σ‖η_y‖².
    rank_ : int
        How many directions there are.
    class_coef_ : ndarray of shape (n_classes, n_features)
        η, which acts on x − mean_.
    duality_gap_ : float
        Relative duality gap that the SVM reached.
    n_iter_ : int
        Its passes over the rows.
    {fitted}

    References
    ----------
    K. Crammer and Y. Singer, "On the Algorithmic Implementation of Multiclass Kernel-based Vector Machines", 2001.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from discrim import MarginSubspace
    >>> X, y = load_wine(return_X_y=True)
    >>> MarginSubspace().fit(X, y).transform(X).shape
    (178, 2)
    """

    _parameter_constraints: ClassVar[Constraints] = {
        "n_components": COUNT,
        "C": POSITIVE,
        "tol": POSITIVE,
        "max_iter": PASSES,
    }

    def __init__(
        self, n_components: int | float | None = None, *, C: float = 1.0, tol: float = 1e-10, max_iter: int = 10_000
    ) -> None:
        self.n_components = n_components
        self.C = C
        self.tol = tol
        self.max_iter = max_iter

    def _needs(self) -> Needs:
        rows = "the SVM needs all rows at once. Use fit."
        return Needs(scatter="means", contrasts=True, rows=rows, margins=self._margins, tells_labels=False)

    def _margins(self, rows: LabelledRows) -> Margins:
        found = margin_shift(rows, rows.n_classes, C=self.C, tol=self.tol, max_iter=self.max_iter)
        return Margins(duals=found.duals, gap=found.gap, n_iter=found.n_iter)

    def _solve(self, problem: Problem) -> Solution:
        basis, moments, request = problem.basis, problem.moments, problem.request
        duals = basis.margins.duals
        assert duals is not None
        eta = class_pulls(basis.points, moments.exponent, duals)
        # Σ_y η_y = 0: C − 1 contrasts of the weights hold all there is of them, and no rounding of that zero
        spectrum = spectrum_of_factor(helmert(len(eta)) @ eta, None, precision=moments.precision)
        if spectrum.rank == 0:
            raise ValueError(
                "The SVM's weights are all 0: no direction tells the classes apart, as when every row is in each class "
                "alike. Check the label column, or use discrim.PCA, which needs no labels."
            )
        if isinstance(request, int) and request > spectrum.rank:
            refuse_subspace_count(request, spectrum.rank, len(eta))
        k = kept_count(request, spectrum.values, spectrum.total, spectrum.rank, problem.shape)
        values = spectrum.values[:k]
        return MarginSolution(
            components_=spectrum.directions[:k],
            eigenvalues_=moments.per_weight(values),
            explained_variance_ratio_=values / spectrum.total,
            rank_=spectrum.rank,
            solver_=f"{spectrum.how} of the SVM's weights",
            is_resolved=basis.shows(values),
            class_coef_=np.ldexp(eta, moments.exponent),
            duality_gap_=basis.margins.gap,
            n_iter_=basis.margins.n_iter,
        )
