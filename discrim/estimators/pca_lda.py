"""PCA first, then linear discriminant analysis."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discrim.core.count import kept_count
from discrim.core.discriminants import Discriminants, classical, collapsed_share, within_shares
from discrim.core.eigen import spectrum_of_matrix
from discrim.core.problem import Problem
from discrim.estimators.discriminant import DiscriminantReducer
from discrim.estimators.nearest_centroid import GaussianCentroid
from discrim.tables.check_parameters import COUNT, Constraints, plain_count
from discrim.tables.fit_messages import refuse_pca_components

Array = NDArray[np.float64]


@dataclass(frozen=True)
class PrincipalCount:
    """How many principal components came first."""

    pca_components_: int


class PCALDA(GaussianCentroid, DiscriminantReducer):
    """PCA, then LDA on its components (Fisherfaces): the oldest remedy for n < d.

        G = G' P ,   P the first m principal directions,  G' classical LDA of the rows projected on them

    m is at most the rank of S_w (n − C where n < d), so that the within-class scatter is nonsingular. What PCA drops is
    lost, also where it separates the classes: prefer RegularizedLDA, and use this to compare with.

    Parameters
    ----------
    n_components : int, float or None, default=None
        How many components to keep; a fraction in (0, 1) keeps the fewest that reach that share of the separation,
        None all discriminants. More than there are discriminants continue with PCA of the orthogonal complement.
    pca_components : int, float or None, default=None
        m, as a number, as a fraction of the variance in (0, 1), or None for the rank of S_w.
    priors : array of shape (n_classes,), "equal" or None, default=None
        Class probabilities for prediction, in the order of classes_; None for the classes' shares of the rows.
    class_weight : dict, "balanced" or None, default=None
        A factor on the weights of each class's rows, by label; "balanced" makes the classes' totals equal.
    store_covariance : bool, default=False
        Whether to keep the within-class covariance, d×d numbers, as covariance_.
    missing : {"pairwise"} or None, default=None
        What becomes of NaN: None refuses it; "pairwise" takes each mean and covariance from the rows that have the
        cells (made positive definite), and transform counts a missing cell as its column's mean.

    Attributes
    ----------
    components_ : array of shape (n_components_, n_features)
        The directions, one per row.
    eigenvalues_ : array of shape (n_components_,)
        Between- over within-class variance along each discriminant; 0 beyond them.
    explained_variance_ratio_ : array of shape (n_components_,)
        Share of the between-class separation along each discriminant; 0 beyond them.
    pca_components_ : int
        The m that was used.
    {fitted_discriminants}

    References
    ----------
    Belhumeur, Hespanha and Kriegman, "Eigenfaces vs. Fisherfaces" (1997).

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from discrim import PCALDA
    >>> X, y = load_digits(return_X_y=True)
    >>> PCALDA(n_components=2, pca_components=20).fit_transform(X, y).shape
    (1797, 2)
    """

    _parameter_constraints: ClassVar[Constraints] = {
        **DiscriminantReducer._parameter_constraints,
        "pca_components": COUNT,
    }

    def __init__(
        self,
        n_components: int | float | None = None,
        *,
        pca_components: int | float | None = None,
        priors: ArrayLike | str | None = None,
        class_weight: Any = None,
        store_covariance: bool = False,
        missing: str | None = None,
    ) -> None:
        super().__init__(
            n_components, priors=priors, class_weight=class_weight, store_covariance=store_covariance, missing=missing
        )
        self.pca_components = pca_components

    def _find(self, problem: Problem) -> Discriminants:
        ratio = problem.separated
        principal = self._principal_directions(problem)
        found = classical(ratio.projected(principal))
        return Discriminants(
            found.directions @ principal,
            found.values,
            found=PrincipalCount(len(principal)),
            is_singular=found.is_singular,
        )

    def _principal_directions(self, problem: Problem) -> Array:
        ratio, shape = problem.ratio, problem.shape
        spectrum = spectrum_of_matrix(ratio.total, None, precision=ratio.precision)
        # rank S_w, which is n − C for n < d; unlike n it is the same for repeated rows and for weights
        possible = ratio.rank
        if not ratio.within_classes.is_nonsingular:
            shares = within_shares(ratio.within, ratio.total)[0]
            possible = max(1, int((shares > collapsed_share(ratio)).sum()))
        request = plain_count(self.pca_components)
        if isinstance(request, int) and request > possible:
            refuse_pca_components(request, possible, shape[0], len(ratio.shares))
        return spectrum.directions[: kept_count(request, spectrum.values, spectrum.total, possible, shape)]
