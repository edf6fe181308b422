"""Every objective stated in a docstring, at the fitted solution and around it.

A case is a fitted model with its variables, a function of them that is to be minimised, and the map that returns
changed variables to the feasible set. No change of the variables may improve the value beyond rounding.
"""

import math
from itertools import combinations
from typing import NamedTuple

import literal
import numpy as np
import pytest
from geometry import largest_angle
from samples import labelled
from scipy.linalg import null_space
from scipy.optimize import minimize
from scipy.special import erfc

import discrim
from discrim.core.factors import SharedFactors, minimise_factors
from discrim.registry import ENTRIES


class Case(NamedTuple):
    """Variables of a fit, its objective (to be minimised) and the map onto the feasible set."""

    variables: tuple[np.ndarray, ...]
    objective: object
    feasible: object = lambda *variables: variables
    rounding: float = 1e-9  # share of the objective by which a minimum may be missed


def orthonormal(W):
    """W with orthonormal rows in the span of its rows, each near its own."""
    left, _, right = np.linalg.svd(W, full_matrices=False)
    return (left @ right,)


def spread_case(model, A):
    """Maximise tr WAWᵀ subject to WWᵀ = I."""
    return Case((model.components_,), lambda W: -np.trace(W @ A @ W.T), orthonormal)


def ratio_case(model, gain, cost):
    """Maximise tr (G cost Gᵀ)⁻¹ G gain Gᵀ; the rows of a fitted G have G cost Gᵀ = I."""
    G = model.components_
    np.testing.assert_allclose(G @ cost @ G.T, np.eye(len(G)), atol=1e-8)
    return Case((G,), lambda G: -np.trace(np.linalg.solve(G @ cost @ G.T, G @ gain @ G.T)))


def unit_rows(X):
    """Centred rows of mean square length 1, and the unit."""
    centred = X - X.mean(axis=0)
    unit = math.sqrt((centred**2).sum() / len(X))
    return centred / unit, unit


# ---------------------------------------------------------------------- one function for each docstring


def pca(X, y):
    return spread_case(discrim.PCA(2).fit(X), literal.scatters(X, y)[2])


def margin_pca(pairs):
    return lambda X, y: spread_case(
        discrim.MarginPCA(2, pairs=pairs).fit(X, y), literal.spread(literal.MARGIN_ROWS[f"margin-pca-{pairs}"](X, y))
    )


def supervised_pca(X, y):
    return spread_case(discrim.SupervisedPCA(2).fit(X, y), literal.label_dependence(X, y))


def maximum_margin_criterion(X, y):
    within, between, _ = literal.scatters(X, y)
    return spread_case(discrim.MaximumMarginCriterion(3, weight=0.7).fit(X, y), between - 0.7 * within)


def margin_subspace(X, y):
    model = discrim.MarginSubspace(1, tol=1e-12, max_iter=100_000).fit(X, y)
    return spread_case(model, model.class_coef_.T @ model.class_coef_)


def null_space_lda(X, y):
    wide = np.c_[X, np.random.default_rng(8).standard_normal((len(X), len(X)))]
    within, between, _ = literal.scatters(wide, y)
    free = null_space(within, rcond=1e-9)
    model = discrim.NullSpaceLDA(2).fit(wide, y)
    case = spread_case(model, between)
    assert np.abs(model.components_ @ within @ model.components_.T).max() < 1e-9
    return case._replace(feasible=lambda W: orthonormal(W @ free @ free.T))


def fisher_lda(X, y):
    within, between, _ = literal.scatters(X, y)
    return ratio_case(discrim.FisherLDA(2).fit(X, y), between, within / len(X))


def uncorrelated_lda(X, y):
    _, between, total = literal.scatters(X, y)
    return ratio_case(discrim.UncorrelatedLDA(2).fit(X, y), between, total)


def regularized_lda(X, y):
    within, between, _ = literal.scatters(X, y)
    return ratio_case(discrim.RegularizedLDA(2, shrinkage=0.3).fit(X, y), between, literal.ridged(within, X, 0.3))


def heteroscedastic_lda(X, y):
    C, cost = literal.chernoff(X, y, 0.3)
    return ratio_case(discrim.HeteroscedasticLDA(2, shrinkage=0.3).fit(X, y), (C + C.T) / 2, cost)


def local_fisher_discriminant(X, y):
    within, between = literal.local_scatters(X, y, 7)
    model = discrim.LocalFisherDiscriminant(3, shrinkage=0.2).fit(X, y)
    return ratio_case(model, between, literal.ridged(within, X, 0.2))


def bayes_error_lda(X, y):
    cost = literal.ridged(literal.scatters(X, y)[0], X, 0.3)
    model = discrim.BayesErrorLDA(1, shrinkage=0.3).fit(X, y)
    labels = sorted(set(y))
    means, shares = [X[y == c].mean(axis=0) for c in labels], [np.mean(y == c) for c in labels]

    def error(G):
        return sum(
            shares[a] * shares[b]
            * erfc(np.linalg.norm(G @ (means[a] - means[b])) / (2 * math.sqrt(2) * model.spread_inflation_))
            for a, b in combinations(range(len(labels)), 2)
        )  # fmt: skip

    return Case((model.components_,), error, lambda G: (G / np.sqrt(G @ cost @ G.T),), 1e-7)


def pls_da(X, y):
    model = discrim.PLSDA(3).fit(X, y)
    Y = np.array([[float(own == c) for c in sorted(set(y))] for own in y])
    centred = X - X.mean(axis=0)

    def covariances(w):
        left, found = centred, 0.0
        for at, (own, fitted) in enumerate(zip(w.T, model.x_weights_.T, strict=True)):
            found -= np.linalg.norm(own @ left.T @ (Y - Y.mean(axis=0)) / len(X)) ** 2 / 100**at  # v_h at its best
            t = left @ fitted
            left = left - np.outer(t, t @ left) / (t @ t)
        return found

    np.testing.assert_allclose(np.cov(model.transform(X).T), np.diag(model.transform(X).var(axis=0, ddof=1)), atol=1e-9)
    return Case((model.x_weights_,), covariances, lambda w: (w / np.linalg.norm(w, axis=0),))


def pairwise_eigenvectors(X, y):
    model, ridge = discrim.PairwiseEigenvectors(1, ridge=0.1).fit(X, y), 0.1
    centred, labels = X - X.mean(axis=0), sorted(set(y))
    moments = [centred[y == c].T @ centred[y == c] / (y == c).sum() for c in labels]

    def ratio(v):
        noisy = [C + ridge / X.shape[1] * np.trace(C) * np.eye(X.shape[1]) for C in moments]
        pairs = [(a, b) for a in range(len(labels)) for b in range(len(labels)) if a != b]
        return -max((v @ moments[a] @ v) / (v @ noisy[b] @ v) for a, b in pairs)

    return Case((model.components_[0],), ratio)


def alternating(kind, loss):
    def case(X, y):
        X, y = X[:24, :4], np.where(y[:24] == 2, 1, y[:24])  # uneven classes: the intercept is far from 0
        model = kind(2, penalty=0.3, tol=1e-13, max_iter=2000).fit(X, y)
        rows, unit = unit_rows(X)
        W, V, constants = model.components_, model.class_coef_.T * unit, model.class_intercept_

        def value(W, Z, V, constants):
            return literal.factor_objective(rows, y, W, Z, V, constants, model.label_weight, 0.3, loss)

        Z = best_factors(rows, y, W, V, constants, model.label_weight, loss)
        return Case((W, Z, V, constants), value, lambda W, *rest: (*orthonormal(W), *rest), 1e-7)

    return case


def best_factors(rows, y, W, V, constants, alpha, loss):
    """Each row's z by a general minimiser: the fit does not keep them."""

    def of_row(z, at):
        one = literal.factor_objective(rows[at : at + 1], y[at : at + 1], W, z[None], V, constants, 0.0, 0.0, loss)
        scores, own = z @ V + constants, sorted(set(y)).index(y[at])
        if loss == "logistic":
            return one + alpha * math.log(np.exp(scores - scores[own]).sum())
        return one + alpha * sum(literal.rounded_hinge(1 - s if c == own else 1 + s) for c, s in enumerate(scores))

    options = {"xatol": 1e-10, "fatol": 1e-13, "maxiter": 4000}
    found = [minimize(of_row, W @ x, (at,), "Nelder-Mead", options=options).x for at, x in enumerate(rows)]
    return np.array(found)


def supervised_exponential_pca(X, y):
    X, y = X[:10, :3], np.arange(10) % 2
    rows, _ = unit_rows(X)
    model = discrim.SupervisedExponentialPCA(2, label_weight=1.7, penalty=0.3, tol=1e-13, max_iter=3000).fit(X, y)

    def value(M):
        return literal.shared_factor_objective(rows, y, M, 1.7, 0.3)

    M = least_matrix(rows, y, 1.7, 0.3, 2)  # the fit keeps its eigenvalues and the span of ZᵀX
    assert model.objective_[-1] == pytest.approx(value(M), rel=1e-5)
    np.testing.assert_allclose(
        np.linalg.eigvalsh(M)[::-1][: len(model.factor_weights_)], model.factor_weights_, atol=1e-4
    )
    assert largest_angle(np.linalg.eigh(M)[1][:, -2:].T @ rows, model.components_) < 0.1
    return Case((M,), value, lambda M: (capped(M, 2),), 1e-5)


def least_matrix(rows, y, alpha, beta, k):
    n = len(rows)
    problem = SharedFactors(rows @ rows.T / n, np.full(n, n**-0.5), y, len(set(y)), alpha, beta)
    found = minimise_factors(problem, k, tol=1e-13, max_iter=3000)
    return (found.vectors * found.values) @ found.vectors.T


def capped(M, k):
    """A matrix with 0 ⪯ M ⪯ I and tr M = k near the given one."""
    values, vectors = np.linalg.eigh((M + M.T) / 2)
    low, high = values.min() - 1, values.max()
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if np.clip(values - middle, 0, 1).sum() > k else (low, middle)
    return (vectors * np.clip(values - low, 0, 1)) @ vectors.T


def supervised_probabilistic_pca(X, y):
    model = discrim.SupervisedProbabilisticPCA(2).fit(X, y)
    U, centred = literal.label_contrasts(y), X - X.mean(axis=0)
    noises = np.array([model.noise_variance_, model.label_noise_variance_])
    s = math.sqrt(noises[0] / noises[1])
    values, vectors = np.linalg.eigh(np.cov(np.c_[centred, s * U].T, bias=True))
    W = vectors[:, -2:] * np.sqrt(values[-2:] - noises[0])
    Wx, Wy = W[: X.shape[1]], W[X.shape[1] :] / s

    def value(Wx, Wy, noises):
        return -literal.joint_log_likelihood(centred, U, Wx, Wy, *noises)

    assert model.log_likelihood_ == pytest.approx(-value(Wx, Wy, noises), rel=1e-8)
    return Case((Wx, Wy, noises), value, lambda Wx, Wy, noises: (Wx, Wy, np.abs(noises)))


def max_margin_pca(X, y):
    model = discrim.MaxMarginPCA(2, C=0.5, tol=1e-12, max_iter=5000).fit(X, y)
    rows, _ = unit_rows(X)
    latent = np.array(
        [literal.latent_row(x, o, model.components_, model.class_coef_, 0.5) for x, o in zip(rows, y, strict=True)]
    )

    def value(W, Z, nu):
        return literal.max_margin_pca_objective(rows, y, W, Z, nu, 0.5)

    variables = model.components_, latent, model.class_coef_
    return Case(variables, value, lambda W, *rest: (*orthonormal(W), *rest), 1e-6)


def autoencoder(X, y):
    model = discrim.Autoencoder(2, alpha=0.01, max_iter=5000, random_state=0).fit(X)
    scaled = 0.1 + 0.8 * (X - model.data_min_) / model.data_range_

    def sigmoid(t):
        return 1 / (1 + np.exp(-t))

    def value(W, b, c):
        errors = scaled - sigmoid(sigmoid(scaled @ W.T + b) @ W + c)
        return (errors**2).sum() / len(X) + 0.01 * (W**2).sum()

    assert model.loss_ == pytest.approx(value(model.components_, model.intercept_, model.output_intercept_), rel=1e-9)
    return Case((model.components_, model.intercept_, model.output_intercept_), value, rounding=1e-4)


def crammer_singer_svc(X, y):
    model = discrim.CrammerSingerSVC(C=0.1, tol=1e-10, max_iter=1_000_000).fit(X, y)
    ones, labels = np.c_[X, np.ones(len(X))], sorted(set(y))

    def value(eta):
        scores = ones @ eta.T
        own = scores[np.arange(len(y)), y]
        losses = [[(label != o) + s - t for label, s in zip(labels, row, strict=True)]
                  for row, o, t in zip(scores, y, own, strict=True)]  # fmt: skip
        return 0.5 * (eta**2).sum() + 0.1 * sum(map(max, losses))

    return Case((np.c_[model.class_coef_, model.class_intercept_],), value, rounding=1e-8)


CASES = {
    "PCA": pca,
    **{f"MarginPCA {pairs}": margin_pca(pairs) for pairs in ("all", "mean", "median", "nearest")},
    "SupervisedPCA": supervised_pca,
    "MaximumMarginCriterion": maximum_margin_criterion,
    "MarginSubspace": margin_subspace,
    "NullSpaceLDA": null_space_lda,
    "FisherLDA": fisher_lda,
    "UncorrelatedLDA": uncorrelated_lda,
    "RegularizedLDA": regularized_lda,
    "HeteroscedasticLDA": heteroscedastic_lda,
    "LocalFisherDiscriminant": local_fisher_discriminant,
    "BayesErrorLDA": bayes_error_lda,
    "PLSDA": pls_da,
    "PairwiseEigenvectors": pairwise_eigenvectors,
    "LogisticPCA": alternating(discrim.LogisticPCA, "logistic"),
    "SupportVectorDecomposition": alternating(discrim.SupportVectorDecomposition, "hinge"),
    "SupervisedExponentialPCA": supervised_exponential_pca,
    "SupervisedProbabilisticPCA": supervised_probabilistic_pca,
    "MaxMarginPCA": max_margin_pca,
    "Autoencoder": autoencoder,
    "CrammerSingerSVC": crammer_singer_svc,
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.filterwarnings("ignore")
def test_no_change_of_the_solution_improves_the_objective_of_the_docstring(name):
    case = CASES[name](*labelled(40, 5, seed=3))
    best = case.objective(*case.variables)
    np.testing.assert_allclose(case.objective(*case.feasible(*case.variables)), best, rtol=1e-6)
    rng, worse = np.random.default_rng(0), []
    n_changes = 4 if name == "SupervisedExponentialPCA" else 25
    for size in (1e-1, 1e-2, 1e-3):
        for at, one in enumerate(case.variables):
            for _ in range(n_changes):
                changed = list(case.variables)
                changed[at] = one + size * np.abs(one).max() * rng.standard_normal(one.shape)
                worse.append(case.objective(*case.feasible(*changed)) - best)
    assert min(worse) >= -case.rounding * abs(best)
    assert max(worse) > 1e-4 * abs(best)  # the changes are large enough to matter


def test_every_docstring_with_an_objective_has_a_case():
    stated = {
        entry.name
        for entry in ENTRIES
        if entry.module.startswith("discrim.estimators")
        and any(word in str(getattr(discrim, entry.name).__doc__).partition("Parameters\n")[0]
                for word in ("    maximise  ", "    minimise  ", "    min "))
    }  # fmt: skip
    assert stated <= {name.partition(" ")[0] for name in CASES}
    assert len(stated) > 15
