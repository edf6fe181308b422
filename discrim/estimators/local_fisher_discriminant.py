"""Local Fisher discriminant analysis: classes may fall into several groups."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import scipy.linalg as la
from numpy.typing import NDArray

from discrim.core.count import default_count, kept_count
from discrim.core.covariance import Covariance
from discrim.core.eigen import spectrum_of_matrix
from discrim.core.local_scatter import LocalScatter
from discrim.core.problem import Needs, Problem
from discrim.core.ratio import Ratio
from discrim.estimators.base import Reducer, Solution
from discrim.tables.check_parameters import COUNT, SHARE, Constraints, named, whole

Array = NDArray[np.float64]
NOTHING = 1e-12  # a local scatter below this share of the total one is rounding


class LocalFisherDiscriminant(Reducer):
    """Local Fisher discriminant analysis (LFDA): near rows of a class together, rows of other classes apart.

        maximise  tr (G Σ̃_γ Gᵀ)⁻¹ G S̃_b Gᵀ ,   Σ̃_γ = (1−γ) S̃_w/n + γ τ I ,   S̃ = ½ Σ_ij W_ij (x_i − x_j)(x_i − x_j)ᵀ

    W_w = A/n_c and W_b = A(1/n − 1/n_c) inside a class, 0 and 1/n between classes; A_ij = exp(−‖x_i−x_j‖²/(s_i s_j)), s
    the distance to the 7th neighbour of the same class. Far rows of one class are not pulled together, so that a class
    may consist of several groups, and there are more than C − 1 discriminants. γ is the ridge of RegularizedLDA on the
    local scatter, without which LFDA follows the training rows where columns are many. Use it where classes fall into
    groups; with compact classes RegularizedLDA does the same without neighbours. It takes n²/C time.

    Parameters
    ----------
    n_components : int, float or None, default=None
        How many components to keep; a fraction in (0, 1) keeps the fewest that reach that share of the eigenvalues of
        None, None as many as LDA has, C − 1 (at most the rank).
    neighbors : int, default=7
        Which neighbour of the same class gives a row's scale; the farthest where there are fewer.
    shrinkage : float, default=0.1
        γ in [0, 1]; 0 is the published method, where the local scatter is not singular.
    metric : {"plain", "weighted", "orthonormalized"}, default="plain"
        Scale of the directions: G Σ̃_γ Gᵀ = I, each of these times √λ, or an orthonormal basis in their order.

    Attributes
    ----------
    components_ : array of shape (n_components_, n_features)
        The directions, one per row.
    eigenvalues_ : array of shape (n_components_,)
        Local between- over within-class spread along each direction.
    explained_variance_ratio_ : array of shape (n_components_,)
        Each direction's share of the sum over all directions.
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
        unit = 0 if self.metric == "orthonormalized" else -moments.exponent
        return Solution(
            components_=np.ldexp(ratio.embedded(directions), unit),
            eigenvalues_=values,
            explained_variance_ratio_=values / spectrum.total,
            rank_=ratio.rank,
            solver_=f"{k} local discriminants of a {ratio.rank}×{ratio.rank} ratio",
            is_resolved=basis.is_resolved,
        )

    def _cost(self, within: Array, ratio: Ratio) -> Covariance:
        """Σ̃_γ; where no class varies, distances as they are."""
        gamma, trace = float(self.shrinkage), float(np.trace(within))
        identity = np.eye(ratio.rank)
        if trace <= NOTHING * float(ratio.variances.sum()):
            return Covariance(identity * float(ratio.variances.sum()) / ratio.rank)
        cost = Covariance((1 - gamma) * within + gamma * trace / ratio.rank * identity, ratio.precision)
        if not cost.is_nonsingular:
            raise ValueError(
                f"shrinkage={self.shrinkage} came, but the local within-class scatter is singular (fewer rows than "
                "columns, or columns that do not vary within classes). Pass a shrinkage above 0, e.g. 0.1."
            )
        return cost

    def _scaled(self, directions: Array, values: Array) -> Array:
        if self.metric == "weighted":
            return directions * np.sqrt(np.maximum(values, 0.0))[:, None]
        if self.metric == "orthonormalized":
            lengths = np.linalg.norm(directions, axis=1)[:, None]
            return la.qr((directions / lengths).T, mode="economic")[0].T
        return directions
