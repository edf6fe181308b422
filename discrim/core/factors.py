"""Factors of the rows that also predict the labels: by alternating steps, by maximum likelihood, as a convex problem.

    F = Σ_i (w_i/n) [ ‖x_i − z_iW‖² + α·loss(y_i, z_iV + v_0) ] + β‖V‖² ,    WWᵀ = I

Alternating convex minimisation (`Alternation`): given V and W, each z_i is a small convex problem. Given Z, V is a
linear classifier with a ridge, and W rotates the factors onto the rows (Procrustes). F never rises: a step that would
raise it, after too few inner iterations, is skipped.

    x = W_x z + ε_x ,  u = W_y z + ε_y ,    z ~ N(0, I),  ε_x ~ N(0, σ_x² I),  ε_y ~ N(0, σ_y² I)

Maximum likelihood (`JointFactors`): with s = σ_x/σ_y the joint row t = [x; s·u] has isotropic noise, and for a given s
the best factors are those of probabilistic PCA: W = U(Λ − σ²I)^½ from the leading eigenpairs of t's covariance, where
σ² = σ_x² is the mean of the other eigenvalues. It remains to find s. The slope of the likelihood in ln s is known:
dλ_i/d ln s = 2λ_i‖b_i‖², where b_i is the labels' part of eigenvector i.

    F(M) = −½ tr XᵀM(M + βI)⁻¹X + min_V [ α Σ_i w_i loss(y_i, z_iV) + (β/2)‖V‖² ] ,    0 ⪯ M ⪯ I ,  tr M = k

Convex problem (`SharedFactors`): the first part is min_W ½‖X − ZW‖² + (β/2)‖W‖² minus ½‖X‖², for every Z with ZZᵀ = M;
the loss is multinomial logistic. Both parts are convex in M, because each is a maximum of functions linear in M, so
projected gradient steps converge to the global minimum. Rows are multiplied by √w_i, Σw_i = 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq, minimize
from scipy.sparse.linalg import LinearOperator
from scipy.special import log_softmax, softmax

from discrim.core.coordinates.basis import Basis
from discrim.core.moments.class_moments import ClassMoments
from discrim.core.row_hash import equal_rows
from discrim.core.svm.shift import UnitRows
from discrim.decompositions import eigh, largest_eigenpairs_by_products, solve, svd

Array = NDArray[np.float64]
Codes = NDArray[np.intp]
ROW_STEPS, HALVINGS = 4, 8  # Newton steps for each row's factors per round, and halvings of each step
SETTLED = 1e-12  # steps below this count as zero
CLASSIFIER_STEPS = 50  # per round, starting from the previous result
MIN_NOISE = 1e-6  # of the mean variance of rows and of labels; without it the likelihood is unbounded
# s is searched up to this factor around the ratio of deviations, first on a grid of this many steps
WIDEST, STEPS = 2e3, 25
MANY = 300  # above this size a few eigenpairs are computed by products: the matrix is diagonal except for a few rows
MIN_STRENGTH = 1e-12  # minimum strength of a factor relative to the noise, so that it has a direction
NEGLIGIBLE = 1e-10  # eigenvalues of M below this count as 0
SUFFICIENT = 1e-4  # of the decrease predicted by the slope, for a step to be accepted
MIN_STEP = 1e-12


@dataclass(frozen=True)
class LogisticLoss:
    """−ln p_y, p = softmax(scores): multinomial logistic regression."""

    def values(self, scores: Array, codes: Codes) -> Array:
        """Return the loss of each row."""
        return np.asarray(-log_softmax(scores, axis=1)[np.arange(len(codes)), codes])

    def slopes(self, scores: Array, codes: Codes) -> Array:
        """Return the gradient of each row's loss, n×C."""
        p = softmax(scores, axis=1)
        p[np.arange(len(codes)), codes] -= 1
        return np.asarray(p)

    def curvatures(self, scores: Array, codes: Codes) -> tuple[Array, Array]:
        """Return D and O (n×C) of the second derivatives diag(D_i) − O_iO_iᵀ."""
        p = softmax(scores, axis=1)
        return p, p


@dataclass(frozen=True)
class HingeLoss:
    """Smoothed hinge Σ_c h(1 − t_c·score_c), where t_c = 1 for the row's own class and −1 for the others.

    h(g) is 0 for g ≤ 0, g − δ/2 for g ≥ δ and g²/2δ in between. At the kink of the plain hinge, alternating steps could
    stop far from the minimum.
    """

    width: float = 0.25  # δ

    def values(self, scores: Array, codes: Codes) -> Array:
        gaps = self._gaps(scores, codes)
        inside = np.clip(gaps, 0.0, self.width)
        return np.asarray((inside**2 / (2 * self.width) + np.maximum(gaps - self.width, 0.0)).sum(axis=1))

    def slopes(self, scores: Array, codes: Codes) -> Array:
        return -_signs(scores, codes) * np.clip(self._gaps(scores, codes), 0.0, self.width) / self.width

    def curvatures(self, scores: Array, codes: Codes) -> tuple[Array, Array]:
        gaps = self._gaps(scores, codes)
        curved = ((gaps > 0) & (gaps < self.width)) / self.width
        return curved, np.zeros_like(curved)

    def _gaps(self, scores: Array, codes: Codes) -> Array:
        return 1 - _signs(scores, codes) * scores


def _signs(scores: Array, codes: Codes) -> Array:
    """Return 1 for each row's own class and −1 for the others."""
    return np.asarray(2.0 * np.eye(scores.shape[1])[codes] - 1.0)


Loss = LogisticLoss | HingeLoss


@dataclass(frozen=True, eq=False, kw_only=True)
class CentredRows(UnitRows):
    """Distinct rows with their classes; the weights are w_i/n, and dense rows are in the unit already."""

    weights: Array
    codes: Codes
    n_classes: int
    factor: float  # from the original rows to these

    @classmethod
    def of(cls, basis: Basis, moments: ClassMoments, unit: float) -> CentredRows:
        """Build from the distinct rows with their weights, sorted by content to make the result independent of order.

        unit : root mean square distance of the rows from their mean, in the units of the moments.
        """
        groups = equal_rows(basis.original.X, basis.original.codes)
        weights = np.bincount(groups.group, basis.original.weights).astype(np.float64)
        points, offset = basis.points.select(groups.first), None
        with np.errstate(over="ignore"):
            factor = float(0.5**moments.exponent / np.float64(unit))
        if points.is_sparse:
            X, offset = points.X.astype(np.float64) * factor, moments.mean * factor
        else:
            X = moments.centred(points.X.astype(np.float64, copy=False)) / unit
        weights /= weights.sum()
        codes, n_classes = points.codes, points.n_classes
        return cls(X, offset, 1.0, 0, weights=weights, codes=codes, n_classes=n_classes, factor=factor)

    def dense(self) -> Array:
        """Return X as a dense array."""
        return np.asarray(self.X) if self.offset is None else self.X.toarray() - self.offset


def label_scores(Z: Array, V: Array) -> Array:
    """Compute ZV + v_0."""
    return Z @ V[:-1] + V[-1]


@dataclass(frozen=True, eq=False)
class Factors:
    """Result of the minimisation: W (k×p), Z (n×k), V ((k+1)×C), and F after every round."""

    W: Array
    Z: Array
    V: Array
    values: Array
    is_settled: bool


@dataclass(frozen=True, eq=False)
class Alternation:
    """F: the rows, the loss of wrong labels, and the weights α and β."""

    rows: CentredRows
    loss: Loss
    alpha: float
    beta: float

    def minimise(self, W: Array, *, tol: float, max_iter: int) -> Factors:
        """Minimise from given directions until a round decreases F by less than `tol`, relatively."""
        rows, P = self.rows, self.rows.project(W)
        Z, V = P, np.zeros((len(W) + 1, rows.n_classes))
        ridge = np.append(np.full(len(W), self.beta), 0.0)  # the intercept v_0 is not penalised
        values, is_settled = [self._value(P, Z, V, ridge)], False
        while len(values) <= max_iter and not is_settled:
            design = np.c_[Z, np.ones(len(Z))]
            tried = minimise_loss(design, V, rows.weights, rows.codes, self.alpha, ridge, self.loss)[0]
            V = tried if self._value(P, Z, tried, ridge) <= values[-1] else V
            near = self._newton_steps(P, Z, V)
            lower = self.row_values(P, near, V) <= self.row_values(P, Z, V)
            Z = np.where(lower[:, None], near, Z)
            turned = polar_factor(rows.weighted_sum(rows.weights[:, None] * Z))  # Procrustes
            projected = rows.project(turned)
            if self._value(projected, Z, V, ridge) <= self._value(P, Z, V, ridge):
                W, P = turned, projected
            values.append(self._value(P, Z, V, ridge))
            is_settled = values[-2] - values[-1] <= tol * values[-1]
        return Factors(W, Z, V, np.array(values), is_settled)

    def row_values(self, P: Array, Z: Array, V: Array) -> Array:
        """Compute ‖p_i − z_i‖² + α·loss(y_i, z_iV + v_0) for each row."""
        apart = P - Z
        losses = self.loss.values(label_scores(Z, V), self.rows.codes)
        return np.asarray(np.einsum("ik,ik->i", apart, apart) + self.alpha * losses)

    def _value(self, P: Array, Z: Array, V: Array, ridge: Array) -> float:
        weights = self.rows.weights
        beyond = 1.0 - float(weights @ np.einsum("ik,ik->i", P, P))
        return beyond + float(weights @ self.row_values(P, Z, V)) + float(ridge @ (V**2).sum(axis=1))

    def _newton_steps(self, P: Array, Z: Array, V: Array) -> Array:
        """Return a z for each row with lower ‖p − z‖² + α·loss(y, zV + v_0), by Newton steps for all rows at once."""
        W, axes, codes = V[:-1], np.arange(len(V) - 1), self.rows.codes
        for _ in range(ROW_STEPS):
            scores = label_scores(Z, V)
            slope = 2 * (Z - P) + self.alpha * self.loss.slopes(scores, codes) @ W.T
            diagonal, outer = self.loss.curvatures(scores, codes)
            means = outer @ W.T
            curvature = (
                np.einsum("kc,ic,lc->ikl", W, diagonal, W, optimize=True) - means[:, :, None] * means[:, None, :]
            )
            curvature *= self.alpha
            curvature[:, axes, axes] += 2
            step = solve(curvature, slope[:, :, None])[:, :, 0]
            Z = self._backtrack(P, Z, V, step)
            if float(np.abs(step).max(initial=0.0)) < SETTLED:
                break
        return Z

    def _backtrack(self, P: Array, Z: Array, V: Array, step: Array) -> Array:
        """Return each row's step, halved until its value does not rise; 0 if it still would."""
        before, length = self.row_values(P, Z, V), np.ones(len(Z))
        for _ in range(HALVINGS):
            uphill = self.row_values(P, Z - length[:, None] * step, V) > before
            if not uphill.any():
                break
            length[uphill] /= 2
        else:
            length[uphill] = 0.0
        return Z - length[:, None] * step


def polar_factor(matrix: Array) -> Array:
    """Return the nearest matrix with orthonormal rows."""
    left, _, right = svd(matrix)
    return np.asarray(left @ right)


def minimise_loss(
    design: Array, V: Array, weights: Array, codes: Codes, alpha: float, ridge: Array, loss: Loss, **options: float
) -> tuple[Array, float]:
    """Minimise α Σ_i w_i loss(y_i, x_iV) + Σ_j β_j‖V_j‖² over V from a start; return V and the minimum.

    design : x_i as rows
    ridge : β_j, one for each column of the design
    """

    def value(flat: Array) -> tuple[float, Array]:
        given = flat.reshape(V.shape)
        scores = design @ given
        total = alpha * float(weights @ loss.values(scores, codes)) + float(ridge @ (given**2).sum(axis=1))
        errors = weights[:, None] * loss.slopes(scores, codes)
        return total, (alpha * design.T @ errors + 2 * ridge[:, None] * given).ravel()

    options = {"maxiter": CLASSIFIER_STEPS, "ftol": 1e-15, "gtol": 1e-10} | options
    found = minimize(value, V.ravel(), jac=True, method="L-BFGS-B", options=options)
    return np.asarray(found.x.reshape(V.shape)), float(found.fun)


@dataclass(frozen=True, eq=False)
class JointCovariance:
    """Joint covariance: rows in coordinates in which theirs is diagonal, labels in orthonormal contrasts."""

    row_variances: Array  # r variances
    across: Array  # r×q
    label_covariance: Array  # q×q

    @property
    def size(self) -> int:
        return len(self.row_variances) + len(self.label_covariance)

    def trace(self, s: float) -> float:
        return float(self.row_variances.sum() + s**2 * np.trace(self.label_covariance))

    def leading(self, s: float, k: int) -> tuple[Array, Array, float, float]:
        """Return the k largest eigenvalues of cov [x; s·u], unit eigenvectors as rows, and the remainder.

        The remainder is the sum of all other eigenvalues and its derivative by ln s.
        """
        r = len(self.row_variances)
        if self.size > MANY and 10 * k < self.size:
            values, vectors = self._leading_by_products(s, k)
            change = 2 * s**2 * float(np.trace(self.label_covariance)) - float(_changes(values, vectors[:, r:]).sum())
            return values, vectors, self.trace(s) - float(values.sum()), change
        matrix = np.zeros((self.size, self.size))
        matrix[np.arange(r), np.arange(r)] = self.row_variances
        matrix[:r, r:] = s * self.across
        matrix[r:, :r] = matrix[:r, r:].T
        matrix[r:, r:] = s**2 * self.label_covariance
        values, vectors = eigh(matrix)
        values, vectors = np.maximum(values[::-1], 0.0), vectors.T[::-1]
        change = float(_changes(values[k:], vectors[k:, r:]).sum())  # summed, not subtracted, because it may be small
        return values[:k], vectors[:k], float(values[k:].sum()), change

    def _leading_by_products(self, s: float, k: int) -> tuple[Array, Array]:
        r = len(self.row_variances)

        def product(v: Array) -> Array:
            x, u = v[:r].reshape(r), v[r:].reshape(-1)
            return np.concatenate(
                [
                    self.row_variances * x + s * (self.across @ u),
                    s * (x @ self.across) + s**2 * (self.label_covariance @ u),
                ]
            )

        start = np.random.default_rng(0).standard_normal(self.size)
        operator = LinearOperator((self.size, self.size), matvec=product, dtype=np.float64)
        values, vectors = largest_eigenpairs_by_products(operator, k, start)
        return np.maximum(values[::-1], 0.0), vectors.T[::-1]


@dataclass(frozen=True, eq=False)
class JointFactors:
    """Factors at a given s: eigenpairs of the joint covariance, noise, and minus twice the mean log-likelihood."""

    s: float
    values: Array
    vectors: Array
    noise: float  # σ_x²
    deviance: float
    slope: float  # derivative of the deviance by ln s

    @classmethod
    def at(cls, covariance: JointCovariance, log_s: float, k: int) -> JointFactors:
        s, r, q = float(np.exp(log_s)), len(covariance.row_variances), len(covariance.label_covariance)
        values, vectors, rest, rest_change = covariance.leading(s, k)
        left = covariance.size - k
        label_floor = s**2 * MIN_NOISE * float(np.trace(covariance.label_covariance)) / q
        row_floor = MIN_NOISE * float(covariance.row_variances.sum()) / r
        noise = max(rest / left, row_floor, label_floor)
        kept = np.maximum(values, noise)
        deviance = float(np.log(kept).sum() + (values / kept).sum() + left * np.log(noise) + rest / noise)
        deviance += covariance.size * np.log(2 * np.pi) - 2 * q * log_s
        slope = float((_changes(values, vectors[:, r:]) / kept).sum() + rest_change / noise - 2 * q)
        if noise == label_floor:  # which grows with s
            faint = values < noise
            slope += 2 * (left + faint.sum() - (rest + values[faint].sum()) / noise)
        return cls(s, values, vectors, noise, deviance, slope)

    def row_features(self, r: int) -> Array:
        """Compute the k×r matrix of x ↦ E[z | x] = (W_xᵀW_x/σ_x² + I)⁻¹ W_xᵀ x/σ_x²."""
        strengths = np.sqrt(np.maximum(self.values - self.noise, MIN_STRENGTH * self.noise) / self.noise)
        W = strengths[:, None] * self.vectors[:, :r]  # W_xᵀ/σ_x
        left, singular, right = svd(W)
        return (left * (singular / (singular**2 + 1))) @ right / np.sqrt(self.noise)


def _changes(values: Array, label_part: Array) -> Array:
    """Compute dλ/d ln s from the labels' parts of the eigenvectors."""
    return 2 * values * (label_part**2).sum(axis=1)


def fitted_factors(covariance: JointCovariance, k: int) -> JointFactors:
    """Return the maximum-likelihood factors: the best s of a grid, refined to the root of the slope next to it."""
    q, r = len(covariance.label_covariance), len(covariance.row_variances)
    centre = 0.5 * np.log(covariance.row_variances.sum() / r / (np.trace(covariance.label_covariance) / q))
    grid = centre + np.linspace(-np.log(WIDEST), np.log(WIDEST), STEPS)
    tried = [JointFactors.at(covariance, log_s, k) for log_s in grid]
    best = int(np.argmin([one.deviance for one in tried]))
    low, high = (best - 1, best) if tried[best].slope > 0 else (best, best + 1)
    low, high = max(low, 0), min(high, STEPS - 1)
    if not tried[low].slope < 0 < tried[high].slope:
        return tried[best]
    root = brentq(lambda log_s: JointFactors.at(covariance, log_s, k).slope, grid[low], grid[high], xtol=1e-15)
    return JointFactors.at(covariance, float(root), k)


@dataclass(frozen=True, eq=False)
class SharedFactors:
    """F and its gradient, for rows given by their Gram matrix."""

    gram: Array  # XXᵀ of rows times √w_i
    roots: Array  # √w_i
    codes: Codes
    n_classes: int
    alpha: float
    beta: float

    def value_and_slope(self, values: Array, vectors: Array, start: Array | None) -> tuple[float, Array, Array]:
        """Compute F, dF/dM and the classifier's dual rows at M = vectors diag(values) vectorsᵀ."""
        inverse = 1 / (values + self.beta)
        turned = vectors.T @ self.gram @ vectors
        row_part = -0.5 * float(np.diag(turned) @ (values * inverse))
        slope = -0.5 * self.beta * vectors @ (inverse[:, None] * turned * inverse) @ vectors.T
        label_part, duals = self._classifier(values, vectors, start)
        pulled = self.roots[:, None] * duals
        slope -= self.alpha**2 / (2 * self.beta) * (pulled @ pulled.T)
        return row_part + label_part, slope, duals

    def _classifier(self, values: Array, vectors: Array, start: Array | None) -> tuple[float, Array]:
        """Return the minimum of the penalised loss, and Y − P, from which V = (α/β) Zᵀ diag(√w)(Y − P)."""
        kept = values > NEGLIGIBLE
        Z = vectors[:, kept] * np.sqrt(values[kept])
        design, loss = Z / self.roots[:, None], LogisticLoss()
        first = np.zeros((Z.shape[1], self.n_classes))
        if start is not None:
            first = self.alpha / self.beta * Z.T @ (self.roots[:, None] * start)
        ridge = np.full(len(first), self.beta / 2)
        V, value = minimise_loss(
            design, first, self.roots**2, self.codes, self.alpha, ridge, loss, maxiter=500, gtol=1e-11
        )
        return value, -loss.slopes(design @ V, self.codes)


@dataclass(frozen=True, eq=False)
class FactorMinimum:
    """Minimiser M by its eigenpairs, F after every step, and True if the steps converged."""

    values: Array
    vectors: Array
    objective: Array
    is_settled: bool


def minimise_factors(problem: SharedFactors, k: int, *, tol: float, max_iter: int) -> FactorMinimum:
    """Minimise F by projected gradient steps from the principal factors of the rows; F never rises."""
    values, vectors = _eigenpairs(problem.gram)
    values = np.where(np.arange(len(values)) < k, 1.0, 0.0)
    at, slope, duals = problem.value_and_slope(values, vectors, None)
    history, length, is_settled = [at], 1.0 / max(float(np.abs(slope).max()), 1e-300), False
    for _ in range(max_iter):
        M = (vectors * values) @ vectors.T
        while True:
            tried_values, tried_vectors = nearest_feasible(M - length * slope, k)
            found, new_slope, new_duals = problem.value_and_slope(tried_values, tried_vectors, duals)
            moved = (tried_vectors * tried_values) @ tried_vectors.T - M
            promised = float(np.vdot(slope, moved))
            if found <= at + SUFFICIENT * promised or length < MIN_STEP:
                break
            length /= 2
        if found > at:
            is_settled = True
            break
        change = float(np.vdot(moved, new_slope - slope))
        # step length of Barzilai and Borwein
        length = float(np.vdot(moved, moved)) / change if change > 0 else 2 * length
        gained, at = at - found, found
        values, vectors, slope, duals = tried_values, tried_vectors, new_slope, new_duals
        history.append(at)
        if is_settled := gained <= tol * max(abs(at), 1e-300):
            break
    return FactorMinimum(values, vectors, np.array(history), is_settled)


def nearest_feasible(matrix: Array, k: int) -> tuple[Array, Array]:
    """Return eigenpairs of the nearest M with 0 ⪯ M ⪯ I, tr M = k: shifted eigenvalues clipped to [0, 1]."""
    values, vectors = _eigenpairs((matrix + matrix.T) / 2)
    ends = np.sort(np.concatenate([values, values - 1]))  # breakpoints of the sum of clipped values
    sums = np.clip(values - ends[:, None], 0.0, 1.0).sum(axis=1)  # decreasing
    at = int(np.searchsorted(-sums, -k))
    at = min(max(at, 1), len(ends) - 1)
    low, high = ends[at - 1], ends[at]
    fraction = 0.0 if sums[at - 1] == sums[at] else (sums[at - 1] - k) / (sums[at - 1] - sums[at])
    return np.clip(values - (low + fraction * (high - low)), 0.0, 1.0), vectors


def _eigenpairs(matrix: Array) -> tuple[Array, Array]:
    """Return eigenvalues, largest first, and eigenvectors as columns."""
    values, vectors = eigh(matrix)
    return values[::-1], vectors[:, ::-1]
