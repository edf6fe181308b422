"""Generalised eigenvectors of each pair of classes: directions along which one class is large beside another."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.linalg as la
from numpy.typing import NDArray

from discrim.data.check_parameters import COUNT, FLAG, POSITIVE, Constraints
from discrim.data.rows import LabelledRows
from discrim.decompositions import cholesky
from discrim.margins.margin_vectors import Margins
from discrim.moments.class_moments import ClassMoments
from discrim.reducers.base import Reducer, Solution
from discrim.solve.basis import Basis
from discrim.solve.count import kept_count, require_rank
from discrim.solve.eigen import spectrum_of_matrix
from discrim.solve.independent import independent

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
    solver_ : str
        How the directions were found, and why so.
    classes_ : array of shape (n_classes,)
        The labels, sorted.
    n_features_in_ : int
        Number of features seen in fit.

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

    def _kept_statistics(self, *, streaming: bool) -> str:
        return "each"

    def _why_all_directions(self) -> str | None:
        return "PairwiseEigenvectors needs every class's whole scatter"

    def _margins(self, rows: LabelledRows) -> Margins:
        """The origin, where moments are taken around it: it may lie outside the span of the centred rows."""
        return Margins() if self.centre else Margins(landmarks=np.zeros((1, rows.shape[1])))

    def _solve(self, basis: Basis, moments: ClassMoments, request: int | float | None) -> Solution:
        shape = (moments.n_rows, self.n_features_in_)
        seconds = _second_moments(moments, None if self.centre else _origin(basis, moments))
        shares = moments.weights / moments.total_weight
        spectrum = spectrum_of_matrix(np.tensordot(shares, seconds, axes=1), None, precision=moments.precision)
        require_rank(request, spectrum.rank, shape)
        span = spectrum.directions[: spectrum.rank]
        problem = PairProblems(span @ seconds @ span.T, float(self.ridge))
        wanted = request if isinstance(request, int) else min(spectrum.rank, problem.n_pairs)
        directions, values, pairs = problem.independent(wanted)
        if isinstance(request, float):
            k = kept_count(request, values, float(values.sum()), len(values), shape)
            directions, values, pairs = directions[:k], values[:k], pairs[:k]
        return Solution(
            components_=np.ldexp(directions @ span, -moments.exponent),
            eigenvalues_=values,
            explained_variance_ratio_=values / problem.total,
            rank_=spectrum.rank,
            solver_=f"generalised eigenvectors of {problem.n_pairs} pairs of {spectrum.rank}×{spectrum.rank} matrices",
            is_resolved=basis.is_resolved,
            found=PairsOfClasses(pairs),
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


def _origin(basis: Basis, moments: ClassMoments) -> Array:
    """The origin of the features as it is seen from the rows' mean, in the basis's coordinates."""
    landmarks = basis.margins.landmarks
    return moments.centred(np.zeros(moments.n_features) if landmarks is None else landmarks[0])


def _second_moments(moments: ClassMoments, origin: Array | None) -> Array:
    """C_c = S_c/n_c + (μ_c − o)(μ_c − o)ᵀ of every class, o the mean of all rows or the given point."""
    assert moments.each is not None
    means = moments.centred_means() if origin is None else moments.centred_means() - origin
    return moments.each / moments.weights[:, None, None] + means[:, :, None] * means[:, None, :]


class PairProblems:
    """The eigenproblems of all ordered pairs of classes, in coordinates in which the rows have full rank."""

    def __init__(self, seconds: Array, ridge: float) -> None:
        self.seconds = seconds
        traces = np.trace(seconds, axis1=1, axis2=2)
        traces = np.maximum(traces, NOTHING * traces.max())
        self.rank = seconds.shape[1]
        self.n_pairs = len(seconds) * (len(seconds) - 1)
        self.ridges = ridge * traces / self.rank
        self.total = 0.0  # of the eigenvalues of all pairs, known once they were solved

    def independent(self, wanted: int) -> tuple[Array, Array, NDArray[np.intp]]:
        """So many directions, none in the span of those before it, with their eigenvalues and classes."""
        per_pair = min(self.rank, -(-wanted // self.n_pairs) + 1)
        found = self._independent_of(per_pair, wanted)
        if len(found[0]) < wanted and per_pair < self.rank:  # many lay in one another's span
            found = self._independent_of(self.rank, wanted)
        return found

    def _independent_of(self, per_pair: int, wanted: int) -> tuple[Array, Array, NDArray[np.intp]]:
        """Of the first few eigenvectors of each pair."""
        candidates = sorted(self._eigenvectors(per_pair), key=lambda one: (one[0], -one[1]))
        directions = np.array([one[2] for one in candidates])
        kept = independent(np.empty((0, self.rank)), directions, wanted)[0]
        values, pairs = (
            np.array([one[1] for one in candidates]),
            np.array([one[3] for one in candidates], dtype=np.intp),
        )
        return directions[kept], values[kept], pairs[kept]

    def _eigenvectors(self, per_pair: int) -> Iterator[tuple[int, float, Array, tuple[int, int]]]:
        """(which of its pair, λ, v, the classes), of every pair its first few with a λ that is not rounding."""
        self.total = 0.0
        for b, (second, ridge) in enumerate(zip(self.seconds, self.ridges, strict=True)):
            triangle = cholesky(second + ridge * np.eye(self.rank))
            for a in range(len(self.seconds)):
                if a == b:
                    continue
                half = la.solve_triangular(triangle, self.seconds[a], lower=True, check_finite=False)
                whitened = la.solve_triangular(triangle, half.T, lower=True, check_finite=False)
                self.total += float(np.trace(whitened))
                spectrum = spectrum_of_matrix((whitened + whitened.T) / 2, per_pair, precision=NOTHING)
                count = min(per_pair, spectrum.rank)
                vectors = la.solve_triangular(
                    triangle, spectrum.directions[:count].T, trans=1, lower=True, check_finite=False
                )
                for level in range(count):
                    yield level, float(spectrum.values[level]), vectors[:, level], (a, b)
