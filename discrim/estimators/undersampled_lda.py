"""Linear discriminant analysis for fewer rows than columns: uncorrelated, orthogonal, null space."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from discrim.core.discriminants import Discriminants, by_between_spread, null_space, orthogonal, uncorrelated
from discrim.core.problem import Problem
from discrim.core.ratio import Ratio
from discrim.decompositions import svd
from discrim.estimators.discriminant import DiscriminantReducer
from discrim.warn_once import warn

Array = NDArray[np.float64]


class UncorrelatedLDA(DiscriminantReducer):
    """Uncorrelated LDA: Fisher's directions relative to the total scatter, which makes the features uncorrelated.

        G S_t Gᵀ = I ,  G S_b Gᵀ = Λ² ,  G S_w Gᵀ = I − Λ²      (S_t⁺S_b, directions as rows)

    It is suitable for n < d, and spans the space of classical LDA if that exists. With n < d every training class
    collapses to a point, and tied directions are sorted by their variance.

    Parameters
    ----------
    n_components: Number of components. A fraction in (0, 1) keeps the fewest components that reach this share of the
        sum of eigenvalues_, None all discriminants. Components beyond the discriminants are PCA of the orthogonal
        complement, scaled to unit total scatter.
    {weighting_and_gaps}

    Attributes
    ----------
    eigenvalues_: Λ², the share of each discriminant's variance between the classes; 0 for further components.
    explained_variance_ratio_: Share of each eigenvalue in their sum.
    {fitted_discriminants}

    References
    ----------
    Ye, "Characterization of a family of algorithms for generalized discriminant analysis on undersampled problems"
    (2005).

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from discrim import UncorrelatedLDA
    >>> X, y = load_wine(return_X_y=True)
    >>> UncorrelatedLDA().fit(X, y).eigenvalues_.round(2)
    array([0.9 , 0.81])
    """

    def _find(self, problem: Problem) -> Discriminants:
        ratio = problem.separated
        found = uncorrelated(ratio)
        return replace(found, directions=found.directions / np.sqrt(ratio.weight))  # S_t, not S_t/n

    def _scaled_pads(self, pads: Array, ratio: Ratio) -> Array:
        deviations = np.sqrt(np.einsum("kd,kd->k", ratio.total_along(pads), pads))
        return pads / (np.sqrt(ratio.weight) * deviations)[:, None]


class OrthogonalLDA(DiscriminantReducer):
    """Orthogonal LDA: an orthonormal basis of uncorrelated LDA's span.

        G Gᵀ = I ,  span G = span of ULDA ,  G S_b Gᵀ diagonal, descending

    It is suitable for n < d and preserves distances in the units of the features. It overfits less than
    UncorrelatedLDA.

    Parameters
    ----------
    n_components: Number of components. A fraction in (0, 1) keeps the fewest components that reach this share of the
        sum of eigenvalues_, None all discriminants. Components beyond the discriminants are PCA of the orthogonal
        complement (unit directions).
    {weighting_and_gaps}

    Attributes
    ----------
    eigenvalues_: Between-class variance along each discriminant; 0 for further components.
    explained_variance_ratio_: Share of each eigenvalue in their sum.
    {fitted_discriminants}

    References
    ----------
    Ye, "Characterization of a family of algorithms for generalized discriminant analysis on undersampled problems"
    (2005).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from discrim import OrthogonalLDA
    >>> X, y = load_iris(return_X_y=True)
    >>> G = OrthogonalLDA().fit(X, y).components_
    >>> bool(abs(G @ G.T - [[1, 0], [0, 1]]).max() < 1e-12)
    True
    """

    def _find(self, problem: Problem) -> Discriminants:
        return orthogonal(problem.separated)


class NullSpaceLDA(DiscriminantReducer):
    """Null-space LDA: maximise the distances of class means within the null space of the within-class scatter.

        maximise  tr G S_b Gᵀ   subject to   G S_w Gᵀ = 0 ,  G Gᵀ = I

    It is meant for n < d (microarrays, faces), where such directions exist and every training class becomes a point. If
    the null space of S_w has too few directions, those of OrthogonalLDA follow, with a warning.

    Parameters
    ----------
    n_components: Number of components. A fraction in (0, 1) keeps the fewest components that reach this share of the
        sum of eigenvalues_, None all discriminants. Components beyond the discriminants are PCA of the orthogonal
        complement (unit directions).
    {weighting_and_gaps}

    Attributes
    ----------
    eigenvalues_: Between-class variance along each discriminant; 0 for further components.
    explained_variance_ratio_: Share of each eigenvalue in their sum.
    {fitted_discriminants}

    References
    ----------
    Chen et al., "A new LDA-based face recognition system which can solve the small sample size problem" (2000).

    Examples
    --------
    >>> import numpy as np
    >>> from discrim import NullSpaceLDA
    >>> X = np.random.default_rng(0).normal(size=(12, 50))
    >>> y = np.repeat(["a", "b", "c"], 4)
    >>> points = NullSpaceLDA().fit_transform(X, y)
    >>> np.allclose(points[:4], points[0])
    True
    """

    def _find(self, problem: Problem) -> Discriminants:
        ratio = problem.separated
        found, others = null_space(ratio), orthogonal(ratio)
        missing = len(others.values) - len(found.values)
        if missing <= 0:
            return found
        warn(
            f"The null space of the within-class scatter has only {len(found.values)} of {len(others.values)} "
            "discriminants (it shrinks as rows outnumber columns); the others are those of OrthogonalLDA. For n > d "
            "use FisherLDA or RegularizedLDA.",
        )
        # the part of OLDA's span outside the directions found
        rest = others.directions - (others.directions @ found.directions.T) @ found.directions
        filled = by_between_spread(svd(rest)[2][:missing], ratio.means)
        directions = np.concatenate([found.directions, filled.directions])
        return Discriminants(directions, np.concatenate([found.values, filled.values]), orthonormal=True)
