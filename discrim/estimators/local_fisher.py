"""Discriminants beyond class means: local Fisher discriminants and generalised eigenvectors of pairs of classes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import scipy.linalg as la
from numpy.typing import NDArray

from discrim.core.eigen import (
    default_count,
    independent,
    kept_count,
    limit_count,
    require_directions,
    spectrum_of_matrix,
)
from discrim.core.moments.class_moments import ClassMoments
from discrim.core.problem import Needs, Problem
from discrim.core.ratio import Covariance, Ratio
from discrim.core.spread import Margins
from discrim.decompositions import cholesky
from discrim.estimators.base import Reducer
from discrim.estimators.fitting import solved
from discrim.estimators.solution import Solution
from discrim.tables.check_parameters import COUNT, FLAG, POSITIVE, SHARE, Constraints, named, whole
from discrim.tables.rows import LabelledRows, dense_block

Array = NDArray[np.float64]
AFFINITIES = 2**21  # computed at once
NEAREST = 1e-3  # minimum distance to a neighbour, relative to the class's deviation
EQUAL = 1e-13  # squared distances below this share of the largest squared length are set to 0
ROUNDING = 1e-12  # a local scatter below this share of the total one is rounding


class LocalFisherDiscriminant(Reducer):
    """Local Fisher discriminant analysis (LFDA): keep near rows of a class together and rows of other classes apart.

        maximise  tr (G Σ̃_γ Gᵀ)⁻¹ G S̃_b Gᵀ ,   Σ̃_γ = (1−γ) S̃_w/n + γ τ I ,   S̃ = ½ Σ_ij W_ij (x_i − x_j)(x_i −
        x_j)ᵀ

    W_w = A/n_c and W_b = A(1/n − 1/n_c) within a class, 0 and 1/n between classes; A_ij = exp(−‖x_i−x_j‖²/(s_i s_j)),
    where s is the distance to the 7th neighbour in the same class. Far rows of one class are not pulled together, so a
    class may consist of several groups, and there are more than C − 1 discriminants. γ is the ridge of RegularizedLDA
    on the local scatter; without it, LFDA overfits if there are many columns. Use it if classes consist of groups; for
    compact classes RegularizedLDA does the same without neighbours. It takes n²/C time.

    Parameters
    ----------
    n_components: Number of components. None uses C − 1 (at most the rank); a fraction in (0, 1) keeps the fewest of
        these that reach this share of their eigenvalues.
    neighbors : int, default=7
        The neighbour in the same class whose distance is a row's scale; the farthest if there are fewer.
    shrinkage : float, default=0.1
        γ in [0, 1]; 0 is the published method and requires a nonsingular local scatter.
    metric : {"plain", "weighted", "orthonormalized"}, default="plain"
        Scale of the directions: G Σ̃_γ Gᵀ = I, the same times √λ, or an orthonormal basis in their order.

    Attributes
    ----------
    eigenvalues_: Ratio of local between- to within-class spread along each direction.
    explained_variance_ratio_: Share of each eigenvalue in the sum over all directions.
    {fitted_with_vip}

    References
    ----------
    Sugiyama, "Dimensionality reduction of multimodal labeled data by local Fisher discriminant analysis" (2007);
    the local scaling is that of Zelnik-Manor and Perona (2005).

    Examples
    --------
    >>> import numpy as np
    >>> from discrim import LocalFisherDiscriminant
    >>> rng = np.random.default_rng(0)
    >>> group = np.arange(300) % 3
    >>> X = rng.standard_normal((300, 2)) + np.outer(6 * group, [1, 0])
    >>> direction = LocalFisherDiscriminant(1).fit(X, group == 1).components_[0]
    >>> bool(abs(direction[0]) > 5 * abs(direction[1]))
    True
    """

    _parameter_constraints: ClassVar[Constraints] = {
        "n_components": COUNT,
        "neighbors": (whole(1),),
        "shrinkage": (SHARE,),
        "metric": named("plain", "weighted", "orthonormalized"),
    }

    def __init__(
        self,
        n_components: int | float | None = None,
        *,
        neighbors: int = 7,
        shrinkage: float = 0.1,
        metric: str = "plain",
    ) -> None:
        self.n_components = n_components
        self.neighbors = neighbors
        self.shrinkage = shrinkage
        self.metric = metric

    def _needs(self) -> Needs:
        return Needs(
            directions="all",
            matrix="LocalFisherDiscriminant needs the whole local scatter",
            rows="a search for neighbours needs all rows at once. Use fit.",
        )

    def _solve(self, problem: Problem) -> Solution:
        basis, moments, request, shape = problem.basis, problem.moments, problem.request, problem.shape
        ratio = problem.ratio
        k = default_count(request, len(ratio.shares), ratio.rank, shape)
        local = LocalScatter.of(basis.points, moments, int(self.neighbors), ratio.embedding)
        n = moments.total_weight
        gain = ratio.means.T @ ratio.means + (local.scatter_of_others - local.within_of_others) / n
        whitened, back = self._cost(local.within / n, ratio).whitened_matrix(gain)
        spectrum = spectrum_of_matrix(whitened, None, precision=moments.precision)
        if isinstance(request, float):
            k = kept_count(request, spectrum.values[:k], float(spectrum.values[:k].sum()), k, shape)
        values = spectrum.values[:k]
        directions = self._scaled(back(spectrum.directions[:k]), values)
        return Solution(
            components_=ratio.embedded(directions),
            is_unit_free=self.metric == "orthonormalized",
            eigenvalues_=values,
            explained_variance_ratio_=values / spectrum.total,
            rank_=ratio.rank,
            solver_=f"{k} local discriminants of a {ratio.rank}×{ratio.rank} ratio",
            is_resolved=basis.is_resolved,
        )

    def _cost(self, within: Array, ratio: Ratio) -> Covariance:
        """Compute Σ̃_γ; a multiple of I if no class varies."""
        gamma, trace = float(self.shrinkage), float(np.trace(within))
        identity = np.eye(ratio.rank)
        if trace <= ROUNDING * float(ratio.variances.sum()):
            return Covariance(identity * float(ratio.variances.sum()) / ratio.rank)
        cost = Covariance((1 - gamma) * within + gamma * trace / ratio.rank * identity, ratio.precision)
        if not cost.is_nonsingular:
            raise ValueError(
                "shrinkage must be above 0 if the local within-class scatter is singular (fewer rows than columns, or "
                f"columns that do not vary within classes); got {self.shrinkage}. Pass e.g. 0.1."
            )
        return cost

    def _scaled(self, directions: Array, values: Array) -> Array:
        if self.metric == "weighted":
            return directions * np.sqrt(np.maximum(values, 0.0))[:, None]
        if self.metric == "orthonormalized":
            lengths = np.linalg.norm(directions, axis=1)[:, None]
            return la.qr((directions / lengths).T, mode="economic")[0].T
        return directions


# ---------------------------------------------------------------------- local scatter
#
# L_c = 1/(2 n_c) Σ_{i,j∈c} w_i w_j A_ij (x_i − x_j)(x_i − x_j)ᵀ ,    A_ij = exp(−‖x_i − x_j‖² / (s_i s_j))
#
# With A = 1 it equals S_c. s_i is the distance to the k-th neighbour in the same class (the farthest if there are
# fewer). A row of weight w counts as w rows, of which w − 1 are its neighbours. Affinities are computed in blocks of
# rows.


@dataclass(frozen=True, eq=False)
class LocalScatter:
    """Σ_c f_c L_c for f = 1 and f = 1 − n_c/n, and Σ_c (1 − n_c/n) S_c, in the units of the moments."""

    within: Array
    within_of_others: Array
    scatter_of_others: Array

    @classmethod
    def of(cls, points: LabelledRows, moments: ClassMoments, neighbors: int, embedding: Array | None) -> LocalScatter:
        """Compute in the coordinates of the moments, or in those of an embedding (orthonormal rows)."""
        size = points.shape[1] if embedding is None else len(embedding)
        within, within_of_others, scatter_of_others = np.zeros((3, size, size))
        others = 1 - moments.weights / moments.total_weight
        for code, share in enumerate(others):
            index = np.flatnonzero(points.codes == code)
            Z = moments.residuals(dense_block(points.X, index), code)
            weights = np.ones(len(index)) if points.weights is None else points.weights[index]
            Z = Z if embedding is None else Z @ embedding.T
            local = _local(Z, weights, neighbors)
            within += local
            within_of_others += share * local
            scatter_of_others += share * (Z.T @ (weights[:, None] * Z))
        return cls(within, within_of_others, scatter_of_others)


def _local(Z: Array, weights: Array, neighbors: int) -> Array:
    """Compute L_c from the centred rows of a class."""
    scales = np.concatenate([_scales(squares, weights, neighbors) for _, squares in _squares(Z)])
    lengths = np.einsum("ij,ij->i", Z, Z)
    floor = NEAREST * np.sqrt(float(weights @ lengths / weights.sum()))
    if floor == 0:  # all rows of the class are equal
        return np.zeros((Z.shape[1],) * 2)
    scales = np.maximum(scales, floor)
    total = np.zeros((Z.shape[1],) * 2)
    for part, squares in _squares(Z):
        affinities = np.exp(-squares / (scales[part, None] * scales)) * weights[part, None] * weights
        total += Z[part].T @ (affinities.sum(axis=1)[:, None] * Z[part] - affinities @ Z)
    return (total + total.T) / (2 * weights.sum())


def _squares(Z: Array) -> Iterator[tuple[slice, Array]]:
    """Yield squared distances of a block of rows to all rows, exactly 0 for equal rows."""
    lengths = np.einsum("ij,ij->i", Z, Z)
    least = EQUAL * lengths.max(initial=0.0)
    step = max(1, AFFINITIES // max(1, len(Z)))
    for start in range(0, len(Z), step):
        part = slice(start, start + step)
        squares = lengths[part, None] + lengths - 2 * (Z[part] @ Z.T)
        squares[squares <= least] = 0.0
        yield part, squares


def _scales(squares: Array, weights: Array, neighbors: int) -> Array:
    """Return the distance to the k-th neighbour, counting weights as repeated rows without the row itself."""
    order = np.argsort(squares, axis=1)
    reached = np.cumsum(weights[order], axis=1) - 1 >= neighbors - 1e-9
    place = np.where(reached.any(axis=1), reached.argmax(axis=1), squares.shape[1] - 1)
    rows = np.arange(len(squares))
    return np.sqrt(squares[rows, order[rows, place]])


class PairwiseEigenvectors(Reducer):
    """Generalised eigenvectors per pair of classes (GEM): directions in which one class is large relative to another.

        C_a v = λ (C_b + (ridge/r) tr(C_b) I) v ,    C_c = E[(x − μ)(x − μ)ᵀ | c] ,    r = rank of the rows

    for each ordered pair of classes (a, b). The components are the leading eigenvector of every pair, largest λ first,
    then the second of every pair, and so on; directions in the span of previous ones are skipped. The method finds
    classes that differ only in their covariance, which methods based on class means cannot, and needs a scatter matrix
    per class (C·d² memory). Use it for classes with equal means and different shapes, with `pieces=True` before a
    linear classifier. If the means separate the classes, discriminants need far fewer components.

    Parameters
    ----------
    n_components: Number of components. None uses the leading eigenvector of every ordered pair (at most the rank); a
        fraction in (0, 1) keeps the fewest of these that reach this share of their eigenvalues.
    ridge : float, default=0.1
        Multiple of the mean variance of class b that is added to its moments (ε or γ in the paper).
    centre : bool, default=True
        If True, moments are around the mean of all rows; if False around the origin, as published, which makes the
        method depend on the origin of the columns.
    pieces : bool, default=False
        If True, transform returns max(0, vᵀx) for every direction, followed by max(0, −vᵀx), instead of vᵀx.

    Attributes
    ----------
    components_: Directions, one per row, scaled so that the moments of class b (with the ridge) are 1.
    mean_: Mean of the rows, which transform subtracts if `centre` is True.
    eigenvalues_: λ, the ratio of the second moments of class a and class b along each direction.
    explained_variance_ratio_: Share of each λ in the sum over all eigenvectors of all pairs.
    pairs_ : array of shape (n_components_, 2)
        Classes a and b of each direction, as indices into classes_.
    n_components_: Number of directions.
    rank_: Numerical rank of the rows.
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
    pairs_: NDArray[np.intp] = solved()

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
        why = "PairwiseEigenvectors needs the whole scatter of every class"
        return Needs(scatter="each", matrix=why, margins=None if self.centre else _origin)

    def _solve(self, problem: Problem) -> Solution:
        basis, moments, request, shape = problem.basis, problem.moments, problem.request, problem.shape
        landmarks = basis.margins.landmarks  # the origin of the features, in the basis's coordinates
        origin = np.zeros(moments.n_features) if landmarks is None else landmarks[0]
        seconds = _second_moments(moments, None if self.centre else origin)
        shares = moments.weights / moments.total_weight
        spectrum = spectrum_of_matrix(np.tensordot(shares, seconds, axes=1), None, precision=moments.precision)
        require_directions(spectrum.rank, shape)
        span = spectrum.directions[: spectrum.rank]
        n_pairs = len(seconds) * (len(seconds) - 1)
        wanted = limit_count(request, spectrum.rank, shape) if isinstance(request, int) else min(spectrum.rank, n_pairs)
        found = PairEigenvectors.independent(span @ seconds @ span.T, float(self.ridge), wanted)
        if isinstance(request, float):
            k = kept_count(request, found.values, float(found.values.sum()), len(found.values), shape)
            found = found.select(slice(k))
        return Solution(
            components_=found.directions @ span,
            is_unit_free=False,
            eigenvalues_=found.values,
            explained_variance_ratio_=found.values / found.total,
            rank_=spectrum.rank,
            solver_=f"generalised eigenvectors of {n_pairs} pairs of {spectrum.rank}×{spectrum.rank} matrices",
            is_resolved=basis.is_resolved,
            found=SimpleNamespace(pairs_=found.pairs),
        )

    def _features(self, scores: NDArray[Any]) -> NDArray[Any]:
        if not self.pieces:
            return scores
        if not self.centre:  # pieces are split at the origin of the moments
            scores = scores + (self.mean_ @ self.components_.T.astype(np.float64)).astype(scores.dtype)
        return np.concatenate([np.maximum(scores, 0), np.maximum(-scores, 0)], axis=1)

    def _scores_of_features(self, features: NDArray[Any]) -> NDArray[Any]:
        if not self.pieces:
            return features
        k = features.shape[1] // 2
        scores = features[:, :k] - features[:, k:]
        return scores if self.centre else scores - self.mean_ @ self.components_.T

    @property
    def _n_features_out(self) -> int:
        return (2 if self.pieces else 1) * self.n_components_


def _origin(rows: LabelledRows) -> Margins:
    """Return the origin as a landmark, because it may lie outside the span of the centred rows."""
    return Margins(landmarks=np.zeros((1, rows.shape[1])))


def _second_moments(moments: ClassMoments, origin: Array | None) -> Array:
    """Compute C_c = S_c/n_c + (μ_c − o)(μ_c − o)ᵀ for every class, with o the mean of all rows or the given point."""
    means = moments.centred_means() if origin is None else moments.centred_means() - moments.centred(origin)
    return moments.class_covariances + means[:, :, None] * means[:, None, :]


@dataclass(frozen=True, eq=False)
class PairEigenvectors:
    """Eigenvectors (rows) of ordered pairs of classes with their λ, and the sum of all λ of all pairs."""

    directions: Array
    values: Array
    pairs: NDArray[np.intp]
    total: float

    @classmethod
    def of(cls, seconds: Array, ridge: float, per_pair: int) -> PairEigenvectors:
        """Return the leading eigenvectors of every pair with λ above rounding: all firsts by size, all seconds, …"""
        traces = np.trace(seconds, axis1=1, axis2=2)
        ridges = ridge * np.maximum(traces, ROUNDING * traces.max()) / seconds.shape[1]
        triangles = [cholesky(second + one * np.eye(len(second))) for second, one in zip(seconds, ridges, strict=True)]
        found, total = [], 0.0
        for (a, second), (b, triangle) in product(enumerate(seconds), enumerate(triangles)):
            if a == b:
                continue
            half = la.solve_triangular(triangle, second, lower=True, check_finite=False)
            whitened = la.solve_triangular(triangle, half.T, lower=True, check_finite=False)
            total += float(np.trace(whitened))
            spectrum = spectrum_of_matrix((whitened + whitened.T) / 2, per_pair, precision=ROUNDING)
            leading = spectrum.directions[: min(per_pair, spectrum.rank)].T
            vectors = la.solve_triangular(triangle, leading, trans=1, lower=True, check_finite=False).T
            found += [(level, spectrum.values[level], vector, (a, b)) for level, vector in enumerate(vectors)]
        found.sort(key=lambda one: (one[0], -one[1]))
        _, values, directions, pairs = zip(*found, strict=True)
        return cls(np.array(directions), np.array(values), np.array(pairs, dtype=np.intp), total)

    @classmethod
    def independent(cls, seconds: Array, ridge: float, wanted: int) -> PairEigenvectors:
        """Return `wanted` eigenvectors, none of them in the span of previous ones."""
        rank, n_pairs = seconds.shape[1], len(seconds) * (len(seconds) - 1)
        for per_pair in sorted({min(rank, -(-wanted // n_pairs) + 1), rank}):
            found = cls.of(seconds, ridge, per_pair)
            kept = independent(np.empty((0, rank)), found.directions, wanted)[0]
            if len(kept) == wanted:  # otherwise many are linearly dependent
                break
        return found.select(kept)

    def select(self, index: Any) -> PairEigenvectors:
        """Return the eigenvectors at these positions."""
        return replace(self, directions=self.directions[index], values=self.values[index], pairs=self.pairs[index])
