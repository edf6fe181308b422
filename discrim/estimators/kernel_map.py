"""Coordinates of rows in the feature space of a kernel, which turn any reducer into its kernel version."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.metrics.pairwise import KERNEL_PARAMS
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from discrim.core.cross_validation import Folds, splits_of
from discrim.core.eigen import fixed_signs, with_fixed_signs
from discrim.core.kernel_choice import Candidate, FeatureSpaces, TriedKernel, require_known_kernel_params
from discrim.core.landmarks import FeatureSpace, LandmarkKernel, content_priorities, drawn_landmarks
from discrim.core.posterior_rule import CHOICE_LANDMARKS, choose_kernel
from discrim.decompositions import eigh
from discrim.docstrings import public_estimator
from discrim.estimators.bayes_error_lda import BayesErrorLDA
from discrim.estimators.fitting import unchanged_if_it_fails
from discrim.estimators.map_statistics import drawn_seed
from discrim.estimators.posterior_map import LANDMARKS_WANTED
from discrim.tables.check_parameters import POSITIVE, Constraints, check_parameters, named
from discrim.tables.rows import LabelledRows, block_slices
from discrim.tables.validation import (
    checked_table,
    labelled_rows,
    require_finite,
    require_representable,
    require_two_classes,
)

Array = NDArray[np.float64]
EXACT_ROWS = 5_000  # up to this number every row is a landmark
LANDMARKS = 1_000  # above it
SPAN = 1e-10  # variances below this share of the largest are rounding
CV_WIDTHS = (1 / 16, 1 / 4, 1.0, 4.0)  # times 2 / median squared distance


@public_estimator
class KernelMap(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Kernel principal coordinates: centred coordinates of the rows in a kernel's feature space, widest first.

        x ↦ Vᵀ(φ(x) − φ̄) ,    φ(x)·φ(x') = k(x, x') ,    V = principal axes of the rows' φ, which span them

    A reducer after it in a Pipeline becomes its kernel version, because the reducers depend on φ only through these
    coordinates: kernel margin PCA, kernel Fisher and null-space discriminants, kernel Bayes-error LDA, max-margin
    shifting of kernel features (`MaxMarginShift(embedding=KernelMap())`). Scale the columns first.

    Parameters
    ----------
    kernel : str, default="rbf"
        Name of a kernel of scikit-learn's `pairwise_kernels`. With "linear" the reducer is the plain one.
    gamma : "median", "cv" or float, default="median"
        γ of "rbf", exp(−γ‖x−x'‖²). "median": one over the median squared distance between distinct rows. "cv": chosen
        by held-out rows of a ridge classifier, which needs labels. A number also applies to other kernels with a gamma.
    kernel_params : dict, default=None
        Further parameters of the kernel, such as {"degree": 2} for "poly".
    n_landmarks : int, default=None
        Number of landmarks (Nyström). None uses all rows up to 5,000, which is exact, and 1,000 landmarks above that.
    cv: Folds for gamma="cv".
    random_state: Seed of the landmarks, which are drawn by content, and for shuffling the folds.

    Attributes
    ----------
    gamma_ : float or None
        γ that was used; None if the kernel has none, or if it is not "rbf" and uses scikit-learn's default.
    tried_ : tuple of TriedKernel
        Held-out accuracy and log loss of every γ that was tried; empty without "cv".
    eigenvalues_: Variance of the rows along each coordinate.
    landmarks_ : array or sparse array of shape (n_landmarks, n_features)
        Landmark rows.
    n_features_in_: Number of features seen in fit.
    n_components_: Number of coordinates.

    References
    ----------
    Schölkopf, Smola and Müller (1998), Nonlinear component analysis as a kernel eigenvalue problem.
    Williams and Seeger (2001), Using the Nyström method to speed up kernel machines.

    Examples
    --------
    >>> from sklearn.datasets import make_circles
    >>> from sklearn.pipeline import make_pipeline
    >>> from discrim import KernelMap, RegularizedLDA
    >>> X, y = make_circles(200, noise=0.1, factor=0.5, random_state=0)
    >>> make_pipeline(KernelMap(), RegularizedLDA(1)).fit(X, y).score(X, y) > 0.95
    True
    """

    _parameter_constraints: ClassVar[Constraints] = {
        "kernel": named(*KERNEL_PARAMS),
        "gamma": (*named("median", "cv"), *POSITIVE),
        "n_landmarks": LANDMARKS_WANTED,
    }

    def __init__(
        self,
        kernel: str = "rbf",
        *,
        gamma: float | str = "median",
        kernel_params: dict[str, Any] | None = None,
        n_landmarks: int | None = None,
        cv: Any = 5,
        random_state: Any = None,
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.kernel_params = kernel_params
        self.n_landmarks = n_landmarks
        self.cv = cv
        self.random_state = random_state

    # ------------------------------------------------------------------ fitting

    @unchanged_if_it_fails
    def fit(self, X: ArrayLike, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None) -> Self:
        """Compute the axes; labels are used only for gamma="cv"."""
        self._check_parameters()
        rows = labelled_rows(self, X, y, sample_weight, supervised=self._needs_labels())
        require_finite(rows.X, rows.numbers)
        priorities = content_priorities(rows.X, drawn_seed(self.random_state))
        kernel = self._kernel(rows, priorities)
        if priorities.max() < kernel.landmarks.shape[0]:  # every distinct row is a landmark
            found = _exact_axes(kernel, rows, priorities)
        else:
            found = _axes_from_landmarks(kernel, rows)
        self._kernel_seen, self._axes, self._offsets, self.eigenvalues_ = kernel, *found
        if kernel.name == "linear":  # has its own units
            self._axes, self._offsets = (np.ldexp(part, kernel.exponent) for part in (self._axes, self._offsets))
            self.eigenvalues_ = np.ldexp(self.eigenvalues_, 2 * kernel.exponent)
        self.gamma_ = kernel.gamma if kernel.name == "rbf" else kernel.params.get("gamma")
        self.landmarks_ = kernel.landmarks
        return self

    def _kernel(self, rows: LabelledRows, priorities: NDArray[np.intp]) -> LandmarkKernel:
        n = rows.shape[0]
        most = self.n_landmarks or (n if n <= EXACT_ROWS else LANDMARKS)
        landmarks = rows.X[drawn_landmarks(priorities, np.arange(n), most)]
        params = dict(self.kernel_params or {})
        self.tried_: tuple[TriedKernel, ...] = ()
        if self.kernel != "rbf":
            given = {} if isinstance(self.gamma, str) else {"gamma": self.gamma}
            return LandmarkKernel(landmarks, self.kernel, params | given)
        base = LandmarkKernel(landmarks, "rbf", {})
        if not isinstance(self.gamma, str):
            return base.with_gamma_in_columns(self.gamma)
        if self.gamma == "median":
            return base.with_gamma(1 / base.median_square)
        # the width chosen by held-out rows of the ridge rule in the kernel's features
        require_two_classes(self, rows.classes)
        folds = Folds(rows, splits_of(rows, self.cv, self.random_state))
        choice = choose_kernel(folds, priorities, [Candidate("rbf", width) for width in CV_WIDTHS], CHOICE_LANDMARKS)
        self.tried_ = choice.tried
        return choice.candidate.seen_from(base)

    def _needs_labels(self) -> bool:
        return self.kernel == "rbf" and isinstance(self.gamma, str) and self.gamma == "cv"

    def _check_parameters(self) -> None:
        check_parameters(self)
        require_known_kernel_params(self.kernel, self.kernel_params)
        if not isinstance(self.gamma, str) and "gamma" not in KERNEL_PARAMS[self.kernel]:
            raise ValueError(f"gamma must be left out for kernel {self.kernel!r}, which has none; got {self.gamma!r}.")
        if self.gamma == "cv" and self.kernel != "rbf":
            raise ValueError(f"kernel must be 'rbf' for gamma='cv'; got {self.kernel!r}. Pass a number as gamma.")
        if "gamma" in (self.kernel_params or {}):
            raise ValueError("kernel_params must not contain gamma, which is a separate parameter. Pass gamma=….")

    # ------------------------------------------------------------------ use

    def transform(self, X: ArrayLike) -> NDArray[Any]:
        """Return the coordinates of the rows."""
        check_is_fitted(self)
        table = checked_table(self, X)
        require_finite(table)
        result = np.empty((table.shape[0], len(self._offsets)), dtype=table.dtype)
        with np.errstate(over="ignore", invalid="ignore"):
            for part in block_slices(table.shape[0], len(self._axes)):
                result[part] = self._kernel_seen(table[part]) @ self._axes - self._offsets
        require_representable(result, table)
        return result

    @property
    def n_components_(self) -> int:
        """Number of coordinates."""
        check_is_fitted(self)
        return len(self.eigenvalues_)

    @property
    def _n_features_out(self) -> int:
        return self.n_components_

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = self.kernel in ("chi2", "additive_chi2")
        tags.target_tags.required = self._needs_labels()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _exact_axes(kernel: LandmarkKernel, rows: LabelledRows, priorities: NDArray[np.intp]) -> tuple[Array, Array, Array]:
    """Return A and b of the coordinates k(x, L) A − b from the centred Gram matrix of distinct rows; and variances."""
    weights = np.ones(rows.shape[0]) if rows.weights is None else rows.weights
    shares = np.bincount(priorities, weights) / weights.sum()  # the landmarks are in the order of their priorities
    gram = kernel(kernel.landmarks)
    centred = gram - shares @ gram
    centred -= (centred @ shares)[:, None]
    roots = np.sqrt(shares)
    values, vectors = _spanned(roots[:, None] * centred * roots, rows)
    axes = roots[:, None] * vectors / np.sqrt(values)
    axes = with_fixed_signs((axes - np.outer(shares, axes.sum(axis=0))).T).T
    return axes, shares @ gram @ axes, values


def _axes_from_landmarks(kernel: LandmarkKernel, rows: LabelledRows) -> tuple[Array, Array, Array]:
    """Return the same from the Nyström features of the rows; identical if every row is a landmark."""
    space = FeatureSpace.of(kernel, kernel(kernel.landmarks))
    (moments,) = FeatureSpaces(kernel, [space]).moments(rows.unlabelled())
    values, vectors = _spanned(moments.within / moments.total_weight, rows)
    found = space.factor @ vectors
    signs = fixed_signs(found.T)
    return found * signs, moments.mean @ vectors * signs, moments.in_squared_units(values)


def _spanned(covariance: Array, rows: LabelledRows) -> tuple[Array, Array]:
    """Return the eigenvalues above rounding, largest first, and their vectors."""
    values, vectors = eigh(covariance)
    kept = np.flatnonzero(values > max(SPAN * values.max(initial=0.0), np.finfo(np.float64).tiny))[::-1]
    if len(kept) == 0:
        raise ValueError(
            f"X must hold rows that differ for the kernel; got n_samples={rows.shape[0]} rows that are equal to it. "
            "Pass other rows, or another kernel."
        )
    return values[kept], vectors[:, kept]


def kernel_bayes_error_lda(n_components: int) -> Pipeline:
    """Return discriminants of minimal pairwise Bayes error in the features of a Gaussian kernel."""
    return make_pipeline(KernelMap(gamma="cv", n_landmarks=500), BayesErrorLDA(n_components))
