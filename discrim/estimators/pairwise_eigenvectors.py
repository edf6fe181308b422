"""Generalised eigenvectors of each pair of classes: directions along which one class is large beside another."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from typing import Any, ClassVar

import numpy as np
import scipy.linalg as la
from numpy.typing import NDArray

from discrim.core.count import kept_count, require_rank
from discrim.core.eigen import spectrum_of_matrix
from discrim.core.independent import independent
from discrim.core.margin_vectors import Margins
from discrim.core.moments.class_moments import ClassMoments
from discrim.core.problem import Needs, Problem
from discrim.decompositions import cholesky
from discrim.estimators.base import Reducer, Solution
from discrim.tables.check_parameters import COUNT, FLAG, POSITIVE, Constraints
from discrim.tables.rows import LabelledRows

Array = NDArray[np.float64]
NOTHING = 1e-12  # a class with less than this share of the mean second moment has none to speak of


@dataclass(frozen=True, eq=False)
class PairsOfClasses:
    """Which classes a component compares."""

    pairs_: NDArray[np.intp]


class PairwiseEigenvectors(Reducer):
    """Generalised eigenvectors per pair of classes (GEM): where one class is large beside another.

        C_a v = λ (C_b + (ridge/r) tr(C_b) I) v ,    C_c = E[(x − μ)(x − μ)ᵀ | c] ,    r the rank of the rows

    for each ordered pair of classes (a, b): first the top eigenvector of every pair, the largest λ first, then the
    second of every pair, and so on; a direction in the span of those before it is left out. It sees classes that differ
    in their covariance only, which no method on class means does, and needs every class's own scatter (C·d² memory).
    Use it where classes have the same mean and other shapes, with `pieces=True` in front of a linear classifier;
    where the means tell the classes apart, discriminants need far fewer components.

    Parameters
    ----------
    n_components : int, float or None, default=None
        How many components to keep; a fraction in (0, 1) keeps the fewest that reach that share of the eigenvalues of
        None, None the first eigenvector of every ordered pair (at most the rank).
    ridge : float, default=0.1
        Multiple of the mean variance of class b that is added to its moments (ε or γ in the paper).
    centre : bool, default=True
        Moments around the mean of all rows; False for those around the origin, as published, with which the origin of
        the columns matters.
    pieces : bool, default=False
        Give max(0, vᵀx) and max(0, −vᵀx) for every direction, all of the former first, instead of vᵀx.

    Attributes
    ----------
    components_ : array of shape (n_components_, n_features)
        The directions, one per row; the moments of class b (with the ridge) along each are 1.
    mean_ : array of shape (n_features,)
        Mean of the rows, which transform subtracts (where `centre`).
    eigenvalues_ : array of shape (n_components_,)
        λ: second moment of class a over that of class b along each direction.
    explained_variance_ratio_ : array of shape (n_components_,)
        Each λ's share of the sum over all eigenvectors of all pairs.
    pairs_ : array of shape (n_components_, 2)
        The classes a and b of each direction, by their places in classes_.
    n_components_ : int
        How many directions are kept.
    rank_ : int
        Numerical rank of the rows: how many directions there are.
    {fitted_with_vip}

    References
    ----------
    Karampatziakis and Mineiro, "Discriminative features via generalized eigenvectors" (2014).

    Examples
    --------
    >>> import numpy as np
    >>> from discrim import PairwiseEigenvectors
    >>> rng = np.random.default_rng(0)
    >>> y = np.arange(400) % 2
    >>> X = rng.standard_normal((400, 3)) * np.where(y[:, None], [1, 3, 1], 1)
    >>> int(abs(PairwiseEigenvectors(1).fit(X, y).components_[0]).argmax())
    1
    """

    _parameter_constraints: ClassVar[Constraints] = {
        "n_components": COUNT,
        "ridge": POSITIVE,
        "centre": FLAG,
        "pieces": FLAG,
    }

    def __init__(
        self,
        n_components: int | float | None = None,
        *,
        ridge: float = 0.1,
        centre: bool = True,
        pieces: bool = False,
    ) -> None:
        self.n_components = n_components
        self.ridge = ridge
        self.centre = centre
        self.pieces = pieces

    def _needs(self) -> Needs:
        why = "PairwiseEigenvectors needs every class's whole scatter"
        return Needs(scatter="each", matrix=why, margins=None if self.centre else _origin)

    def _solve(self, problem: Problem) -> Solution:
        basis, moments, request, shape = problem.basis, problem.moments, problem.request, problem.shape
        landmarks = basis.margins.landmarks  # the origin of the features, in the basis's coordinates
        origin = np.zeros(moments.n_features) if landmarks is None else landmarks[0]
        seconds = _second_moments(moments, None if self.centre else origin)
        shares = moments.weights / moments.total_weight
        spectrum = spectrum_of_matrix(np.tensordot(shares, seconds, axes=1), None, precision=moments.precision)
        require_rank(request, spectrum.rank, shape)
        span = spectrum.directions[: spectrum.rank]
        n_pairs = len(seconds) * (len(seconds) - 1)
        wanted = request if isinstance(request, int) else min(spectrum.rank, n_pairs)
        found = PairEigenvectors.independent(span @ seconds @ span.T, float(self.ridge), wanted)
        if isinstance(request, float):
            k = kept_count(request, found.values, float(found.values.sum()), len(found.values), shape)
            found = found.some(slice(k))
        return Solution(
            components_=np.ldexp(found.directions @ span, -moments.exponent),
            eigenvalues_=found.values,
            explained_variance_ratio_=found.values / found.total,
            rank_=spectrum.rank,
            solver_=f"generalised eigenvectors of {n_pairs} pairs of {spectrum.rank}×{spectrum.rank} matrices",
            is_resolved=basis.is_resolved,
            found=PairsOfClasses(found.pairs),
        )

    def _features(self, scores: NDArray[Any]) -> NDArray[Any]:
        if not self.pieces:
            return scores
        if not self.centre:  # pieces are cut where the paper's moments are taken around
            scores = scores + (self.mean_ @ self.components_.T.astype(np.float64)).astype(scores.dtype)
        return np.concatenate([np.maximum(scores, 0), np.maximum(-scores, 0)], axis=1)

    def _components_of(self, features: NDArray[Any]) -> NDArray[Any]:
        if not self.pieces:
            return features
        k = features.shape[1] // 2
        scores = features[:, :k] - features[:, k:]
        return scores if self.centre else scores - self.mean_ @ self.components_.T

    @property
    def _n_features_out(self) -> int:
        return (2 if self.pieces else 1) * self.n_components_


def _origin(rows: LabelledRows) -> Margins:
    """The origin, where moments are taken around it: it may lie outside the span of the centred rows."""
    return Margins(landmarks=np.zeros((1, rows.shape[1])))


def _second_moments(moments: ClassMoments, origin: Array | None) -> Array:
    """C_c = S_c/n_c + (μ_c − o)(μ_c − o)ᵀ of every class, o the mean of all rows or the given point."""
    assert moments.each is not None
    means = moments.centred_means() if origin is None else moments.centred_means() - moments.centred(origin)
    return moments.each / moments.weights[:, None, None] + means[:, :, None] * means[:, None, :]


@dataclass(frozen=True, eq=False)
class PairEigenvectors:
    """Eigenvectors (rows) of ordered pairs of classes with their λ, and the sum of every λ of every pair."""

    directions: Array
    values: Array
    pairs: NDArray[np.intp]
    total: float

    @classmethod
    def of(cls, seconds: Array, ridge: float, per_pair: int) -> PairEigenvectors:
        """Of every pair its first few with a λ that is not rounding: all firsts by their size, all seconds, …"""
        traces = np.trace(seconds, axis1=1, axis2=2)
        ridges = ridge * np.maximum(traces, NOTHING * traces.max()) / seconds.shape[1]
        triangles = [cholesky(second + one * np.eye(len(second))) for second, one in zip(seconds, ridges, strict=True)]
        found, total = [], 0.0
        for (a, second), (b, triangle) in product(enumerate(seconds), enumerate(triangles)):
            if a == b:
                continue
            half = la.solve_triangular(triangle, second, lower=True, check_finite=False)
            whitened = la.solve_triangular(triangle, half.T, lower=True, check_finite=False)
            total += float(np.trace(whitened))
            spectrum = spectrum_of_matrix((whitened + whitened.T) / 2, per_pair, precision=NOTHING)
            leading = spectrum.directions[: min(per_pair, spectrum.rank)].T
            vectors = la.solve_triangular(triangle, leading, trans=1, lower=True, check_finite=False).T
            found += [(level, spectrum.values[level], vector, (a, b)) for level, vector in enumerate(vectors)]
        found.sort(key=lambda one: (one[0], -one[1]))
        _, values, directions, pairs = zip(*found, strict=True)
        return cls(np.array(directions), np.array(values), np.array(pairs, dtype=np.intp), total)

    @classmethod
    def independent(cls, seconds: Array, ridge: float, wanted: int) -> PairEigenvectors:
        """So many, none in the span of those before it."""
        rank, n_pairs = seconds.shape[1], len(seconds) * (len(seconds) - 1)
        for per_pair in sorted({min(rank, -(-wanted // n_pairs) + 1), rank}):
            found = cls.of(seconds, ridge, per_pair)
            kept = independent(np.empty((0, rank)), found.directions, wanted)[0]
            if len(kept) == wanted:  # else many lay in one another's span
                break
        return found.some(kept)

    def some(self, places: Any) -> PairEigenvectors:
        """Those at some places."""
        return replace(self, directions=self.directions[places], values=self.values[places], pairs=self.pairs[places])
